#include "coordinator/app/mill_host.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/handler.h"
#include "coordinator/app/stop_signals.h"
#include "coordinator/app/worker_place.h"
#include "coordinator/app/worker_report.h"
#include "coordinator/coordination/local/file_config_source.h"
#include "coordinator/coordination/local/fixed_shard_source.h"
#include "coordinator/coordination/local/local_slice_source.h"
#include "coordinator/coordination/local/no_pauses.h"
#include "coordinator/upkeep/upkeep.h"
#include "framework/metrics/registry.h"
#include "framework/policy/load_balance.h"
#include "framework/worker/worker.h"

namespace millrace::engine {
namespace {

constexpr Micros kTick = std::chrono::milliseconds(50);
constexpr Micros kBetweenRounds = std::chrono::seconds(30);

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

WorkerEnd Watch(Worker& worker, MillProgress& progress, Upkeep& upkeep) {
  StopOnSignals stop(worker);
  while (true) {
    if (auto end = worker.WaitFor(kTick)) return *end;
    upkeep.Update();
    stop.Look();
    progress.Update(worker.Totals());
  }
}

}  // namespace

Result<ExitCode> HostMill(const MillFlags& flags, const Settings& settings, Shards& shards) {
  BOOST_OUTCOME_TRY(numbers, LoadBalance(flags.load_balance));
  BOOST_OUTCOME_TRY(slices, LocalSliceSource::Make(TablesOf(shards), numbers, flags.handlers));
  BOOST_OUTCOME_TRY(state, StateFolder(flags.common));
  BOOST_OUTCOME_TRY(plugins, LoadPlugins(flags.common));
  const auto types = TypesRun(settings.config, *plugins, {});
  BOOST_OUTCOME_TRYV(CheckTypes(flags.handlers, types));
  TellNumbersBeyond(numbers, shards);

  const SystemClock clock;
  FileConfigSource config(settings.config);
  Registry metrics;
  std::map<std::string, std::shared_ptr<Store>> stores;
  for (auto& [name, shard] : shards) stores[name] = shard.store;
  FixedShardSource served(std::move(stores));
  NoPauses pauses;
  const Worker::Parts parts{clock, served, *plugins, slices, pauses, config, metrics};
  WorkerOptions options{flags.id, state, flags.concurrency, flags.until_idle, FormatLoadBalance(numbers)};

  const BootTime begun = clock.Now();
  auto worker = std::make_unique<Worker>(parts, options);
  BOOST_OUTCOME_TRYV(worker->Start());
  MillProgress progress(shards, ErrorIsTerminal() && !flags.common.json);
  // Without a coordinator each process sees to slices and pruning itself, at leisure; two at once do no harm.
  Upkeep upkeep({served, config, [] { return true; }, [] { return nullptr; }, [] {}, kBetweenRounds});
  const WorkerEnd end = Watch(*worker, progress, upkeep);
  const Micros took = clock.Now() - begun;
  progress.Clear();
  const WorkerTotals totals = worker->Totals();
  const WorkerStatus status = worker->Status();
  const bool left_threads = !upkeep.Stop() || worker->LeftThreads();
  if (!left_threads) worker.reset();
  const ExitCode code = ExitCodeOf(end);
  PrintSummary(flags, ReadSummary(shards, status), totals, took, end);
  if (left_threads) {  // they still use what this function owns
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));
  }
  return code;
}

}  // namespace millrace::engine
