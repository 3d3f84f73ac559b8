// The clocks. Leases and deadlines use BootTime alone; WallTime is for people and for due times.
#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace millrace::engine {

using Micros = std::chrono::microseconds;

// UTC, microseconds, as the task tables keep it.
using WallTime = std::chrono::sys_time<Micros>;

// CLOCK_BOOTTIME: monotonic, and goes on while the machine is suspended. Not comparable between machines.
struct BootClock {
  using rep = std::int64_t;
  using period = std::micro;
  using duration = Micros;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};
using BootTime = BootClock::time_point;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual BootTime Now() const = 0;
  virtual WallTime WallNow() const = 0;
};

class SystemClock final : public Clock {
 public:
  BootTime Now() const override { return BootClock::now(); }
  WallTime WallNow() const override;
};

}  // namespace millrace::engine
