#include "coordinator/testing/fault_injector.h"

#include <array>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kServers = ModelledEnsemble::kServers;
constexpr Micros kLongestHarm = seconds(8);  // of a way to the ensemble

}  // namespace

void FaultInjector::Schedule(std::size_t count, Micros span) {
  for (std::size_t i = 0; i < count; ++i) {
    times_.After(times_.Between(Micros(0), span), [this] { Strike(); });
  }
}

void FaultInjector::Strike() {
  ++faults_;
  SimulatedWorker& worker = workers_[times_.Below(workers_.size())];
  if (times_.OneIn(11)) {
    StrikeWrite(worker);
    return;
  }
  switch (times_.Below(20)) {
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
    case 7:
      StrikeTreeLink(worker);
      break;
    case 8:
      StrikeDatabase();
      break;
    case 9:
      FailOver(worker);
      break;
    case 10:
      StrikeEnsemble();
      break;
    case 11:
      operator_.TakeOut(worker);
      break;
    case 12:
      StrikeLease(worker);
      break;
    case 13:
      operator_.DeleteNodes();
      break;
    case 14:
      StrikeMany();
      break;
    case 15:
      operator_.Pause();
      break;
    case 16:
    case 17:
      operator_.ChangeConfiguration();
      break;
    case 18:
      StrikeKeys();
      break;
    default:
      StrikeLeader();
      break;
  }
}

void FaultInjector::StrikeProcess(SimulatedWorker& worker) {
  ModelledProcess& process = worker.process();
  const BootTime now = cluster_.timeline.Now();
  switch (times_.Below(4)) {
    case 0:
      worker.EndBy(times_.Below(4));
      times_.EndAfter(milliseconds(50), seconds(6), [&worker] { worker.Start(); });
      break;
    case 1:
    case 2: {
      const Micros pause = times_.Between(milliseconds(100), seconds(10));
      times_.Note(worker.name() + " is stopped for " + std::to_string(pause.count() / 1000) + " ms");
      process.Pause(now + pause, cluster_.timeline.random());
      break;
    }
    default: {
      const std::size_t thread = times_.Below(kThreads);
      times_.Note("thread " + std::to_string(thread) + " of " + worker.name() + " is held up");
      process.threads[thread].Hold(now + times_.Between(milliseconds(100), seconds(8)));
      break;
    }
  }
}

void FaultInjector::StrikeDatabaseLink(SimulatedWorker& worker) {
  DatabaseLink& link = worker.process().databases.at(times_.Below(cluster_.databases.size()));
  switch (times_.Below(5)) {
    case 0:
      times_.Note(worker.name() + " is cut off from a database");
      link.open = false;
      break;
    case 1:
      times_.Note(worker.name() + " loses replies of a database");
      link.lost_replies = 40;
      break;
    case 2:
      times_.Note("statements of " + worker.name() + " arrive late");
      link.late = 50;
      break;
    case 3:
      times_.Note("the way of " + worker.name() + " to a database comes and goes");
      Flap(times_.Between(seconds(1), seconds(6)), [&link](bool open) { link.open = open; });
      return;
    default:
      times_.Note("the way of " + worker.name() + " to a database is slow");
      link.slowest = times_.Between(milliseconds(50), seconds(2));
      break;
  }
  times_.EndAfter(milliseconds(200), seconds(8), [&link] { link = {}; });
}

// Open and closed for a moment each; open at the end.
void FaultInjector::Flap(Micros rest, const std::function<void(bool)>& open) {
  open(false);
  const Micros closed = times_.Between(milliseconds(10), milliseconds(400));
  times_.After(closed, [this, rest, closed, open] {
    open(true);
    const Micros pause = times_.Between(milliseconds(10), milliseconds(400));
    if (rest <= closed + pause) return;
    times_.After(pause, [this, rest, closed, pause, open] { Flap(rest - closed - pause, open); });
  });
}

void FaultInjector::StrikeTreeLink(SimulatedWorker& worker) {
  TreeLinks& links = worker.process().tree;
  const std::uint64_t how = times_.Below(7);
  times_.Note("the way of " + worker.name() + " to the ensemble is harmed, " + std::to_string(how));
  worker.process().tree_harmed_until = cluster_.timeline.Now() + kLongestHarm;
  switch (how) {
    case 0:
      for (TreeLink& link : links) link.to_server = link.to_client = false;
      break;
    case 1:
      for (TreeLink& link : links) link.to_client = false;  // requests arrive, replies do not
      break;
    case 2:
      links[times_.Below(kServers)].to_server = false;
      break;
    case 3:
      for (TreeLink& link : links) link.slowest = times_.Between(milliseconds(50), seconds(2));
      break;
    case 4:
      Flap(times_.Between(seconds(1), seconds(6)), [&links](bool open) {
        for (TreeLink& link : links) link.to_server = link.to_client = open;
      });
      return;
    case 5:  // what has changed is told to nobody
      for (TreeLink& link : links) link.news = false;
      worker.process().tree_harmed_until += kReadAgain;
      break;
    default:
      cluster_.ensemble.ExpireSession(worker.Session());
      break;
  }
  times_.EndAfter(milliseconds(200), kLongestHarm, [this, &links] { Mend(links); });
}

void FaultInjector::Mend(TreeLinks& links) {
  if (!links.front().news) news_lost_ = cluster_.timeline.Now();
  links = {};
}

void FaultInjector::StrikeDatabase() {
  ModelledDatabase& database = cluster_.databases.at(times_.Below(cluster_.databases.size()));
  if (times_.OneIn(3)) {
    const Micros step = times_.Between(-seconds(3), seconds(3));
    times_.Note("a database's wall clock steps by " + std::to_string(step.count() / 1000) + " ms");
    database.clock().StepWall(step);
    return;
  }
  times_.Note("a database is down");
  database.Stop();
  times_.EndAfter(milliseconds(100), seconds(6), [&database] { database.Start(); });
}

// A replica takes over that had not heard of the last commits: ids are given out again, while one worker,
// which is held up, still has what it had before.
void FaultInjector::FailOver(SimulatedWorker& worker) {
  const std::size_t number = times_.Below(cluster_.databases.size());
  ModelledDatabase& database = cluster_.databases.at(number);
  times_.Note("commits of shard " + cluster_.work.shards[number] + " reach no replica from now on");
  const auto copy = database.checked().Keep();
  produce_.some(number);
  times_.EndAfter(
      milliseconds(200), seconds(2), [this, &worker, &database, number, copy, before = database.Failovers()] {
        if (database.Failovers() != before) return;  // another was quicker
        times_.Note("shard " + cluster_.work.shards[number] + " fails over, and loses them");
        database.Stop();
        if (times_.OneIn(2)) {
          for (const ThreadName thread : {ThreadName::FirstLane, ThreadName::SecondLane})
            worker.process().On(thread).Hold(cluster_.timeline.Now() +
                                             times_.Between(milliseconds(500), seconds(2)));
        }
        times_.EndAfter(milliseconds(50), milliseconds(800), [this, &database, number, copy, before] {
          if (database.Failovers() == before) database.FailOver(*copy);
          database.Start();
          produce_.some(number);
        });
      });
}

void FaultInjector::StrikeEnsemble() {
  ModelledEnsemble& ensemble = cluster_.ensemble;
  const std::size_t server = times_.Below(kServers);
  switch (times_.Below(3)) {
    case 0:
      times_.Note("the ensemble is down");
      for (std::size_t i = 0; i < kServers; ++i) ensemble.StopServer(i);
      times_.EndAfter(milliseconds(200), seconds(8), [&ensemble] {
        for (std::size_t i = 0; i < kServers; ++i) ensemble.StartServer(i);
      });
      break;
    case 1:
      times_.Note("server " + std::to_string(server) + " of the ensemble is down");
      ensemble.StopServer(server);
      times_.EndAfter(milliseconds(200), seconds(8), [&ensemble, server] { ensemble.StartServer(server); });
      break;
    default:
      times_.Note("server " + std::to_string(server) + " of the ensemble lags behind");
      ++lagging_;
      ensemble.SetLag(server, times_.Between(milliseconds(100), seconds(2)));
      times_.EndAfter(milliseconds(200), seconds(8), [this, &ensemble, server] {
        --lagging_;
        ensemble.SetLag(server, ModelledEnsemble::kKeepsUp);
      });
      break;
  }
}

void FaultInjector::StrikeLease(SimulatedWorker& worker) {
  const Micros pause = kSimulatedLease + times_.Between(-milliseconds(300), milliseconds(1'300));
  times_.Note(worker.name() + " is stopped for about its lease, and the others' statements are slow");
  for (SimulatedWorker& other : workers_) SetDatabases(other, {.slowest = milliseconds(250)});
  ModelledProcess& process = worker.process();
  SetDatabases(worker, times_.OneIn(2) ? DatabaseLink{.late = 60, .latest = seconds(3)} : DatabaseLink{});
  times_.After(milliseconds(500), [this, &process, pause] {
    process.Pause(cluster_.timeline.Now() + pause, cluster_.timeline.random());
  });
  times_.EndAfter(pause + seconds(1), pause + seconds(3), [this] {
    for (SimulatedWorker& each : workers_) SetDatabases(each, {});
  });
}

void FaultInjector::SetDatabases(SimulatedWorker& worker, const DatabaseLink& link) {
  for (DatabaseLink& each : worker.process().databases) each = link;
}

// Its next claim, or change of permits, is under way until about when it is marked dead, since it is stopped
// once it has sent that.
void FaultInjector::StrikeWrite(SimulatedWorker& worker) {
  DatabaseLink& link = worker.process().databases.at(times_.Below(cluster_.databases.size()));
  const bool claim = times_.OneIn(2);
  times_.Note("the next " + std::string(claim ? "claim" : "change of permits") + " of " + worker.name() +
              " is under way for about a lease");
  link = {};
  const auto next = claim ? &DatabaseLink::next_claim : &DatabaseLink::next_change;
  link.*next = kSimulatedLease + times_.Between(-milliseconds(800), milliseconds(800));
  StopAfterWrite(worker, link.*next, 100);
}

void FaultInjector::StopAfterWrite(SimulatedWorker& worker, Micros& next, int looks) {
  if (next == Micros(0)) {
    worker.process().Pause(cluster_.timeline.Now() + kSimulatedLease + seconds(3),
                           cluster_.timeline.random());
  } else if (looks == 0) {
    next = Micros(0);
  } else {
    times_.After(milliseconds(20),
                 [this, &worker, &next, looks] { StopAfterWrite(worker, next, looks - 1); });
  }
}

// Whoever claims a task gives it back, since it hears nothing of its key; it is cancelled before it starts.
// When the key comes to be entered the task has ended, and another with that key follows.
void FaultInjector::StrikeKeys() {
  const std::size_t shard = times_.Below(cluster_.databases.size());
  const Micros late = times_.Between(seconds(2), seconds(8));
  const std::string& handler = cluster_.work.handlers[times_.Below(cluster_.work.handlers.size())];
  const std::string key = "late key " + std::to_string(faults_);
  times_.Note("the next keys of shard " + cluster_.work.shards[shard] + " are under way for " +
              std::to_string(late.count() / 1000) + " ms");
  for (SimulatedWorker& worker : workers_) worker.process().databases.at(shard).next_keys = late;
  produce_.keyed(shard, handler, key, times_.Between(milliseconds(1), seconds(3)));
  times_.EndAfter(late + seconds(1), late + seconds(4), [this, shard, handler, key] {
    for (SimulatedWorker& worker : workers_) worker.process().databases.at(shard).next_keys = Micros(0);
    produce_.keyed(shard, handler, key, Micros(0));
  });
}

// A rack goes: half of the workers at once, and nobody says farewell.
void FaultInjector::StrikeMany() {
  times_.Note("every second worker crashes");
  for (std::size_t i = times_.Below(2); i < workers_.size(); i += 2) {
    SimulatedWorker& worker = workers_[i];
    worker.Crash();
    times_.EndAfter(milliseconds(500), seconds(9), [&worker] { worker.Start(); });
  }
}

void FaultInjector::StrikeLeader() {
  ModelledEnsemble& ensemble = cluster_.ensemble;
  for (SimulatedWorker& worker : workers_) {
    if (!worker.Leads()) continue;
    times_.Note("what " + worker.name() +
                ", the leader, sends is slow, and its candidacy is removed by hand");
    std::string candidate;
    for (const auto& [path, node] : ensemble.head().nodes()) {
      if (path.starts_with("/election/") && node.owner == worker.Session()) candidate = path;
    }
    TreeLinks& links = worker.process().tree;
    for (TreeLink& link : links) link.slowest = times_.Between(milliseconds(300), milliseconds(1'500));
    times_.EndAfter(milliseconds(0), seconds(4), [&ensemble, candidate] {
      ensemble.WriteNow({{TreeWrite::Kind::Remove, candidate}});
    });
    worker.process().tree_harmed_until = cluster_.timeline.Now() + kLongestHarm;
    times_.EndAfter(seconds(4), kLongestHarm, [this, &links] { Mend(links); });
    operator_.Drain(workers_[times_.Below(workers_.size())]);  // something to decide
    return;
  }
}

void FaultInjector::Heal() {
  times_.Heal();
  lagging_ = 0;
  times_.Note("none from now on");
  for (ModelledDatabase& database : cluster_.databases) {
    database.Start();
    database.clock().StepWall(-database.clock().Stepped());
  }
  for (std::size_t i = 0; i < kServers; ++i) {
    cluster_.ensemble.StartServer(i);
    cluster_.ensemble.SetLag(i, ModelledEnsemble::kKeepsUp);
  }
  for (SimulatedWorker& worker : workers_) {
    SetDatabases(worker, {});
    Mend(worker.process().tree);
    worker.Start();
  }
  operator_.TidyUp();
}

}  // namespace millrace::engine
