// Counters and gauges of a process, by name and labels. Thread-safe; adding to a counter takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/mutex.h"

namespace millrace::engine {

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Metric names follow Prometheus: millrace_tasks_settled_total, with labels such as {"outcome", "succeeded"}.
class Registry {
 public:
  using Labels = std::map<std::string, std::string>;

  // The same name and labels give the same counter, which lives as long as the registry.
  Counter& GetCounter(const std::string& name, const Labels& labels = {});
  // One line per counter in the Prometheus text format, sorted.
  std::string Text() const;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, Labels>, std::unique_ptr<Counter>> counters_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
