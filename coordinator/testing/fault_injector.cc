#include "coordinator/testing/fault_injector.h"

#include <array>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kServers = ModelledEnsemble::kServers;

}  // namespace

Micros FaultInjector::Between(Micros least, Micros most) {
  return least + Micros(static_cast<std::int64_t>(cluster_.timeline.random().Below((most - least).count())));
}

void FaultInjector::Schedule(std::size_t count, Micros span) {
  for (std::size_t i = 0; i < count; ++i) {
    cluster_.timeline.After(Between(Micros(0), span), [this] {
      if (!healed_) Strike();
    });
  }
}

void FaultInjector::EndAfter(Micros least, Micros most, std::function<void()> end) {
  cluster_.timeline.After(Between(least, most), [this, end = std::move(end)] {
    if (!healed_) end();
  });
}

void FaultInjector::Strike() {
  ++faults_;
  SimulatedWorker& worker = workers_[cluster_.timeline.random().Below(workers_.size())];
  switch (cluster_.timeline.random().Below(15)) {
    case 0:
    case 1:
    case 2:
      StrikeProcess(worker);
      break;
    case 3:
    case 4:
      StrikeDatabaseLink(worker);
      break;
    case 5:
    case 6:
      StrikeTreeLink(worker);
      break;
    case 7:
      StrikeDatabase();
      break;
    case 8:
      StrikeEnsemble();
      break;
    case 9:
      Operate(worker);
      break;
    case 10:
      StrikeLease(worker);
      break;
    case 11:
      StrikeNodes();
      break;
    case 12:
      StrikeMany();
      break;
    case 13:
      Pause();
      break;
    default:
      StrikeLeader();
      break;
  }
}

void FaultInjector::StrikeProcess(SimulatedWorker& worker) {
  ModelledProcess& process = worker.process();
  const BootTime now = cluster_.timeline.Now();
  switch (cluster_.timeline.random().Below(4)) {
    case 0:
      if (OneIn(2)) {
        worker.Leave();
      } else {
        worker.Crash();
      }
      EndAfter(milliseconds(50), seconds(6), [&worker] { worker.Start(); });
      break;
    case 1:
    case 2: {
      const Micros pause = Between(milliseconds(100), seconds(10));
      Note(worker.name() + " is stopped for " + std::to_string(pause.count() / 1000) + " ms");
      process.Pause(now + pause, cluster_.timeline.random());
      break;
    }
    default: {
      const std::size_t thread = cluster_.timeline.random().Below(kThreads);
      Note("thread " + std::to_string(thread) + " of " + worker.name() + " is held up");
      process.threads[thread].Hold(now + Between(milliseconds(100), seconds(8)));
      break;
    }
  }
}

void FaultInjector::StrikeDatabaseLink(SimulatedWorker& worker) {
  DatabaseLink& link = worker.process().database;
  switch (cluster_.timeline.random().Below(4)) {
    case 0:
      Note(worker.name() + " is cut off from the database");
      link.open = false;
      break;
    case 1:
      Note(worker.name() + " loses replies of the database");
      link.lost_replies = 40;
      break;
    case 2:
      Note("statements of " + worker.name() + " arrive late");
      link.late = 50;
      break;
    default:
      Note("the way of " + worker.name() + " to the database is slow");
      link.slowest = Between(milliseconds(50), seconds(2));
      break;
  }
  EndAfter(milliseconds(200), seconds(8), [&link] { link = {}; });
}

void FaultInjector::StrikeTreeLink(SimulatedWorker& worker) {
  TreeLinks& links = worker.process().tree;
  const std::uint64_t how = cluster_.timeline.random().Below(5);
  Note("the way of " + worker.name() + " to the ensemble is harmed, " + std::to_string(how));
  switch (how) {
    case 0:
      for (TreeLink& link : links) link.to_server = link.to_client = false;
      break;
    case 1:
      for (TreeLink& link : links) link.to_client = false;  // requests arrive, replies do not
      break;
    case 2:
      links[cluster_.timeline.random().Below(kServers)].to_server = false;
      break;
    case 3:
      for (TreeLink& link : links) link.slowest = Between(milliseconds(50), seconds(2));
      break;
    default:
      cluster_.ensemble.ExpireSession(worker.Session());
      break;
  }
  EndAfter(milliseconds(200), seconds(8), [&links] { links = {}; });
}

void FaultInjector::StrikeDatabase() {
  if (OneIn(3)) {
    const Micros step = Between(-seconds(3), seconds(3));
    Note("the database's wall clock steps by " + std::to_string(step.count() / 1000) + " ms");
    cluster_.database.clock().StepWall(step);
    return;
  }
  Note("the database is down");
  cluster_.database.Stop();
  EndAfter(milliseconds(100), seconds(6), [this] { cluster_.database.Start(); });
}

void FaultInjector::StrikeEnsemble() {
  ModelledEnsemble& ensemble = cluster_.ensemble;
  const std::size_t server = cluster_.timeline.random().Below(kServers);
  switch (cluster_.timeline.random().Below(3)) {
    case 0:
      Note("the ensemble is down");
      for (std::size_t i = 0; i < kServers; ++i) ensemble.StopServer(i);
      EndAfter(milliseconds(200), seconds(8), [&ensemble] {
        for (std::size_t i = 0; i < kServers; ++i) ensemble.StartServer(i);
      });
      break;
    case 1:
      Note("server " + std::to_string(server) + " of the ensemble is down");
      ensemble.StopServer(server);
      EndAfter(milliseconds(200), seconds(8), [&ensemble, server] { ensemble.StartServer(server); });
      break;
    default:
      Note("server " + std::to_string(server) + " of the ensemble lags behind");
      ++lagging_;
      ensemble.SetLag(server, Between(milliseconds(100), seconds(2)));
      EndAfter(milliseconds(200), seconds(8), [this, &ensemble, server] {
        --lagging_;
        ensemble.SetLag(server, milliseconds(3));
      });
      break;
  }
}

// What people do.
void FaultInjector::Operate(SimulatedWorker& worker) {
  if (OneIn(2)) {
    Drain(worker);
    return;
  }
  Note(worker.name() + " is restarted, as announced");
  cluster_.ensemble.WriteNow({{TreeWrite::Kind::Create, "/control/expect/" + worker.name(),
                               ToText(ExpectDocument{.incarnation = worker.Incarnation(), .seconds = 5})}});
  if (OneIn(2)) {
    worker.Leave();
  } else {
    worker.Crash();
  }
  EndAfter(milliseconds(200), seconds(4), [&worker] { worker.Start(); });
}

void FaultInjector::StrikeLease(SimulatedWorker& worker) {
  const Micros pause = cluster_.mill.engine.lease + Between(-milliseconds(300), milliseconds(1'300));
  Note(worker.name() + " is stopped for about its lease, and the others' statements are slow");
  for (SimulatedWorker& other : workers_) other.process().database.slowest = milliseconds(250);
  ModelledProcess& process = worker.process();
  process.database = {};
  if (OneIn(2)) process.database = {.late = 60, .latest = seconds(3)};
  cluster_.timeline.After(milliseconds(500), [this, &process, pause] {
    if (!healed_) process.Pause(cluster_.timeline.Now() + pause, cluster_.timeline.random());
  });
  EndAfter(pause + seconds(1), pause + seconds(3), [this] {
    for (SimulatedWorker& each : workers_) each.process().database = {};
  });
}

// A rack goes: half of the workers at once, and nobody says farewell.
void FaultInjector::StrikeMany() {
  Note("every second worker crashes");
  for (std::size_t i = cluster_.timeline.random().Below(2); i < workers_.size(); i += 2) {
    SimulatedWorker& worker = workers_[i];
    worker.Crash();
    EndAfter(milliseconds(500), seconds(9), [&worker] { worker.Start(); });
  }
}

// The red button.
void FaultInjector::Pause() {
  const std::array<std::string, 3> kinds{"cluster", std::string("shard:") + SimulatedWork::kShard,
                                         "handler:" + cluster_.work.handlers.front()};
  const std::string& what = kinds.at(cluster_.timeline.random().Below(kinds.size()));
  Note(what + " is paused");
  ModelledEnsemble& ensemble = cluster_.ensemble;
  ensemble.WriteNow({{TreeWrite::Kind::Create, "/control/pause/" + what}});
  EndAfter(milliseconds(500), seconds(5), [&ensemble, what] {
    ensemble.WriteNow({{TreeWrite::Kind::Remove, "/control/pause/" + what}});
  });
}

// Somebody deletes nodes that always exist, one or two, with all below them; or everything.
void FaultInjector::StrikeNodes() {
  constexpr std::array kFolders{"/assign",  "/config", "/control", "/election", "/epoch",
                                "/history", "/leave",  "/status",  "/workers"};
  const auto any = [&] { return kFolders.at(cluster_.timeline.random().Below(kFolders.size())); };
  if (OneIn(4)) {
    Delete("/");
    return;
  }
  Delete(any());
  if (OneIn(2)) Delete(any());
}

void FaultInjector::Delete(const std::string& top) {
  Note(top + " is deleted");
  const auto& nodes = cluster_.ensemble.head().nodes();
  std::vector<TreeWrite> writes;
  const std::string below = top == "/" ? top : top + "/";
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {  // children before their parents
    if (node->first == top || node->first.starts_with(below))
      writes.push_back({TreeWrite::Kind::Remove, node->first});
  }
  if (!writes.empty()) cluster_.ensemble.WriteNow(writes);
}

void FaultInjector::StrikeLeader() {
  ModelledEnsemble& ensemble = cluster_.ensemble;
  for (SimulatedWorker& worker : workers_) {
    if (!worker.Leads()) continue;
    Note("what " + worker.name() + ", the leader, sends is slow, and its candidacy is removed by hand");
    std::string candidate;
    for (const auto& [path, node] : ensemble.head().nodes()) {
      if (path.starts_with("/election/") && node.owner == worker.Session()) candidate = path;
    }
    TreeLinks& links = worker.process().tree;
    for (TreeLink& link : links) link.slowest = Between(milliseconds(300), milliseconds(1'500));
    EndAfter(milliseconds(0), seconds(4), [&ensemble, candidate] {
      ensemble.WriteNow({{TreeWrite::Kind::Remove, candidate}});
    });
    EndAfter(seconds(4), seconds(8), [&links] { links = {}; });
    Drain(workers_[cluster_.timeline.random().Below(workers_.size())]);  // something to decide
    return;
  }
}

void FaultInjector::Drain(SimulatedWorker& worker) {
  ModelledEnsemble& ensemble = cluster_.ensemble;
  const std::string node = "/control/drain/" + worker.name();
  Note(worker.name() + " is drained");
  ensemble.WriteNow({{TreeWrite::Kind::Create, node}});
  EndAfter(seconds(1), seconds(8), [&ensemble, node] {
    ensemble.WriteNow({{TreeWrite::Kind::Remove, node}});
  });
}

// Tried again while the ensemble is away.
void FaultInjector::Undrain(const std::string& node) {
  const TreeReply reply = cluster_.ensemble.WriteNow({{TreeWrite::Kind::Remove, node}});
  if (reply.status != TreeStatus::Lost) return;
  EndAfter(milliseconds(200), milliseconds(400), [this, node] { Undrain(node); });
}

void FaultInjector::Heal() {
  healed_ = true;
  lagging_ = 0;
  Note("none from now on");
  cluster_.database.Start();
  cluster_.database.clock().StepWall(-cluster_.database.clock().Stepped());
  for (std::size_t i = 0; i < kServers; ++i) {
    cluster_.ensemble.StartServer(i);
    cluster_.ensemble.SetLag(i, milliseconds(3));
  }
  for (SimulatedWorker& worker : workers_) {
    worker.process().database = {};
    worker.process().tree = {};
    worker.Start();
    cluster_.ensemble.WriteNow({{TreeWrite::Kind::Remove, "/control/drain/" + worker.name()}});
  }
  std::vector<std::string> pauses;
  for (const auto& [path, node] : cluster_.ensemble.head().nodes()) {
    if (path.starts_with("/control/pause/")) pauses.push_back(path);
  }
  for (const std::string& path : pauses) cluster_.ensemble.WriteNow({{TreeWrite::Kind::Remove, path}});
}

}  // namespace millrace::engine
