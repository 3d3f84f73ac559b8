// When a thread that goes round a loop is to be heard of again, for whoever watches that it does: one that
// computes, or waits for a lock, beyond that time stands still.
#pragma once

#include <algorithm>
#include <atomic>

#include "framework/base/clock.h"

namespace millrace::engine {

// Lock-free: the thread says, any may ask.
class Pulse {
 public:
  void Expect(BootTime at) { at_.store(at.time_since_epoch().count(), std::memory_order_relaxed); }
  // It goes on by itself from here.
  void Now() { Expect(BootClock::now()); }
  // It rests, or waits for somebody who may take so long.
  void Within(Micros limit) { Expect(BootClock::now() + std::min<Micros>(limit, std::chrono::hours(24))); }
  // It has ended, or has not begun: nothing is expected of it.
  void Never() { Expect(BootTime::max()); }

  bool StandsStill(BootTime now, Micros patience) const {
    const BootTime at{Micros(at_.load(std::memory_order_relaxed))};
    return now > at && now - at > patience;
  }

 private:
  std::atomic<Micros::rep> at_{BootTime::max().time_since_epoch().count()};
};

}  // namespace millrace::engine
