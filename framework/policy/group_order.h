// In which order the due groups of one lane are worked on. Pure.
//
// The most urgent first; equal ones take turns, so that a slice that was taken over with its backlog delays
// no other, and those that had none yet go by the time that they have waited. But one turn in kOldestTurn
// goes to the group that waits longest whatever its urgency, so that a steady stream of urgent work starves
// nobody.
//
// Aging, where waiting raises urgency, is there for those who ask for it: a backlog of hours is then as
// urgent as every newcomer. It never becomes more urgent than that: what has aged takes turns with tasks of
// priority 0, and each of those that had no turn yet comes before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

inline constexpr std::uint64_t kOldestTurn = 8;
constexpr bool IsOldestTurn(std::uint64_t turn) { return turn % kOldestTurn == kOldestTurn - 1; }

// What an urgency (priority * 10 + failures) is after such a wait: a priority for each `step` of it, up to
// priority 0. Without a step it stays as it is.
constexpr std::uint32_t AgedUrgency(std::uint32_t urgency, Micros waited, Micros step) {
  if (step <= Micros(0) || waited < step) return urgency;
  const auto gained = std::min<Micros::rep>(waited / step, urgency / 10);
  return urgency - 10 * static_cast<std::uint32_t>(gained);
}

struct GroupRank {
  std::uint32_t urgency = 0;  // as aged
  std::uint64_t served = 0;   // the turn in which it was worked on last; 0: never
  WallTime waiting_since;     // when the oldest row that may be claimed came due
};

// The positions of `groups` in the order of work for this turn; ties keep their place.
std::vector<std::size_t> OrderGroups(std::span<const GroupRank> groups, std::uint64_t turn);

}  // namespace millrace::engine
