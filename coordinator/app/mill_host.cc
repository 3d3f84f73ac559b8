#include "coordinator/app/mill_host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "coordinator/app/handler_catalog.h"
#include "coordinator/app/mill_progress.h"
#include "coordinator/app/paths.h"
#include "coordinator/app/progress_line.h"
#include "coordinator/app/stop_signals.h"
#include "coordinator/app/terminal.h"
#include "framework/policy/load_balance.h"
#include "coordinator/coordination/local/file_config_source.h"
#include "coordinator/coordination/local/fixed_shard_source.h"
#include "coordinator/coordination/local/local_slice_source.h"
#include "coordinator/coordination/local/no_pauses.h"
#include "framework/base/log.h"
#include "framework/metrics/registry.h"
#include "framework/worker/worker.h"

namespace millrace {
namespace {

constexpr Micros kTick = std::chrono::milliseconds(50);

LocalSliceSource::Tables TablesOf(const Shards& shards) {
  LocalSliceSource::Tables tables;
  for (const auto& [name, shard] : shards) tables[name] = shard.tables;
  return tables;
}

Result<std::vector<std::uint32_t>> LoadBalance(const std::string& text) {
  if (text.empty()) return std::vector<std::uint32_t>{};
  auto numbers = ParseLoadBalance(text);
  if (!numbers) return Fail(ErrorCode::Invalid, "--load-balance: " + numbers.error().message);
  return numbers;
}

// The first signal asks for an end in good order, the second for one now.
class StopAsker {
 public:
  explicit StopAsker(Worker& worker) : worker_(worker) {}
  void Look() {
    const int seen = StopSignalsSeen();
    if (seen > 0 && asked_ == 0) {
      asked_ = 1;
      worker_.Stop();
      PrintNote("stopping: what runs is finished or given back; once more to give everything back now");
    }
    if (seen > 1 && asked_ == 1) {
      asked_ = 2;
      worker_.StopNow();
      PrintNote("giving everything back now");
    }
  }

 private:
  Worker& worker_;
  int asked_ = 0;
};

WorkerEnd Watch(Worker& worker, MillProgress& progress) {
  StopAsker stop(worker);
  while (true) {
    if (auto end = worker.WaitFor(kTick)) return *end;
    stop.Look();
    progress.Update(worker.Totals());
  }
}

const char* WordOf(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::Idle:
      return "idle";
    case WorkerEnd::Stopped:
      return "stopped";
    case WorkerEnd::GaveUp:
      return "gave_up";
    case WorkerEnd::Replace:
      return "replace";
  }
  return "";
}

// Good order is 0; the others are for a supervisor to start the command again.
ExitCode CodeOf(WorkerEnd end) {
  if (end == WorkerEnd::GaveUp) {
    PrintError(
        "the stop deadline passed with handlers still running: their tasks are run again by the next worker");
  }
  if (end == WorkerEnd::Replace) {
    PrintError(
        "too many threads are lost to handlers that ignore their time limit: start this command again, and "
        "look at what those handlers wait for");
  }
  return end == WorkerEnd::Idle || end == WorkerEnd::Stopped ? ExitCode::Done : ExitCode::SomethingFailed;
}

// What an operator asks for after trouble; empty where there was none.
std::string TroubleText(const WorkerTotals& now) {
  std::string text;
  const auto add = [&text](std::uint64_t number, const char* what) {
    if (number == 0) return;
    text += (text.empty() ? "" : ", ") + WithCommas(number) + " " + what;
  };
  add(now.retried, "failed and retried");
  add(now.returned, "given back or put off");
  add(now.rescued, "rescued from dead workers");
  add(now.adopted, "adopted after a lost reply");
  add(now.refused, "settled too late and refused");
  return text;
}

nlohmann::ordered_json SummaryJson(const Result<MillSummary>& all, const WorkerTotals& now, Micros took,
                                   WorkerEnd end) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (all) {
    out["succeeded"] = all->succeeded;
    out["failed"] = all->failed;
    out["cancelled"] = all->cancelled;
    out["attempts_failed"] = all->attempts_failed;
  }
  out["this_run"] = {{"claimed", now.claimed},     {"succeeded", now.succeeded}, {"failed", now.failed},
                     {"cancelled", now.cancelled}, {"retried", now.retried},     {"returned", now.returned},
                     {"refused", now.refused},     {"adopted", now.adopted},     {"rescued", now.rescued}};
  out["seconds"] = static_cast<double>(took.count() / 1000) / 1000;
  out["end"] = WordOf(end);
  return out;
}

// Without the totals of all runs where the shards can't tell them.
void PrintSummary(const MillFlags& flags, const Result<MillSummary>& all, const WorkerTotals& now,
                  Micros took, WorkerEnd end) {
  if (!all) PrintNote("the totals can't be read now: " + all.error().message);
  if (flags.common.json) {
    PrintLine(SummaryJson(all, now, took, end).dump());
    return;
  }
  const std::uint64_t ended = now.succeeded + now.failed + now.cancelled;
  if (ended > 0) {
    const double seconds = std::max(0.001, std::chrono::duration<double>(took).count());
    PrintNote("this run: " + Count(ended, "task", "tasks") + " in " + ElapsedText(took) + ", " +
              WithCommas(static_cast<std::uint64_t>(static_cast<double>(ended) / seconds)) + " a second");
  } else {
    PrintNote("this run: nothing was due");
  }
  if (const std::string trouble = TroubleText(now); !trouble.empty()) PrintNote("this run: " + trouble);
  if (all) PrintLine(SummaryText(*all));
}

// A shard that does not answer is not asked once more: nobody waits for it beyond the stop deadline.
Result<MillSummary> TryReadSummary(Shards& shards, const WorkerStatus& status) {
  for (const ShardStatus& shard : status.shards) {
    if (!shard.error.empty()) return Fail(ErrorCode::Unavailable, shard.shard + ": " + shard.error);
  }
  return ReadSummary(shards);
}

}  // namespace

Result<ExitCode> HostMill(const MillFlags& flags, const Settings& settings, Shards& shards) {
  auto numbers = LoadBalance(flags.load_balance);
  if (!numbers) return Fail(numbers.error());
  auto slices = LocalSliceSource::Make(TablesOf(shards), *numbers);
  if (!slices) return Fail(slices.error());
  auto state = StateFolder(flags.common);
  if (!state) return Fail(state.error());
  auto plugins = LoadPlugins(flags.common);
  if (!plugins) return Fail(plugins.error());

  const SystemClock clock;
  FileConfigSource config(settings.config);
  Registry metrics;
  std::map<std::string, std::shared_ptr<Store>> stores;
  for (auto& [name, shard] : shards) stores[name] = shard.store;
  FixedShardSource served(std::move(stores));
  NoPauses pauses;
  const Worker::Parts parts{clock, served, **plugins, *slices, pauses, config, metrics};
  WorkerOptions options{flags.id, *state, flags.concurrency, flags.until_idle, FormatLoadBalance(*numbers)};

  const BootTime begun = clock.Now();
  auto worker = std::make_unique<Worker>(parts, options);
  if (auto started = worker->Start(); !started) return Fail(started.error());
  MillProgress progress(shards, ErrorIsTerminal() && !flags.common.json);
  const WorkerEnd end = Watch(*worker, progress);
  const Micros took = clock.Now() - begun;
  progress.Clear();
  const WorkerTotals totals = worker->Totals();
  const WorkerStatus status = worker->Status();
  const bool left_threads = worker->LeftThreads();
  if (!left_threads) worker.reset();
  const ExitCode code = CodeOf(end);
  PrintSummary(flags, TryReadSummary(shards, status), totals, took, end);
  if (left_threads) {  // they still use what this function owns
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));
  }
  return code;
}

}  // namespace millrace
