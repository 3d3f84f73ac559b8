// A wake-up that is not lost: a Notify before the wait ends the next wait at once. Thread-safe.
#pragma once

#include <chrono>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace::engine {

class Signal {
 public:
  void Notify() {
    MutexLock lock(mutex_);
    raised_ = true;
    condition_.NotifyAll();
  }

  // Waits until notified or for `limit`; takes the notice with it. True if notified.
  bool WaitFor(Micros limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (!raised_) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return false;
      condition_.WaitFor(mutex_, left);
    }
    raised_ = false;
    return true;
  }

 private:
  Mutex mutex_;
  CondVar condition_;
  bool raised_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::engine
