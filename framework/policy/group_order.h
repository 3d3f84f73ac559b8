// In which order the due groups of one lane are worked on. Pure.
//
// The most urgent first; equal ones take turns, so that a slice that was taken over with its backlog delays
// no other, and those that had none yet go by the time that they have waited. But one turn in kOldestTurn
// goes to the group that waits longest whatever its urgency, so that a steady stream of urgent work starves
// nobody. (Aging, where waiting raises urgency, was not taken: a backlog of hours would then outrank every
// urgent newcomer.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

inline constexpr std::uint64_t kOldestTurn = 8;

struct GroupRank {
  std::uint32_t urgency = 0;
  std::uint64_t served = 0;  // the turn in which it was worked on last; 0: never
  WallTime waiting_since;    // when the oldest row that may be claimed came due
};

// The positions of `groups` in the order of work for this turn; ties keep their place.
std::vector<std::size_t> OrderGroups(std::span<const GroupRank> groups, std::uint64_t turn);

}  // namespace millrace::engine
