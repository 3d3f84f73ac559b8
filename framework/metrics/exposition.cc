// The registry as text; the only file that sees prometheus-cpp.
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "framework/metrics/catalog.h"
#include "framework/metrics/registry.h"

namespace millrace::engine {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr double kMicrosInSecond = 1e6;

MetricFamily FamilyOf(const std::string& name, MetricType type) {
  const MetricSpec* spec = FindMetric(name);
  return {name, spec == nullptr ? "" : spec->help, type, {}};
}

ClientMetric With(const MetricLabels& labels) {
  ClientMetric metric;
  metric.label.reserve(labels.size());
  for (const auto& [label, value] : labels) metric.label.push_back({label, value});
  return metric;
}

// The buckets are read one after another while others add: the count is their sum, so that they agree.
ClientMetric::Histogram ValueOf(const Histogram& histogram) {
  ClientMetric::Histogram value;
  const auto bounds = histogram.bounds();
  value.bucket.reserve(bounds.size() + 1);
  for (std::size_t bucket = 0; bucket <= bounds.size(); ++bucket) {
    value.sample_count += histogram.InBucket(bucket);
    const double bound = bucket < bounds.size() ? static_cast<double>(bounds[bucket]) / kMicrosInSecond
                                                : std::numeric_limits<double>::infinity();
    value.bucket.push_back({value.sample_count, bound});
  }
  value.sample_sum = static_cast<double>(histogram.Sum().count()) / kMicrosInSecond;
  return value;
}

// A histogram is many lines: those that have seen nothing are left out, so that a type which never fails
// costs none for its failures.
bool IsTold(const std::unique_ptr<Histogram>& histogram) { return histogram->Count() > 0; }
bool IsTold(const std::unique_ptr<Counter>&) { return true; }
bool IsTold(double) { return true; }

// The families by name, each with its series by their labels.
class Families {
 public:
  template <class Values, class Fill>
  void Add(const Values& values, MetricType type, Fill fill) {
    for (const auto& [series, value] : values) {
      if (!IsTold(value)) continue;
      auto family = families_.find(series.first);
      if (family == families_.end()) {
        family = families_.emplace(series.first, FamilyOf(series.first, type)).first;
      }
      fill(family->second.metric.emplace_back(With(series.second)), value);
    }
  }

  std::string Text() {
    std::vector<MetricFamily> families;
    families.reserve(families_.size());
    for (auto& [name, family] : families_) families.push_back(std::move(family));
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  std::map<std::string, MetricFamily> families_;
};

}  // namespace

std::map<Registry::Series, double> Registry::FoldedGauges() const {
  Gauges gauges;
  {
    MutexLock lock(reading_);
    for (const Read& read : reads_) read(gauges);
  }
  std::map<Series, double> folded;
  MutexLock lock(mutex_);
  for (const Gauges::Value& gauge : gauges.values()) {
    Series series{gauge.name, gauge.labels};
    Fold(series.second);
    const auto [place, added] = folded.try_emplace(std::move(series), gauge.value);
    if (added) continue;
    const MetricSpec* spec = FindMetric(gauge.name);
    const bool most = spec != nullptr && spec->folds_to_most;
    place->second = most ? std::max(place->second, gauge.value) : place->second + gauge.value;
  }
  return folded;
}

std::string Registry::Text() const {
  Families families;
  families.Add(FoldedGauges(), MetricType::Gauge,
               [](ClientMetric& metric, double value) { metric.gauge.value = value; });
  {
    MutexLock lock(mutex_);
    families.Add(counters_, MetricType::Counter, [](ClientMetric& metric, const auto& counter) {
      metric.counter.value = static_cast<double>(counter->Value());
    });
    families.Add(histograms_, MetricType::Histogram,
                 [](ClientMetric& metric, const auto& histogram) { metric.histogram = ValueOf(*histogram); });
  }
  return families.Text();
}

}  // namespace millrace::engine
