#include "coordinator/app/process/worker_host.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/stop_signals.h"

namespace millrace::engine {
namespace {

constexpr Micros kLookEvery = std::chrono::milliseconds(500);

// The first signal asks for an end in good order, the next one that comes after that is heard for one now:
// what came before, while the process was still about to begin, was impatience with the first.
class StopWishes {
 public:
  // Whether it is asked to stop.
  bool Follow(Worker& worker) {
    const int seen = StopSignalsSeen();
    if (seen == 0) return false;
    const BootTime now = BootClock::now();
    if (!heard_) {
      heard_ = now;
      carried_out_ = seen;
      worker.Stop();
      PrintNote("stopping: what runs is finished or given back");
    }
    if (!at_once_ && seen > carried_out_) {
      at_once_ = told_ = true;
      worker.StopNow();
      PrintNote("giving everything back now");
    }
    if (!told_ && now - *heard_ >= kOneStop) {  // before, it would not count
      told_ = true;
      PrintNote("stop it once more to give everything back now");
    }
    return true;
  }

 private:
  std::optional<BootTime> heard_;  // the first one
  int carried_out_ = 0;            // with it
  bool told_ = false;
  bool at_once_ = false;
};

// It had no time to do much. The worker gives up by itself at its deadline.
Result<WorkerEnd> EndUnjoined(Worker& worker, const Error& why) {
  worker.StopNow();
  while (!worker.WaitFor(kLookEvery)) continue;
  return Fail(why);
}

// Until the worker ends, or until its environment says that it must not work.
Result<WorkerEnd> Watch(Worker& worker, WorkerEnvironment& environment, Supervision& supervision) {
  StopWishes wishes;
  bool leaves = false;
  Status good;
  for (;; AwaitStopSignal(kLookEvery)) {
    if (auto end = worker.WaitFor(Micros(0))) {
      BOOST_OUTCOME_TRYV(good);
      return *end;
    }
    const bool stopping = wishes.Follow(worker) || worker.Ending();
    supervision.Update(environment.control().CurrentConfig()->engine);
    if (stopping) supervision.Stopping();
    if (stopping && !std::exchange(leaves, true)) environment.Leave();
    if (!good) continue;
    good = environment.Update(worker);
    if (!good) worker.Stop();
  }
}

}  // namespace

Registry::Reading TellBuild(Registry& metrics) {
  return metrics.OnText([](Gauges& gauges) {
    gauges.Set("millrace_build_info", {{"version", MILLRACE_VERSION}}, 1);
  });
}

Result<ExitCode> HostWorker(const WorkerFlags& flags, WorkerOptions options, const PluginSet& plugins,
                            WorkerEnvironment& environment, Supervision& supervision) {
  const SystemClock clock;
  const Registry::Reading build = TellBuild(environment.metrics());
  options.ended = WakeMain;
  auto worker = std::make_unique<Worker>(
      Worker::Parts{clock, environment.control(), plugins, environment.metrics()}, std::move(options));
  const BootTime begun = clock.Now();
  BOOST_OUTCOME_TRYV(worker->Start());
  // Where it fails half way, threads of the environment ask the worker already: from here on both end in one
  // way.
  const Status joined = environment.Join(*worker);
  std::unique_ptr<ProcessView::Shown> shown;
  if (joined) {
    shown = supervision.Show(
        [&](Micros patience) {
          ProcessFacts facts = FactsOf(*worker, environment.NoPlan(), patience);
          if (facts.stands_still.empty()) facts.stands_still = environment.StandsStill(patience);
          return facts;
        },
        [&environment] { return environment.metrics().Text(); });
  }
  const Result<WorkerEnd> end =
      joined ? Watch(*worker, environment, supervision) : EndUnjoined(*worker, joined.error());
  supervision.Stopping();
  shown.reset();
  const Micros took = clock.Now() - begun;
  const WorkerTotals totals = worker->Totals();
  const WorkerStatus last = worker->Status();
  const bool left_threads = !environment.End() || worker->LeftThreads();
  if (!left_threads) worker.reset();
  const ExitCode code = end ? ExitCodeOf(*end) : ExitCodeOf(end.error().code);
  if (end) {
    PrintSummary(flags, environment.Summary(last, *end), totals, took, *end);
  } else {
    PrintError(end.error());
  }
  if (left_threads) {  // they still use what this function and its callers own
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));
  }
  return code;
}

}  // namespace millrace::engine
