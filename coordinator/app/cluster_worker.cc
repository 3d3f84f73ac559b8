#include "coordinator/app/cluster_worker.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cluster_process.h"
#include "coordinator/app/handler.h"
#include "coordinator/app/stop_signals.h"
#include "coordinator/app/worker_place.h"
#include "coordinator/app/worker_report.h"
#include "framework/base/random.h"
#include "framework/base/time_text.h"
#include "framework/metrics/registry.h"
#include "framework/worker/worker.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

constexpr Micros kTick = std::chrono::milliseconds(50);
// With --until-idle: for so long a worker waits for its first slices before it believes that there are none
// for it.
constexpr Micros kFirstSlices = std::chrono::seconds(15);

// Hides the shards until the first assignment, so that --until-idle does not end before the work has begun.
class AssignedShards final : public ShardSource {
 public:
  AssignedShards(ClusterProcess& process, bool wait) : process_(process), wait_(wait) {}
  std::map<std::string, std::shared_ptr<Store>> Shards() override {
    const bool assigned =
        process_.source().View()->generation > 0 || BootClock::now() - begun_ > kFirstSlices;
    return wait_ && !assigned ? std::map<std::string, std::shared_ptr<Store>>{} : process_.shards().Shards();
  }

 private:
  ClusterProcess& process_;
  const bool wait_;
  const BootTime begun_ = BootClock::now();
};

struct Timing {
  Micros session_timeout{};
  Micros wait{};
};

Result<Timing> ReadTiming(const std::string& session_timeout, const std::string& wait) {
  const auto session = ParseDuration(session_timeout);
  if (!session) return Fail(ErrorCode::Invalid, "--session-timeout: " + session.error().message);
  if (*session < std::chrono::seconds(1) || *session > std::chrono::minutes(5)) {
    return Fail(ErrorCode::Invalid, "--session-timeout: give between 1s and 5m");
  }
  const auto limit = ParseDuration(wait);
  if (!limit) return Fail(ErrorCode::Invalid, "--wait: " + limit.error().message);
  return Timing{*session, *limit};
}

// The worker until it ends, or until its id turns out to be another's.
Result<WorkerEnd> Watch(Worker& worker, ClusterProcess& process) {
  StopOnSignals stop(worker);
  bool left = false;
  Status good;
  while (true) {
    if (auto end = worker.WaitFor(kTick)) {
      if (!good) return Fail(good.error());
      return *end;
    }
    if (!left && stop.Look()) {  // others may begin with its slices while it finishes what runs
      left = true;
      (void)process.Stop();  // asked again at the end
    }
    if (left) {
      stop.Look();
      continue;
    }
    good = process.Update();
    if (good) continue;
    left = true;
    worker.Stop();
  }
}

// A cluster goes on without this worker: what is left in it is told by one that works until there is nothing.
Result<MillSummary> SummaryOf(const std::map<std::string, std::shared_ptr<Store>>& stores,
                              const WorkerStatus& status) {
  Shards shards;
  for (const auto& [name, store] : stores) {
    BOOST_OUTCOME_TRY(tables, store->OpenSchema()->Tables());
    shards[name].store = store;
    shards[name].tables = std::move(tables);
  }
  return ReadSummary(shards, status);
}

}  // namespace

Result<ExitCode> HostClusterWorker(const MillFlags& flags, const Settings& settings) {
  BOOST_OUTCOME_TRY(timing, ReadTiming(flags.session_timeout, flags.wait));
  BOOST_OUTCOME_TRY(state, StateFolder(flags.common));
  BOOST_OUTCOME_TRY(plugins, LoadPlugins(flags.common));
  BOOST_OUTCOME_TRY(process, ClusterProcess::Make(settings, timing.session_timeout, timing.wait));
  BOOST_OUTCOME_TRYV(CheckLimits(flags, settings, *plugins));

  const SystemClock clock;
  Registry metrics;
  ClusterSource& source = process->source();
  AssignedShards shards(*process, flags.until_idle);
  WorkerOptions options{flags.id, state, flags.concurrency, flags.until_idle, "", true};
  auto worker = std::make_unique<Worker>(
      Worker::Parts{clock, shards, *plugins, source, source, source, metrics}, options);
  const BootTime begun = clock.Now();
  BOOST_OUTCOME_TRYV(worker->Start());

  const std::string id = worker->Status().worker;
  BOOST_OUTCOME_TRY(document, PlaceOf(flags, id));
  document.limits.handlers = TypesRun(settings.config, *plugins, flags.handlers);
  StatusTeller teller(*worker);
  BOOST_OUTCOME_TRYV(process->Start({id, document, true, !flags.no_coordinate, LimitTo(flags.handlers),
                                     [&teller, &process] { return teller.Tell(process->ShardRefusals()); },
                                     [&plugins, &flags](const Config& config) {
                                       return std::optional(TypesRun(config, *plugins, flags.handlers));
                                     }}));
  const auto end = Watch(*worker, *process);
  const Micros took = clock.Now() - begun;
  const WorkerTotals totals = worker->Totals();
  const Result<MillSummary> summary = flags.until_idle && end && *end == WorkerEnd::Idle
                                          ? SummaryOf(process->shards().Shards(), worker->Status())
                                          : Fail(ErrorCode::NotFound, "");
  const bool left_threads = !process->Stop() || worker->LeftThreads();
  if (!left_threads) worker.reset();
  const ExitCode code = end ? ExitCodeOf(*end) : ExitCodeOf(end.error().code);
  if (end) {
    PrintSummary(flags, summary, totals, took, *end);
  } else {
    PrintError(end.error().message);
  }
  if (left_threads) {  // they still use what this function owns
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));
  }
  return code;
}

Result<ExitCode> RunCoordinator(const CoordinatorOptions& options) {
  BOOST_OUTCOME_TRY(timing, ReadTiming(options.session_timeout, options.wait));
  BOOST_OUTCOME_TRYV(options.id.empty() ? Status() : CheckWorkerId(options.id));
  BOOST_OUTCOME_TRY(settings, ResolveCluster(options.common, Variable));
  CatchStopSignals();
  BOOST_OUTCOME_TRY(process, ClusterProcess::Make(settings, timing.session_timeout, timing.wait));
  const std::string id = options.id.empty() ? HostName() + "-" + std::to_string(getpid()) : options.id;
  WorkerDocument document;
  document.incarnation = id + "." + Random::FromSystem().Hex(12);
  BOOST_OUTCOME_TRYV(process->Start({id, document}));
  while (StopSignalsSeen() == 0) {
    BOOST_OUTCOME_TRYV(process->Update());
    poll(nullptr, 0, static_cast<int>(kTick.count() / 1000));
  }
  if (!process->Stop()) std::_Exit(static_cast<int>(ExitCode::Done));
  return ExitCode::Done;
}

}  // namespace millrace::engine
