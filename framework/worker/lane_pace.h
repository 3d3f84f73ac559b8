// How fast a lane gets through the tasks of a type, and what follows from that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "framework/base/clock.h"

namespace millrace::engine {

// How many tasks of a type a lane should have queued ahead of its threads: about half a second of work at the
// pace measured, so that a fast lane never runs dry between claims and a slow one hoards nothing. Pure.
//
// Not thread-safe.
class LanePace {
 public:
  // `fixed`: the configured number; 0: measured.
  explicit LanePace(std::size_t threads = 1, std::size_t fixed = 0) : threads_(threads), fixed_(fixed) {}

  // Keeps what was measured.
  void Resize(std::size_t threads, std::size_t fixed) {
    threads_ = threads;
    fixed_ = fixed;
  }

  // `calls` ran `tasks` tasks in `took`, one after another.
  void Ran(std::size_t tasks, Micros took, std::size_t calls = 1) {
    const double each =
        static_cast<double>(std::max<Micros::rep>(took.count(), 1)) / static_cast<double>(tasks);
    const double weight = 1 - std::pow(1 - kWeight, static_cast<double>(calls));
    micros_each_ = micros_each_ == 0 ? each : micros_each_ + (each - micros_each_) * weight;
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
