// A clock that stands still until a test moves it.
#pragma once

#include <atomic>

#include "framework/base/clock.h"

namespace millrace::engine {

// Thread-safe. Both times move together; a wall clock can also be stepped alone, as administrators do.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime start = WallTime(std::chrono::days(20'000)))
      : wall_(start.time_since_epoch().count()) {}

  BootTime Now() const override { return BootTime(Micros(boot_)); }
  WallTime WallNow() const override { return WallTime(Micros(wall_)); }

  void Advance(Micros by) {
    boot_ += by.count();
    wall_ += by.count();
  }
  void StepWall(Micros by) { wall_ += by.count(); }

 private:
  std::atomic<std::int64_t> boot_{1'000'000};
  std::atomic<std::int64_t> wall_;
};

}  // namespace millrace::engine
