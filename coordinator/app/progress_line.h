// One line that says how long work stands, for a terminal. Pure: times and width are passed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/clock.h"

namespace millrace::engine {

struct ProgressNumbers {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t retrying = 0;
  std::uint64_t waiting = 0;
  bool waiting_or_more = false;  // `waiting` is a bound from below: no share and no time left are shown
  double per_second = 0;
};

// `[████████░░░░]  62 %  10,012 done · 3 failed · 5 retrying · 6,034 waiting · 2,410/s · 3 s left`, less of
// it where the terminal is narrower; never wider than `width` columns.
std::string ProgressLine(const ProgressNumbers& numbers, std::size_t width);

// Tasks per second over the last few seconds. One owner.
class RateMeter {
 public:
  // `done` never goes down. The first call gives 0.
  double Rate(std::uint64_t done, BootTime now);

 private:
  std::optional<BootTime> last_;
  std::uint64_t last_done_ = 0;
  double rate_ = 0;
};

// 850 ms, 6.2 s, 4 min 10 s, 2 h 5 min: as exact as people read it.
std::string ElapsedText(Micros elapsed);

}  // namespace millrace::engine
