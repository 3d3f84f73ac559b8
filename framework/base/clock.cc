#include "framework/base/clock.h"

#include <ctime>

namespace millrace::engine {

BootTime BootClock::now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return BootTime(Micros(std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000));
}

WallTime SystemClock::WallNow() const {
  return std::chrono::time_point_cast<Micros>(std::chrono::system_clock::now());
}

}  // namespace millrace::engine
