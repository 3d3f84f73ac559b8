// metrics_bench [--benchmark_...]: what telling costs. Exits 1 where the text takes longer than 50 ms, is
// larger than a million bytes, or was not measured.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/support/full_registry.h"
#include "tests/support/report.h"

namespace millrace::engine {
namespace {

void Count(benchmark::State& state) {
  static Registry registry;
  static MillCounters counters(registry);
  TypeCounters& type = counters.Of("main", "noop");
  Settlement settlement;
  const AttemptTimes times{Micros(12'000), Micros(345)};
  for ([[maybe_unused]] auto _ : state) counters.Count(type, settlement, times);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Count)->Threads(1)->Threads(2);

// Beside it: what was counted before there were types and times.
void AddToOneCounter(benchmark::State& state) {
  static Counter counter;
  for ([[maybe_unused]] auto _ : state) counter.Add();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(AddToOneCounter)->Threads(1)->Threads(2);

void Scrape(benchmark::State& state) {
  static const FullRegistry full;
  std::size_t bytes = 0;
  auto fastest = std::chrono::steady_clock::duration::max();  // others share the machine
  for ([[maybe_unused]] auto _ : state) {
    const auto begun = std::chrono::steady_clock::now();
    bytes = full.registry.Text().size();
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begun);
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["fastest_ms"] = std::chrono::duration<double, std::milli>(fastest).count();
}
BENCHMARK(Scrape)->Unit(benchmark::kMillisecond);

class BoundsReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_name.function_name != "Scrape" || run.run_type != Run::RT_Iteration) continue;
      ++repetitions_;
      bytes_ = std::max(bytes_, run.counters.at("bytes").value);
      slowest_ = std::max(slowest_, run.counters.at("fastest_ms").value);
    }
  }
  bool Hold() const {
    const bool pass = repetitions_ > 0 && bytes_ <= 1'000'000 && slowest_ <= 50;
    char measured[100] = "not measured";
    if (repetitions_ > 0) {
      std::snprintf(measured, sizeof measured, "%.0f bytes, the fastest of a repetition %.1f ms at most",
                    bytes_, slowest_);
    }
    Report("metrics", "the whole text of a large installation: at most a million bytes, within 50 ms",
           measured, pass);
    return pass;
  }

 private:
  int repetitions_ = 0;
  double bytes_ = 0;
  double slowest_ = 0;  // of the repetitions, each by its fastest text
};

}  // namespace
}  // namespace millrace::engine

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  millrace::engine::BoundsReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.Hold() ? 0 : 1;
}
