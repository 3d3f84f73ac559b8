// What is done when, once tasks in hand are to be at their end by a deadline: a worker that stops, and a
// shard that is served no more. Pure.
#pragma once

#include <algorithm>

#include "framework/base/clock.h"

namespace millrace::engine {

// First nothing; then handlers are asked to stop; then what still runs is given up, where that may be; and
// the rest of the time is there to settle what came of it. Not thread-safe.
class StopTimes {
 public:
  StopTimes() = default;
  StopTimes(BootTime now, Micros stop_timeout)
      : deadline_(now + stop_timeout),
        reserve_(std::min<Micros>(stop_timeout / 5, std::chrono::seconds(3))) {}

  // They are asked now: no longer than they need to see it, on a busy machine too.
  void Hurry(BootTime now) { deadline_ = std::min(deadline_, now + std::chrono::seconds(1) + reserve_); }

  bool Asks(BootTime now) const { return now >= deadline_ - 2 * reserve_; }
  bool GivesUp(BootTime now) const { return now >= deadline_ - reserve_; }
  bool Over(BootTime now) const { return now >= deadline_; }

 private:
  BootTime deadline_{};
  Micros reserve_{0};
};

}  // namespace millrace::engine
