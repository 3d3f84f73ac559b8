// The hours of the day in which something may run, as a zone's clock shows them. Pure.
//
// They are open exactly while that clock shows a time of theirs. So where the clock jumps over their
// beginning they open at the jump, and where it jumps over all of them they do not open that day; what the
// clock shows twice is open twice. Both happen to hours that begin or end in the doubled or skipped hour
// alone: others are an hour shorter or longer in that night.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/schedule/time_zone.h"

namespace millrace::engine {

struct RunHours {
  std::chrono::minutes from{0};  // after midnight, up to 23:59
  std::chrono::minutes to{0};    // likewise, 24:00 being the day's end; not `from`. Before it: over midnight
  TimeZone zone;
};

bool IsOpen(const RunHours& hours, WallTime at);

// When they close, being open, or open, being closed: the first such instant behind `at`; nullopt: never, as
// hours from 00:00 to 24:00.
std::optional<WallTime> NextChange(const RunHours& hours, WallTime at);

// `outside its hours until 01:00 Europe/Berlin`; empty: they are open.
std::string OutsideHours(const RunHours& hours, WallTime at);

}  // namespace millrace::engine
