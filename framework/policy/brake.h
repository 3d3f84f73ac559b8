// How fast a shard is scanned, where its answers become slow or it was away: so that whoever else uses the
// database comes first, and a backlog is let in gradually. Pure; time comes from outside.
//
// Additive increase, multiplicative decrease (D.-M. Chiu and R. Jain, Analysis of the Increase and Decrease
// Algorithms for Congestion Avoidance in Computer Networks, 1989): an answer that took longer than the limit
// halves the speed, answers within it raise it step by step. After an outage it begins at the least speed and
// doubles (slow start: V. Jacobson, Congestion Avoidance and Control, SIGCOMM 1988), with a limit or without.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "framework/base/clock.h"

namespace millrace::engine {

class Brake {
 public:
  static constexpr double kLeast = 1.0 / 64;
  static constexpr double kRise = 1.0 / 16;
  // Between two changes: as long as it takes to see what the last one did.
  static constexpr Micros kStep = std::chrono::milliseconds(200);
  // Trouble that lasted so long was an outage.
  static constexpr Micros kOutage = std::chrono::seconds(1);
  static constexpr Micros kLongestPause = std::chrono::seconds(1);

  // A statement was answered at `now`, after so long. `limit` zero: no answer is too slow.
  void Answered(BootTime now, Micros took, Micros limit);
  // One was not: the database is away, or in trouble.
  void Failed(BootTime now);
  bool Failing() const { return failing_.has_value(); }

  // The part of its full speed at which scanning goes, kLeast … 1.
  double Speed() const { return speed_; }
  // How many rows a claim may ask for, of `batch`.
  std::size_t Rows(std::size_t batch) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(batch) * speed_));
  }
  // How long to rest after so much work in the shard: at half the speed, as long again.
  Micros RestAfter(Micros worked) const;

 private:
  double speed_ = 1;
  bool doubles_ = false;  // after an outage, until an answer is slow
  BootTime raised_{};
  BootTime lowered_{};
  std::optional<BootTime> failing_;  // since when nothing was answered
};

}  // namespace millrace::engine
