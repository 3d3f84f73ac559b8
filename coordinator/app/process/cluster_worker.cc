// `millrace worker --zk` and `millrace coordinator`: processes of a cluster.
#include <unistd.h>

#include <cstdlib>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/process/cluster_process.h"
#include "coordinator/app/process/supervision.h"
#include "coordinator/app/process/worker_host.h"
#include "coordinator/app/process/worker_place.h"
#include "coordinator/app/process/worker_report.h"
#include "framework/base/log.h"
#include "framework/base/random.h"
#include "framework/threads/thread.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenUpdates = std::chrono::milliseconds(500);
// With --until-idle: for so long a worker waits for its first slices before it believes that there are none
// for it.
constexpr Micros kFirstSlices = std::chrono::seconds(15);
constexpr const char* kOwnHostAlone = "127.0.0.1";  // and a free port

struct SessionTiming {
  Micros session_timeout{};
  Micros wait{};
};

Result<SessionTiming> ReadSessionTiming(const std::string& session_timeout, const std::string& wait) {
  BOOST_OUTCOME_TRY(session, ReadDuration("--session-timeout", session_timeout));
  if (session < std::chrono::seconds(1) || session > std::chrono::minutes(5)) {
    return Fail(ErrorCode::Invalid, "--session-timeout: give between 1s and 5m");
  }
  BOOST_OUTCOME_TRY(limit, ReadDuration("--wait", wait));
  return SessionTiming{session, limit};
}

// A cluster goes on without this worker: what is left in it is told by one that works until there is nothing.
Result<TaskSummary> SummaryOf(const StoresByShard& stores, const WorkerStatus& status) {
  Shards shards;
  for (const auto& [name, store] : stores) {
    BOOST_OUTCOME_TRY(tables, store->OpenSchema()->Tables());
    shards[name].store = store;
    shards[name].tables = std::move(tables);
  }
  return ReadSummary(shards, status);
}

std::map<std::string, std::string> DatabasesOf(const WorkerStatus& status) {
  std::map<std::string, std::string> databases;
  for (const ShardStatus& shard : status.shards) {
    if (!shard.database.empty() && !shard.retiring) databases[shard.shard] = shard.database;
  }
  return databases;
}

class ClusterEnvironment final : public WorkerEnvironment {
 public:
  ClusterEnvironment(const WorkerFlags& flags, const Settings& settings, const PluginSet& plugins,
                     ClusterProcess& process, const Supervision& supervision)
      : flags_(flags), settings_(settings), plugins_(plugins), process_(process), supervision_(supervision) {}

  ControlPlane& control() override { return process_.control(); }
  Registry& metrics() override { return process_.metrics(); }
  Status Join(const Worker& worker) override {
    const std::string id = worker.Status().worker;
    BOOST_OUTCOME_TRY(document, PlaceOf(flags_, id));
    const auto types = [this](const Config& config) {
      return std::optional(TypesRun(config, plugins_, flags_.handlers));
    };
    document.limits.handlers = types(settings_.config);
    document.doorbell = worker.Status().doorbell;
    teller_.emplace(worker, plugins_);
    return process_.Start({id, std::move(document), true, !flags_.no_coordinate, LimitTo(flags_.handlers),
                           [this] {
                             process_.control().ReadAnew();
                             return teller_->Tell(process_.control().Refusals());
                           },
                           types, [&worker] { return DatabasesOf(worker.Status()); },
                           [this](const EngineConfig& engine) { return supervision_.Listens(engine); },
                           [&worker](const auto& config) { return worker.Refused(config); },
                           [this] { return teller_->Pressing(); }});
  }
  std::string NoPlan() const override { return process_.NoPlan(); }
  std::string StandsStill(Micros patience) const override { return process_.StandsStill(patience); }
  Status Update(const Worker&) override { return left_ ? Status() : process_.Update(); }
  // Servers that do not answer hold it up: the next signal is heard all the same.
  void Leave() override {
    left_ = true;
    const auto leave = [this] { (void)process_.Stop(); };  // asked again at the end
    if (!leaving_.Start("leave", leave)) leave();
  }
  bool End() override {
    leaving_.Join();
    return process_.Stop();
  }
  Result<TaskSummary> Summary(const WorkerStatus& last, WorkerEnd end) override {
    if (!flags_.until_idle || end != WorkerEnd::Idle) return Fail(ErrorCode::NotFound, "");
    return SummaryOf(process_.control().Opened(), last);
  }

 private:
  const WorkerFlags& flags_;
  const Settings& settings_;
  const PluginSet& plugins_;
  ClusterProcess& process_;
  const Supervision& supervision_;
  std::optional<StatusTeller> teller_;
  bool left_ = false;
  Thread leaving_;
};

}  // namespace

Result<ExitCode> RunClusterWorker(const WorkerFlags& flags, const Settings& settings) {
  BOOST_OUTCOME_TRY(timing, ReadSessionTiming(flags.session_timeout, flags.wait));
  BOOST_OUTCOME_TRYV(flags.id.empty() ? Status() : CheckWorkerId(flags.id));
  BOOST_OUTCOME_TRYV(ReadLoadBalance(flags.load_balance));
  BOOST_OUTCOME_TRY(supervision, Supervision::Begin(flags.http, settings.config.engine));
  BOOST_OUTCOME_TRY(state, StateFolder(flags.common));
  BOOST_OUTCOME_TRY(plugins, LoadPluginsToWork(flags.common));
  BOOST_OUTCOME_TRY(process, ClusterProcess::Make(settings, timing.session_timeout, timing.wait,
                                                  flags.until_idle ? kFirstSlices : Micros(0)));
  BOOST_OUTCOME_TRYV(CheckIdIsFree(flags, settings));
  BOOST_OUTCOME_TRYV(CheckLimits(flags, settings, *plugins));
  if (Status uses = CheckUses(settings, *plugins); !uses)  // others may have them
    LogWarning("tasks of these types can't be run here", {{"why", uses.error().message}});
  ClusterEnvironment environment(flags, settings, *plugins, *process, *supervision);
  const std::string doorbell = flags.doorbell_address.empty() ? kOwnHostAlone : flags.doorbell_address;
  WorkerOptions options{flags.id, state, flags.concurrency, flags.until_idle, "", doorbell, true};
  options.may_end = [&process](const IdleSpan& idle) {
    const bool may = process->MayEnd(idle);
    if (!may) WakeMain();  // what that waits for begins with its next look
    return may;
  };
  return HostWorker(flags, std::move(options), *plugins, environment, *supervision);
}

Result<ExitCode> RunCoordinator(const CoordinatorOptions& options) {
  BOOST_OUTCOME_TRY(timing, ReadSessionTiming(options.session_timeout, options.wait));
  BOOST_OUTCOME_TRYV(options.id.empty() ? Status() : CheckWorkerId(options.id));
  BOOST_OUTCOME_TRY(settings, ResolveCluster(options.common, Variable));
  BOOST_OUTCOME_TRYV(CheckForCluster(settings));
  CatchStopSignals();
  BOOST_OUTCOME_TRY(supervision, Supervision::Begin(options.http, settings.config.engine));
  BOOST_OUTCOME_TRY(process, ClusterProcess::Make(settings, timing.session_timeout, timing.wait));
  const Registry::Reading build = TellBuild(process->metrics());
  const std::string id = options.id.empty() ? HostName() + "-" + std::to_string(getpid()) : options.id;
  WorkerDocument document;
  document.incarnation = id + "." + Random::FromSystem().Hex(12);
  ClusterProcess::Place place{id, document};
  place.listens = [&supervision](const EngineConfig& engine) { return supervision->Listens(engine); };
  BOOST_OUTCOME_TRYV(process->Start(std::move(place)));
  std::unique_ptr<ProcessView::Shown> shown = supervision->Show(
      [&process](Micros patience) {
        const std::string missing = process->NoContact();
        return ProcessFacts{missing.empty() ? std::vector<std::string>() : std::vector{missing},
                            process->StandsStill(patience)};
      },
      [&process] { return process->metrics().Text(); });
  while (StopSignalsSeen() == 0) {
    BOOST_OUTCOME_TRYV(process->Update());
    supervision->Update(process->control().CurrentConfig()->engine);
    AwaitStopSignal(kBetweenUpdates);
  }
  supervision->Stopping();
  shown.reset();
  if (!process->Stop()) std::_Exit(static_cast<int>(ExitCode::Done));
  return ExitCode::Done;
}

}  // namespace millrace::engine
