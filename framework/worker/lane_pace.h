// How many tasks a lane should have queued ahead of its threads: about half a second of work at the pace
// measured, so that a fast lane never runs dry between claims and a slow one hoards nothing. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe.
class LanePace {
 public:
  // `fixed`: the configured number; 0: measured.
  LanePace(std::size_t threads, std::size_t fixed) : threads_(threads), fixed_(fixed) {}

  // Keeps what was measured.
  void Resize(std::size_t threads, std::size_t fixed) {
    threads_ = threads;
    fixed_ = fixed;
  }

  // A call ran `tasks` tasks in `took`.
  void Ran(std::size_t tasks, Micros took) {
    const double each =
        static_cast<double>(std::max<Micros::rep>(took.count(), 1)) / static_cast<double>(tasks);
    micros_each_ = micros_each_ == 0 ? each : micros_each_ + (each - micros_each_) * kWeight;
  }

  // How long one takes, as far as is known; zero: it is not.
  Micros Each() const { return Micros(static_cast<Micros::rep>(micros_each_)); }

  // Tasks are known to be so short that handing them out one by one would cost as much as running them.
  bool AreShort() const { return micros_each_ > 0 && micros_each_ < kShort; }

  // How many tasks may be queued, those running not counted.
  std::size_t Capacity() const {
    if (fixed_ != 0) return fixed_;
    if (micros_each_ == 0) return 2 * threads_;
    const double ahead = static_cast<double>(kAhead.count()) / micros_each_ * static_cast<double>(threads_);
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::min(ahead, 1e9)), threads_, kMost);
  }

  // How long a task with so many before it waits for a thread, where all are busy.
  Micros WaitFor(std::size_t ahead) const {
    if (micros_each_ == 0) return std::chrono::hours(1);  // nothing is known
    const double wait = static_cast<double>(ahead + 1) * micros_each_ / static_cast<double>(threads_);
    return Micros(static_cast<Micros::rep>(std::min(wait, 3.6e9)));
  }

  static constexpr Micros kAhead = std::chrono::milliseconds(500);
  static constexpr std::size_t kMost = 4 * 999;

 private:
  static constexpr double kShort = 1000;  // microseconds
  static constexpr double kWeight = 0.1;  // of the newest call in the moving mean

  std::size_t threads_;
  std::size_t fixed_;
  double micros_each_ = 0;
};

}  // namespace millrace::engine
