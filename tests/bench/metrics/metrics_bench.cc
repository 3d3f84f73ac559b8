// metrics_bench [--benchmark_...]: what telling costs. A text that takes longer than 50 ms, or is larger than
// a million bytes, is an error.
#include <benchmark/benchmark.h>

#include <chrono>

#include "tests/support/full_registry.h"

namespace millrace::engine {
namespace {

void Count(benchmark::State& state) {
  static Registry registry;
  static MillCounters counters(registry);
  TypeCounters& type = counters.Of("main", "noop");
  Settlement settlement;
  const AttemptTimes times{Micros(12'000), Micros(345)};
  for (auto _ : state) counters.Count(type, settlement, times);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Count)->Threads(1)->Threads(2);

// Beside it: what was counted before there were types and times.
void AddToOneCounter(benchmark::State& state) {
  static Counter counter;
  for (auto _ : state) counter.Add();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AddToOneCounter)->Threads(1)->Threads(2);

void Scrape(benchmark::State& state) {
  static const FullRegistry full;
  std::size_t bytes = 0;
  auto fastest = std::chrono::steady_clock::duration::max();  // others share the machine
  for (auto _ : state) {
    const auto begun = std::chrono::steady_clock::now();
    bytes = full.registry.Text().size();
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begun);
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  if (bytes > 1'000'000) state.SkipWithError("the text is larger than a million bytes");
  if (fastest > std::chrono::milliseconds(50)) state.SkipWithError("the text takes longer than 50 ms");
}
BENCHMARK(Scrape)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace::engine

BENCHMARK_MAIN();
