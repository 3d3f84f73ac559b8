// millrace status: reads the shards and the cluster, waits where only watching can tell, and prints what
// status_report.h makes of it.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <set>

#include "coordinator/alerts/alert_shard.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/command/shards.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/schedule/schedule_book.h"
#include "coordinator/app/status/ended_rates.h"
#include "coordinator/app/status/status_report.h"
#include "framework/base/time_text.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

struct StatusOptions {
  CommonFlags common;
  std::string shard;
  std::string sample = "1s";
  bool watch = false;
};

constexpr Micros kBetweenBeats = std::chrono::milliseconds(100);
constexpr Micros kBetweenScreens = std::chrono::seconds(2);
constexpr Micros kLongestSample = std::chrono::minutes(1);
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

// Whether a process that registered on this host is there no more.
bool ProcessGone(const Incarnation& incarnation) {
  return incarnation.host == HostName() && kill(static_cast<pid_t>(incarnation.pid), 0) != 0 &&
         errno == ESRCH;
}

std::vector<std::string> NamesOf(const std::vector<BatchGlance::Seen>& batches) {
  std::vector<std::string> names;
  for (const BatchGlance::Seen& one : batches) names.push_back(one.name);
  return names;
}

// One shard, with what was seen of its workers. One thread.
class ShardLook {
 public:
  explicit ShardLook(Shard& shard)
      : shard_(shard),
        operations_(shard.store->OpenOperations()),
        overview_(shard.store->OpenOverview()),
        incarnations_(shard.store->OpenIncarnations()),
        permits_(shard.store->OpenPermits()) {}

  Status GlanceAtBatches(BatchGlance& glance) {
    BOOST_OUTCOME_TRYV(Prepare(shard_, Missing::Refuse));
    BOOST_OUTCOME_TRY(seen, operations_->GlanceAtBatches(kShownBatches));
    glance = std::move(seen);
    return {};
  }
  // The rows of those here, by their names, that the glance has not shown.
  Status FindBatches(const std::vector<std::string>& names, BatchGlance& glance) {
    const auto batches = shard_.store->OpenBatches();
    for (const std::string& name : names) {
      if (HasRowOf(glance, name)) continue;
      BOOST_OUTCOME_TRY(found, batches->Find(name));
      if (found) glance.batches.push_back({name, found->state, found->created_at});
    }
    return {};
  }
  // `batches`: whose counts are wanted by themselves.
  Status Read(const std::vector<std::string>& batches, ShardFacts& facts) {
    facts.tables = shard_.tables;
    BOOST_OUTCOME_TRYV(LookAtBeats());
    BOOST_OUTCOME_TRYV(ReadTotals(batches, facts));
    const std::vector<TableName> tables = NamesOf(shard_.tables);
    BOOST_OUTCOME_TRY(waiting, overview_->Waiting(tables));
    facts.waiting = std::move(waiting);
    BOOST_OUTCOME_TRY(failed, overview_->Failed(tables, facts.totals));
    facts.failed = std::move(failed);
    BOOST_OUTCOME_TRY(pauses, operations_->Pauses());
    facts.pauses = std::move(pauses);
    if (!permits_) return {};
    BOOST_OUTCOME_TRY(permits, permits_->Holders());
    std::erase_if(permits, [](const Permit& one) { return one.lapsed; });  // whoever wants it has it
    facts.permits = std::move(permits);
    BOOST_OUTCOME_TRY(home, permits_->Home());
    facts.permit_home = std::move(home);
    return {};
  }
  Status ReadTotals(const std::vector<std::string>& batches, ShardFacts& facts) {
    BOOST_OUTCOME_TRY(totals, operations_->TypeTotals(batches));
    facts.totals = std::move(totals);
    return {};
  }
  Status LookAtBeats() {
    BOOST_OUTCOME_TRY(peers, incarnations_->Peers());
    peers_ = std::move(peers);
    beats_.Look(BootClock::now(), peers_);
    return {};
  }

  bool HasWorkers() const { return !peers_.empty(); }
  // Every worker's life is certain now.
  bool Decided(BootTime now) const {
    return std::all_of(peers_.begin(), peers_.end(),
                       [&](const PeerBeat& peer) { return LifeOf(peer, now) != WorkerLife::Unsure; });
  }
  // A worker of several shards has an incarnation in each, of one name.
  void AddWorkers(std::map<std::string, WorkerFacts>& workers) const {
    const BootTime now = BootClock::now();
    for (const PeerBeat& peer : peers_) {
      WorkerFacts seen;
      seen.name = peer.incarnation.worker;
      seen.place = peer.incarnation.host + ":" + std::to_string(peer.incarnation.pid);
      seen.life = LifeOf(peer, now);
      const BeatWatch::Sign& sign = beats_.signs().at(peer.incarnation.id);
      if (sign.moved) seen.last_sign = now - sign.since;
      seen.load_balance = peer.incarnation.slices;
      const auto [at, is_new] = workers.try_emplace(seen.name + " " + seen.place, seen);
      WorkerFacts& worker = at->second;
      worker.shards.insert(shard_.name);
      // The better of what two shards tell.
      if (!is_new && seen.life < worker.life) worker.life = seen.life;
      if (seen.last_sign && (!worker.last_sign || *seen.last_sign < *worker.last_sign))
        worker.last_sign = seen.last_sign;
    }
  }

 private:
  // A worker beats five times in its lease.
  WorkerLife LifeOf(const PeerBeat& peer, BootTime now) const {
    const BeatWatch::Sign& sign = beats_.signs().at(peer.incarnation.id);
    const Micros still = now - sign.since;
    if (still < peer.incarnation.lease * 3 / 10) return sign.moved ? WorkerLife::Alive : WorkerLife::Unsure;
    if (!sign.beat || ProcessGone(peer.incarnation)) return WorkerLife::Gone;
    return WorkerLife::Silent;
  }

  Shard& shard_;
  const std::unique_ptr<TaskOperations> operations_;
  const std::unique_ptr<OverviewStore> overview_;
  const std::unique_ptr<IncarnationStore> incarnations_;
  const std::unique_ptr<PermitStore> permits_;
  std::vector<PeerBeat> peers_;
  BeatWatch beats_;
};

WorkerFacts WorkerOf(const ClusterSnapshot& snapshot, const std::string& id, WallTime now) {
  WorkerFacts worker;
  worker.name = id;
  worker.state = StateOf(snapshot, id);
  worker.slices = snapshot.SliceCount(id);
  const auto document = snapshot.workers.find(id);
  if (document == snapshot.workers.end()) {
    worker.life = WorkerLife::Gone;
    return worker;
  }
  worker.place = document->second.host + ":" + std::to_string(document->second.pid);
  worker.handlers = document->second.limits.handlers;
  if (const auto at = snapshot.signs.find(id); at != snapshot.signs.end())
    worker.last_sign = std::max(Micros(0), now - at->second);
  const auto status = snapshot.statuses.find(id);
  if (status == snapshot.statuses.end()) return worker;
  if (const auto running = NumberIfThere(status->second, status_key::kRunning))
    worker.running = static_cast<std::uint64_t>(*running);
  worker.ended_per_second = NumberIfThere(status->second, status_key::kSettleRate);
  return worker;
}

// As `cluster status` judges it, but for what the shards' own rows say.
StatusCluster ClusterOf(ClusterSnapshot snapshot, const StatusFacts& facts) {
  ShardStates states;
  for (const auto& [name, shard] : facts.shards) {
    states[name].reachable = shard.error.empty();
    states[name].tables = shard.tables;
    states[name].backlog += shard.waiting;
  }
  StatusCluster cluster;
  cluster.leader = IsLed(snapshot) ? snapshot.epoch.leader : "";
  cluster.standstill = Standstill(snapshot, states);
  // Of shards that answer it is told by the rows.
  std::erase_if(snapshot.plan.unrunnable, [&](const std::string& type) {
    const auto shard = states.find(type.substr(0, type.find(':')));
    return shard != states.end() && shard->second.reachable;
  });
  cluster.troubles = Troubles(snapshot, states, facts.now);
  cluster.pauses = snapshot.pauses;
  for (const auto& [type, breaker] : snapshot.breakers) cluster.breakers.insert(type);
  cluster.holds = HoldsOf(snapshot);
  return cluster;
}

class StatusReader {
 public:
  static Result<StatusReader> Open(const StatusOptions& options) {
    StatusReader reader;
    BOOST_OUTCOME_TRY(sample, ReadDuration("--sample", options.sample));
    if (sample < Micros(0) || sample > kLongestSample)
      return Fail(ErrorCode::Invalid, "--sample: give between 0s and 1m");
    reader.sample_ = sample;
    reader.common_ = options.common;
    reader.only_ = options.shard;
    BOOST_OUTCOME_TRY(settings, ResolveShards(options.common, kDefaultStore));
    BOOST_OUTCOME_TRYV(reader.Use(std::move(settings)));
    return reader;
  }

  // `alone`: nothing was read before, so that rates and beats take a while to be seen.
  StatusFacts Read(bool alone);
  // Of shards that can't be read, the first error; nullopt: all can.
  const std::optional<Error>& away() const { return away_; }

 private:
  Status Use(Settings settings);
  void ReadConfig();
  void ReadShards(StatusFacts& facts);
  void ReadAlerts(StatusFacts& facts);
  void ReadCluster(StatusFacts& facts);
  void ReadSchedules(StatusFacts& facts);
  void Watch(StatusFacts& facts);
  void AskPlugins(StatusFacts& facts);
  void NoteAway(ShardFacts& shard, const Status& read);

  CommonFlags common_;
  std::string only_;  // the shard that is asked; empty: all
  Settings settings_;
  Micros sample_{};
  std::unique_ptr<Shards> shards_;
  std::map<std::string, ShardLook> looks_;
  std::unique_ptr<PluginSet> plugins_;  // null: they could not be loaded so far
  std::unique_ptr<ClusterClient> client_;
  std::optional<Error> away_;
  EndedRates rates_;
};

Status StatusReader::Use(Settings settings) {
  BOOST_OUTCOME_TRY(shards, OpenShards(settings, only_));
  looks_.clear();
  rates_ = {};
  shards_ = std::make_unique<Shards>(std::move(shards));
  for (auto& [name, shard] : *shards_) looks_.try_emplace(name, shard);
  settings_ = std::move(settings);
  return {};
}

// Of each screen but the first, what is configured by now; where that can't be had the last holds.
void StatusReader::ReadConfig() {
  if (!client_ || !common_.store.empty()) return;
  const auto layers = ReadLayers(*client_, settings_);
  if (!layers && layers.error().code == ErrorCode::Unavailable) client_.reset();
  if (!layers || layers->Effective()->shards.empty()) return;
  Settings settings = settings_;
  settings.config = *layers->Effective();
  settings.shards = settings.config.shards;
  if (settings.shards == settings_.config.shards) {
    settings_ = std::move(settings);
  } else {
    (void)Use(std::move(settings));
  }
}

void StatusReader::NoteAway(ShardFacts& shard, const Status& read) {
  if (read) return;
  shard.error = read.error().message;
  if (!away_) away_ = read.error();
}

// Several at once: one that is away keeps nobody waiting, and two take as long as one where the servers have
// the cores. Which batches are shown all shards decide: the row of one stands in its home alone, and its
// counts wherever it has tasks.
void StatusReader::ReadShards(StatusFacts& facts) {
  struct Job {
    ShardLook* look;
    ShardFacts* shard;
    BatchGlance* glance;
    Status read = {};
  };
  std::vector<BatchGlance> glances(looks_.size());
  std::vector<Job> jobs;
  for (auto& [name, look] : looks_) {
    ShardFacts& shard = facts.shards[name];
    shard.address = shards_->at(name).store->Describe();
    jobs.push_back({&look, &shard, &glances[jobs.size()]});
  }
  if (jobs.empty()) return;
  const auto for_each = [&](const auto& read) {
    ForEachAtOnce(jobs.size(), [&](std::size_t n) {
      Job& job = jobs[n];
      if (job.read) job.read = read(job);
    });
  };
  for_each([](Job& job) { return job.look->GlanceAtBatches(*job.glance); });
  ChooseBatches(glances, facts);
  const std::vector<std::string> plain = PlainSomewhere(glances);
  if (!plain.empty() && jobs.size() > 1) {
    for_each([&](Job& job) { return job.look->FindBatches(plain, *job.glance); });
    ChooseBatches(glances, facts);
  }
  const std::vector<std::string> names = NamesOf(facts.batches);
  for_each([&](Job& job) { return job.look->Read(names, *job.shard); });
  away_.reset();
  const bool all = shards_->size() == settings_.shards.size();
  for (const Job& job : jobs) {
    if (!all) job.shard->permit_home.clear();  // the others have a say in it
    if (job.read) facts.now = job.shard->waiting.now;
    NoteAway(*job.shard, job.read);
  }
}

void StatusReader::ReadAlerts(StatusFacts& facts) {
  if (settings_.config.alerts.empty()) return;
  StoresByShard answering;
  for (const auto& [name, shard] : facts.shards) {
    if (shard.error.empty()) answering[name] = shards_->at(name).store;
  }
  const bool all_told = answering.size() == settings_.shards.size();
  facts.alerts.emplace();
  for (const auto& [name, alert] : settings_.config.alerts) {
    const SaidAlert said = LastSaid(answering, name, BootClock::now());
    const std::string type = alert.handler == "*" ? "" : alert.handler;
    const std::string of = said.names.empty() ? type : Joined(said.names);
    std::string text = WordOf(alert.kind) + (of.empty() ? "" : " of " + of);
    if (said.since != WallTime{}) text += ", since " + FormatTime(said.since);
    const auto fires = said.firing || all_told ? std::optional(said.firing) : std::nullopt;
    facts.alerts->push_back({name, fires, std::move(text)});
  }
}

// Of one shard among several it is not known which schedules are its own.
void StatusReader::ReadSchedules(StatusFacts& facts) {
  if (settings_.config.schedules.empty() || shards_->size() < settings_.shards.size()) return;
  std::map<std::string, ShardScheduleFacts> told;
  for (auto& [name, shard] : *shards_) {
    const std::string& error = facts.shards.at(name).error;
    told[name] = ReadShardSchedules(
        shard, error.empty() ? Status() : Status(Fail(ErrorCode::Unavailable, error)), settings_.config);
  }
  facts.schedules = FactsOf(settings_.config, told, HandlersOf(facts), facts.now);
}

// What the cluster knows of its workers stands for what their beats would tell.
void StatusReader::ReadCluster(StatusFacts& facts) {
  if (!settings_.cluster || IsOtherStore(common_)) return;
  facts.cluster.emplace();
  if (!client_) {
    auto client = ClusterClient::Open(*settings_.cluster, std::chrono::seconds(5));
    if (!client) {
      facts.cluster->unreached = client.error().message;
      return;
    }
    client_ = std::move(*client);
  }
  const auto snapshot = ReadSnapshot(*client_);
  if (!snapshot) {
    facts.cluster->unreached = snapshot.error().message;
    client_.reset();
    return;
  }
  facts.cluster = ClusterOf(*snapshot, facts);
  std::set<std::string> ids;
  for (const auto& [id, document] : snapshot->workers) ids.insert(id);
  for (const auto& [id, document] : snapshot->assigned) {
    if (!document.slices.empty()) ids.insert(id);
  }
  for (const std::string& id : ids) facts.workers.push_back(WorkerOf(*snapshot, id, facts.now));
}

// Looks on until the sample is over and every beat has moved, or has stood still for longer than it may.
void StatusReader::Watch(StatusFacts& facts) {
  const BootTime began = *rates_.last();
  const auto certain = [&](BootTime now) {
    return std::all_of(looks_.begin(), looks_.end(), [&](const auto& look) {
      return !facts.shards.at(look.first).error.empty() || look.second.Decided(now);
    });
  };
  for (BootTime now = BootClock::now(); StopSignalsSeen() == 0; now = BootClock::now()) {
    if (now - began >= sample_ && certain(now)) break;
    RestUnlessStopped(kBetweenBeats);
    for (auto& [name, look] : looks_) {
      ShardFacts& shard = facts.shards.at(name);
      if (!shard.error.empty()) continue;
      NoteAway(shard, look.LookAtBeats());
    }
  }
  for (auto& [name, look] : looks_) {
    ShardFacts& shard = facts.shards.at(name);
    if (!shard.error.empty()) continue;
    NoteAway(shard, look.ReadTotals(NamesOf(facts.batches), shard));
  }
}

// Only of interest where something is stuck, and costs opening every plugin: once, however long it is
// watched.
void StatusReader::AskPlugins(StatusFacts& facts) {
  const std::set<std::string> idle = IdleTypes(facts);
  if (idle.empty()) return;
  if (!plugins_) plugins_ = PluginsAtHand(common_);
  if (!plugins_) return;
  const auto at_hand = HandlersOf(plugins_.get());
  facts.plugin_handlers.emplace();
  for (const auto& [handler, info] : *at_hand) facts.plugin_handlers->insert(handler);
  for (const auto& [type, config] : settings_.config.handlers) {
    if (at_hand->contains(config.uses)) facts.plugin_handlers->insert(type);
  }
  for (const std::string& type : idle) {
    const std::string why = WhyNotOpened(*plugins_, settings_.config, type);
    if (!why.empty()) facts.cannot_open[type] = why;
  }
}

StatusFacts StatusReader::Read(bool alone) {
  StatusFacts facts;
  facts.now = SystemClock().WallNow();
  ReadConfig();
  ReadShards(facts);
  ReadAlerts(facts);
  facts.handlers = settings_.config.handlers;
  facts.has_config = !settings_.config_file.empty();
  facts.brake = settings_.config.engine.brake_latency;
  const bool workers = std::any_of(looks_.begin(), looks_.end(), [&](const auto& look) {
    return facts.shards.at(look.first).error.empty() && look.second.HasWorkers();
  });
  ReadCluster(facts);
  ReadSchedules(facts);
  const bool by_beats = !facts.cluster || !facts.cluster->unreached.empty();
  if (alone && by_beats && workers && sample_ > Micros(0)) {
    rates_.Look(facts, BootClock::now());
    Watch(facts);
  }
  if (!alone || rates_.last()) rates_.Look(facts, BootClock::now());
  if (by_beats) {
    std::map<std::string, WorkerFacts> seen;
    for (const auto& [name, look] : looks_) {
      if (facts.shards.at(name).error.empty()) look.AddWorkers(seen);
    }
    for (auto& [name, worker] : seen) facts.workers.push_back(std::move(worker));
    if (!facts.cluster) AskPlugins(facts);
  }
  return facts;
}

void Show(const StatusOptions& options, const StatusFacts& facts) {
  const bool terminal = OutputIsTerminal();
  if (options.common.json) return PrintJson(StatusJson(facts), terminal && !options.watch ? 2 : -1);
  if (options.watch && terminal) std::fputs(kClearScreen, stdout);
  PrintLine(StatusText(facts, terminal ? TerminalWidth() : 0));
  if (options.watch && !terminal) PrintLine("");
  std::fflush(stdout);
}

Result<ExitCode> WatchStatus(const StatusOptions& options, StatusReader& reader) {
  CatchStopSignals();
  for (bool alone = true; StopSignalsSeen() == 0 && OutputError() == 0; alone = false) {
    const StatusFacts facts = reader.Read(alone);
    if (StopSignalsSeen() > 0) break;
    Show(options, facts);
    RestUnlessStopped(kBetweenScreens);
  }
  return ExitCode::Done;
}

Result<ExitCode> RunStatus(const StatusOptions& options) {
  BOOST_OUTCOME_TRY(reader, StatusReader::Open(options));
  if (options.watch) return WatchStatus(options, reader);
  const StatusFacts facts = reader.Read(true);
  if (reader.away() && facts.shards.size() == 1) return Fail(*reader.away());
  Show(options, facts);
  if (reader.away()) return ExitCodeOf(reader.away()->code);
  return CanRun(facts) ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace

void AddStatus(CLI::App& root, Chosen& chosen) {
  const auto status =
      AddCommand(root, chosen, "status", "Show workers, tasks, failures, what is wrong and what to do",
                 "  millrace status\n  millrace status --watch", RunStatus);
  AddFolders(*status.app, status->common);
  status.Add("--shard", status->shard, "this shard alone", "NAME");
  status
      .Add("--sample", status->sample, "watch counters and beats for so long where workers run; 0s: at once",
           "TIME")
      ->capture_default_str();
  status.app->add_flag("--watch", status->watch, "show it again every 2 s, until Ctrl-C");
}

}  // namespace millrace::engine
