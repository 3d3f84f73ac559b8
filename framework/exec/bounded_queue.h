// A queue with a bound between threads. When it is full a producer waits, up to a deadline. Thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t bound) : bound_(bound) {}

  // False when the queue stayed full for `limit` (`item` is then untouched).
  bool Push(T&& item, Micros limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (items_.size() >= bound_) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return false;
      changed_.WaitFor(mutex_, left);
    }
    items_.push_back(std::move(item));
    if (items_.size() == 1) changed_.NotifyAll();
    return true;
  }

  // Beyond the bound: for a producer that must not wait and whose number of items is bounded elsewhere.
  void PushAlways(T&& item) {
    MutexLock lock(mutex_);
    items_.push_back(std::move(item));
    if (items_.size() == 1) changed_.NotifyAll();
  }

  // Up to `most` items as soon as there is one; none after `limit`.
  std::vector<T> Take(std::size_t most, Micros limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::vector<T> taken;
    MutexLock lock(mutex_);
    while (items_.empty()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return taken;
      changed_.WaitFor(mutex_, left);
    }
    const bool was_full = items_.size() >= bound_;
    while (!items_.empty() && taken.size() < most) {
      taken.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    if (was_full) changed_.NotifyAll();
    return taken;
  }

  std::size_t Size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t bound_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<T> items_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
