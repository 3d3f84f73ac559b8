// How often a worker asks a shard for work. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "framework/base/clock.h"

namespace millrace::engine {

inline constexpr std::size_t kManyTables = 100;
inline constexpr Micros kPollForEachTable = std::chrono::milliseconds(1);  // where there are many
inline constexpr Micros kLongestPoll = std::chrono::seconds(5);

// The configured bound, or longer where the due map is dear: asking takes at most a fiftieth of the time, a
// tenth where there are so many tables that nobody expects an answer at once; there it is a millisecond for
// each table at least, since they take several queries. Never longer than kLongestPoll, unless the bound is.
inline Micros PollInterval(Micros bound, Micros map_cost, std::size_t tables) {
  if (tables < kManyTables) return std::max(bound, std::min(map_cost * 50, kLongestPoll));
  const Micros least = kPollForEachTable * static_cast<Micros::rep>(tables);
  return std::max(bound, std::min(std::max(map_cost * 10, least), kLongestPoll));
}

}  // namespace millrace::engine
