#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "coordinator/alerts/watch.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/process/alert_place.h"
#include "coordinator/app/process/followed_file.h"
#include "coordinator/app/process/worker_host.h"
#include "coordinator/app/process/worker_place.h"
#include "coordinator/coordination/local/local_control_plane.h"
#include "coordinator/upkeep/upkeep.h"
#include "framework/base/log.h"
#include "framework/policy/load_balance.h"
#include "framework/store/sqlite/lock.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenRounds = std::chrono::seconds(30);  // of the upkeep

// The configuration file, read again.
using ReadConfig = std::function<Result<Config>()>;

// No cluster: the shards of the command line. Each process sees to their upkeep itself, at leisure; two at
// once do no harm.
class LocalEnvironment final : public WorkerEnvironment {
 public:
  LocalEnvironment(LocalControlPlane control, Shards& shards, LocalAlertPlace::Types types,
                   bool shows_progress, FollowedFile file, ReadConfig read, const Supervision& supervision)
      : control_(std::move(control)),
        file_(std::move(file)),
        read_(std::move(read)),
        supervision_(supervision),
        shards_(shards),
        progress_(shards, shows_progress),
        place_(control_, std::move(types)),
        upkeep_({.shards = [this] { return control_.Shards(); },
                 .config = [this] { return control_.CurrentConfig(); },
                 .leading = [] { return true; },
                 .ownership = [] { return nullptr; },
                 .changed = [] {},
                 .round = kBetweenRounds,
                 .schedules = [this] { return Schedules(); },
                 .breakers = [this] { return place_.Breakers(); }}),
        alerts_({.clock = clock_,
                 .shards = [this] { return control_.Shards(); },
                 .config = [this] { return control_.CurrentConfig(); },
                 .place = [this] { return place_.Now(); },
                 .from = HostName()}) {}

  ControlPlane& control() override { return control_; }
  Registry& metrics() override { return metrics_; }
  Status Join(const Worker&) override { return alerts_.Start(); }
  Status Update(const Worker& worker) override {
    if (file_.Changed(clock_.Now())) TakeConfig();
    upkeep_.Update();
    place_.Follow(worker);
    progress_.Update(worker.Totals());
    return {};
  }
  bool MayEnd(const IdleSpan& idle) { return upkeep_.MayEnd(idle); }
  bool End() override {
    const bool drawn = progress_.Stop();
    const bool quiet = alerts_.Stop();
    return upkeep_.Stop() && quiet && drawn;
  }
  Result<TaskSummary> Summary(const WorkerStatus& last, WorkerEnd) override {
    return ReadSummary(shards_, last);
  }

 private:
  // Stores hold from the next start. What can't be read changes nothing: whoever wrote it is told.
  void TakeConfig() {
    auto config = read_();
    refused_ = !config;
    if (config) {
      control_.SetConfig(std::move(*config));
    } else {
      LogError("the configuration file has changed and can't be used; what was in force stays in force",
               {{"error", config.error().message}});
    }
  }
  // A server may be another process's, too, which fires by a file of its own.
  ScheduleDuty Schedules() {
    ScheduleDuty duty{.role = ScheduleDuty::Role::Keeps, .removes = true, .config = control_.CurrentConfig()};
    for (const auto& [name, shard] : shards_) {
      duty.shards.push_back(name);
      duty.removes = duty.removes && shard.url.kind == StoreUrl::Kind::Sqlite;
    }
    return duty;
  }

  Registry metrics_;
  LocalControlPlane control_;
  FollowedFile file_;
  const ReadConfig read_;
  const Supervision& supervision_;
  std::atomic<bool> refused_ = false;  // what the file says now
  Shards& shards_;
  WorkerProgress progress_;
  LocalAlertPlace place_;  // asked by the upkeep
  Upkeep upkeep_;
  const SystemClock clock_;
  AlertWatch alerts_;
  // Last: it asks the upkeep.
  const Registry::Reading measured_ = metrics_.OnText([this](Gauges& gauges) {
    upkeep_.Measure(gauges);
    const auto listens = supervision_.Listens(control_.CurrentConfig()->engine);
    gauges.Set("millrace_config_refused", {}, (refused_ ? 1 : 0) + (listens.value_or("").empty() ? 0 : 1));
  });
};

// SQLite takes one worker at a time: the lock is taken before anything in the file is touched.
Status LockSqlite(Shards& shards, std::vector<sqlite::Lock>& locks) {
  for (auto& [name, shard] : shards) {
    if (shard.url.kind != StoreUrl::Kind::Sqlite) continue;
    BOOST_OUTCOME_TRY(lock, sqlite::Lock::Take(shard.url.path));
    locks.push_back(std::move(lock));
  }
  return {};
}

// Nobody else works on a SQLite file; on a server others may run what --handlers keeps from this process.
bool RunsAlone(const WorkerFlags& flags, const Shards& shards) {
  return flags.handlers.empty() || std::all_of(shards.begin(), shards.end(), [](const auto& named) {
           return named.second.url.kind == StoreUrl::Kind::Sqlite;
         });
}

// `shards` are prepared.
Result<ExitCode> HostLocally(const WorkerFlags& flags, const Settings& settings, Shards& shards,
                             FollowedFile file, Supervision& supervision) {
  BOOST_OUTCOME_TRY(numbers, ReadLoadBalance(flags.load_balance));
  std::map<std::string, LocalControlPlane::Shard> served;
  for (const auto& [name, shard] : shards) served[name] = {shard.store, shard.tables};
  BOOST_OUTCOME_TRY(control, LocalControlPlane::Make(served, settings.config, numbers, flags.handlers));
  BOOST_OUTCOME_TRY(state, StateFolder(flags.common));
  BOOST_OUTCOME_TRY(plugins, LoadPluginsToWork(flags.common));
  BOOST_OUTCOME_TRYV(CheckTypes(flags.handlers, settings.config, *plugins));
  BOOST_OUTCOME_TRYV(CheckUses(settings, *plugins));
  TellNumbersBeyond(numbers, shards);
  LocalAlertPlace::Types types;
  if (RunsAlone(flags, shards))
    types = [&](const Config& config) { return TypesRun(config, *plugins, flags.handlers); };
  ReadConfig read = [&]() -> Result<Config> {
    BOOST_OUTCOME_TRY(again, ResolveSettings(flags.common, Variable, kDefaultStore));
    BOOST_OUTCOME_TRYV(CheckUses(again, *plugins));
    return std::move(again.config);
  };
  LocalEnvironment environment(std::move(control), shards, std::move(types),
                               ErrorIsTerminal() && !flags.common.json, std::move(file), std::move(read),
                               supervision);
  WorkerOptions options{flags.id, state, flags.concurrency, flags.until_idle, FormatLoadBalance(numbers)};
  options.may_end = [&environment](const IdleSpan& idle) { return environment.MayEnd(idle); };
  return HostWorker(flags, std::move(options), *plugins, environment, supervision);
}

Result<ExitCode> RunOnStores(const WorkerFlags& flags, const Settings& settings, Missing missing) {
  FollowedFile file(settings.config_file);
  BOOST_OUTCOME_TRY(limit, ReadDuration("--wait", flags.wait));
  BOOST_OUTCOME_TRY(shards, OpenShards(settings));
  CatchStopSignals();
  BOOST_OUTCOME_TRY(supervision, Supervision::Begin(flags.http, settings.config.engine));
  for (const std::string& trouble : AlertTroubles(settings.config)) PrintNote("note: " + trouble);
  std::vector<sqlite::Lock> locks;
  BOOST_OUTCOME_TRYV(LockSqlite(shards, locks));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(ReachPatiently(shard.store->Describe(), limit,
                                      [&shard = shard, missing](Micros) { return Reach(shard, missing); }));
    BOOST_OUTCOME_TRYV(ReadTables(shard, missing));
  }
  return HostLocally(flags, settings, shards, std::move(file), *supervision);
}

// They would have no effect.
Status RefuseClusterFlags(const WorkerFlags& flags) {
  const std::pair<bool, const char*> given[] = {
      {flags.weight != 1, "--weight"},
      {!flags.shards.empty(), "--shards"},
      {!flags.tables.empty(), "--tables"},
      {flags.no_coordinate, "--no-coordinate"},
      {flags.session_timeout != WorkerFlags().session_timeout, "--session-timeout"},
      {!flags.doorbell_address.empty(), "--doorbell-address"}};
  for (const auto& [is, flag] : given) {
    if (is)
      return Fail(ErrorCode::Invalid, std::string(flag) + " is for a worker of a cluster: give --zk, too");
  }
  return {};
}

}  // namespace

Result<ExitCode> RunRun(const WorkerFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags.common, Variable, kDefaultStore));
  BOOST_OUTCOME_TRYV(CheckForRun(flags.common, settings));
  for (const auto& [name, shard] : settings.shards) {
    PrintNote("store " + shard.url +
              (settings.store_from == "the default" ? " (the default; --store names another)" : ""));
  }
  return RunOnStores(flags, settings, Missing::Make);
}

Result<ExitCode> RunWorker(const WorkerFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags.common, Variable, ""));
  settings.doorbell = flags.doorbell;
  if (!settings.cluster) {
    BOOST_OUTCOME_TRYV(RefuseClusterFlags(flags));
    return RunOnStores(flags, settings, Missing::Refuse);
  }
  BOOST_OUTCOME_TRYV(CheckForCluster(settings));
  CatchStopSignals();
  return RunClusterWorker(flags, settings);
}

}  // namespace millrace::engine
