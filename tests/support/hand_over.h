// A queue between threads whose producers never wait: what may be under way is bounded where it enters the
// program. (A producer that waits for the database to come back could not be stopped.) Thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace::engine {

template <class T>
class HandOver {
 public:
  void Push(T&& item) {
    MutexLock lock(mutex_);
    items_.push_back(std::move(item));
    if (items_.size() == 1) filled_.NotifyAll();
  }

  // Up to `most` items as soon as there is one; none after `limit`.
  std::vector<T> Take(std::size_t most, Micros limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::vector<T> taken;
    MutexLock lock(mutex_);
    while (items_.empty()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return taken;
      filled_.WaitFor(mutex_, left);
    }
    while (!items_.empty() && taken.size() < most) {
      taken.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return taken;
  }

 private:
  Mutex mutex_;
  CondVar filled_;
  std::deque<T> items_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
