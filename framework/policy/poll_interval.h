// How often a worker asks a shard for work. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "framework/base/clock.h"

namespace millrace {

inline constexpr std::size_t kManyTables = 100;

// The configured bound, or longer where the due map is dear: asking takes at most a fiftieth of the time, a
// tenth where there are so many tables that nobody expects an answer at once.
inline Micros PollInterval(Micros bound, Micros map_cost, std::size_t tables) {
  return std::max(bound, map_cost * (tables < kManyTables ? 50 : 10));
}

}  // namespace millrace
