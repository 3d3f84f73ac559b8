// What there is to be measured: names, kinds, words and buckets. catalog.cc is made from
// conf/monitoring/metrics.json by scripts/monitoring, as are the rules and the dashboard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace::engine {

struct MetricSpec {
  enum class Kind { Counter, Gauge, Histogram };

  const char* name = "";
  Kind kind = Kind::Counter;
  const char* help = "";
  std::span<const std::int64_t> bounds = {};  // of a histogram: microseconds, rising
  bool folds_to_most = false;  // of a gauge: several values of one series are their largest, not their sum
};

// By name.
std::span<const MetricSpec> AllMetrics();
// Null: there is none of that name.
const MetricSpec* FindMetric(std::string_view name);

}  // namespace millrace::engine
