// A thread that asks one thing of a shard while its strand asks another.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "framework/threads/signal.h"
#include "framework/threads/thread.h"

namespace millrace::engine {

// Not thread-safe: the strand's own. The thread is started by the first piece of work, and joined at the end.
class Beside {
 public:
  explicit Beside(std::string name) : name_(std::move(name)) {}
  // Whatever has begun is waited for before.
  ~Beside() {
    work_ = nullptr;
    begun_.Notify();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Begins this, which must not throw. False: there is no thread to be had now, and nothing has begun.
  bool Begin(std::function<void()> work) {
    if (!thread_.Started() && !thread_.Start(name_, [this] { Run(); })) return false;
    work_ = std::move(work);
    is_done_.store(false);
    begun_.Notify();
    return true;
  }
  // Whether what has begun is done: Wait does not wait.
  bool IsDone() const { return is_done_.load(); }
  // Until what has begun is done: what it wrote may be read. Once for each.
  void Wait() {
    while (!done_.WaitFor(kNever)) {
    }
  }

 private:
  static constexpr Micros kNever = std::chrono::hours(24);

  void Run() {
    while (true) {
      if (!begun_.WaitFor(kNever)) continue;
      if (!work_) return;
      work_();
      is_done_.store(true);
      done_.Notify();
    }
  }

  const std::string name_;
  std::function<void()> work_;  // whose turn it is the signals say; empty: the end
  std::atomic<bool> is_done_{true};
  Signal begun_;
  Signal done_;
  Thread thread_;  // last: it is joined before the others go
};

}  // namespace millrace::engine
