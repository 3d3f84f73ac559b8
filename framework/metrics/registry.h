// What a process counts and measures, by name and labels, and all of it as Prometheus' text. Names, words and
// buckets stand in the catalog (catalog.h).
//
// Thread-safe. Adding to a counter or observing a time takes no lock and waits for nobody: relaxed additions
// to memory, read when somebody asks for the text.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace::engine {

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// How often something took how long.
class Histogram {
 public:
  static constexpr std::size_t kMostBounds = 15;

  // `bounds`: upper ones, rising; they outlive it.
  explicit Histogram(std::span<const std::int64_t> bounds) : bounds_(bounds.first(MostOf(bounds))) {}

  void Observe(Micros took) {
    const std::int64_t micros = took.count() > 0 ? took.count() : 0;
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && micros > bounds_[bucket]) ++bucket;
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(micros, std::memory_order_relaxed);
  }

  std::span<const std::int64_t> bounds() const { return bounds_; }
  // How many were at most `bounds()[bucket]`, and above the bound before; the last: above all bounds.
  std::uint64_t InBucket(std::size_t bucket) const {
    return buckets_.at(bucket).load(std::memory_order_relaxed);
  }
  std::uint64_t Count() const;
  Micros Sum() const { return Micros(sum_.load(std::memory_order_relaxed)); }

 private:
  static std::size_t MostOf(std::span<const std::int64_t> bounds) {
    return bounds.size() < kMostBounds ? bounds.size() : kMostBounds;
  }

  const std::span<const std::int64_t> bounds_;
  std::array<std::atomic<std::uint64_t>, kMostBounds + 1> buckets_{};
  std::atomic<std::int64_t> sum_{0};
};

using MetricLabels = std::map<std::string, std::string>;

// Gauges, as they are when somebody asks. Several values of one series are their sum, or the largest of them
// where the catalog says so. Not thread-safe.
class Gauges {
 public:
  struct Value {
    std::string name;
    MetricLabels labels;
    double value = 0;
  };
  void Set(const std::string& name, const MetricLabels& labels, double value) {
    values_.push_back({name, labels, value});
  }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::vector<Value> values_;
};

class Registry {
 public:
  using Labels = MetricLabels;
  using Series = std::pair<std::string, Labels>;
  using Read = std::function<void(Gauges&)>;

  // A task type stands in a row that anybody may insert: of so many the names are told, those that come later
  // are `other` together, so that no row makes series without bound.
  static constexpr std::size_t kMostHandlers = 250;
  static constexpr const char* kOther = "other";

  // The same name and labels give the same one, which lives as long as the registry.
  Counter& GetCounter(const std::string& name, const Labels& labels = {});
  Histogram& GetHistogram(const std::string& name, const Labels& labels = {});

  // As long as the reading lives, `read` is asked for gauges whenever somebody wants the text. It must not
  // wait for a server, and makes no reading itself. The end of a reading waits for a text under way.
  class Reading {
   public:
    Reading() = default;
    Reading(Registry& registry, std::list<Read>::iterator place) : registry_(&registry), place_(place) {}
    Reading(Reading&& other) noexcept
        : registry_(std::exchange(other.registry_, nullptr)), place_(other.place_) {}
    Reading& operator=(Reading&& other) noexcept;
    ~Reading() { End(); }
    void End();

   private:
    Registry* registry_ = nullptr;
    std::list<Read>::iterator place_;
  };
  [[nodiscard]] Reading OnText(Read read);

  // Everything in Prometheus' text format, by name and labels.
  std::string Text() const;

 private:
  template <class Kind>
  using Places = std::map<Series, std::unique_ptr<Kind>>;

  void Fold(Labels& labels) const MILLRACE_REQUIRES(mutex_);
  std::map<Series, double> FoldedGauges() const;

  mutable Mutex mutex_;
  Places<Counter> counters_ MILLRACE_GUARDED_BY(mutex_);
  Places<Histogram> histograms_ MILLRACE_GUARDED_BY(mutex_);
  mutable std::set<std::string> handlers_ MILLRACE_GUARDED_BY(mutex_);
  mutable Mutex reading_;  // before mutex_
  std::list<Read> reads_ MILLRACE_GUARDED_BY(reading_);
};

}  // namespace millrace::engine
