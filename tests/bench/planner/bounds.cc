// Runs the planner's measurements, and asks of those that the project has promised a time for whether they
// hold it: by the median of its repetitions (--benchmark_repetitions=5). Exits 1 where one does not, or was
// not measured.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>

#include "tests/support/report.h"

namespace {

const std::map<std::string, double> kBounds = {
    {"unconstrained, one leaves", 50},
    {"20 groups, 60 % accepted, ten leave", 300},
};

class BoundsReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") medians_[run.run_name.function_name] = run.GetAdjustedRealTime();
    }
  }
  bool Hold() const {
    bool hold = true;
    for (const auto& [name, bound] : kBounds) {
      const auto found = medians_.find(name);
      const bool pass = found != medians_.end() && found->second <= bound;
      char measured[64] = "not measured";
      if (found != medians_.end())
        std::snprintf(measured, sizeof measured, "%.1f ms, the median", found->second);
      char asked[200];
      std::snprintf(asked, sizeof asked,
                    "100,000 slices on 1,000 workers, %s: planned within %.0f ms of one core", name.c_str(),
                    bound);
      millrace::engine::Report("planner", asked, measured, pass);
      hold = hold && pass;
    }
    return hold;
  }

 private:
  std::map<std::string, double> medians_;
};

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  BoundsReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.Hold() ? 0 : 1;
}
