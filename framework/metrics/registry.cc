#include "framework/metrics/registry.h"

#include "framework/metrics/catalog.h"

namespace millrace::engine {

std::uint64_t Histogram::Count() const {
  std::uint64_t count = 0;
  for (std::size_t bucket = 0; bucket <= bounds_.size(); ++bucket) count += InBucket(bucket);
  return count;
}

Registry::Reading& Registry::Reading::operator=(Reading&& other) noexcept {
  if (this == &other) return *this;
  End();
  registry_ = std::exchange(other.registry_, nullptr);
  place_ = other.place_;
  return *this;
}

void Registry::Reading::End() {
  Registry* registry = std::exchange(registry_, nullptr);
  if (registry == nullptr) return;
  MutexLock lock(registry->reading_);
  registry->reads_.erase(place_);
}

Registry::Reading Registry::OnText(Read read) {
  MutexLock lock(reading_);
  return {*this, reads_.insert(reads_.end(), std::move(read))};
}

void Registry::Fold(Labels& labels) const {
  const auto handler = labels.find("handler");
  if (handler == labels.end() || handlers_.contains(handler->second)) return;
  if (handlers_.size() < kMostHandlers) {
    handlers_.insert(handler->second);
  } else {
    handler->second = kOther;
  }
}

Counter& Registry::GetCounter(const std::string& name, const Labels& labels) {
  MutexLock lock(mutex_);
  Series series{name, labels};
  Fold(series.second);
  auto& counter = counters_[std::move(series)];
  if (!counter) counter = std::make_unique<Counter>();
  return *counter;
}

Histogram& Registry::GetHistogram(const std::string& name, const Labels& labels) {
  MutexLock lock(mutex_);
  Series series{name, labels};
  Fold(series.second);
  auto& histogram = histograms_[std::move(series)];
  const MetricSpec* spec = FindMetric(name);
  if (!histogram) {
    histogram = std::make_unique<Histogram>(spec == nullptr ? std::span<const std::int64_t>() : spec->bounds);
  }
  return *histogram;
}

}  // namespace millrace::engine
