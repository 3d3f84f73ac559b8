#include "coordinator/planner/level.h"

#include <algorithm>
#include <cassert>
#include <queue>
#include <vector>

namespace millrace::engine {

std::int64_t SlicesWithin(const Level& level, std::int64_t weight) {
  return (level.odd * weight + level.weight) / (2 * level.weight);
}

std::int64_t SlicesBelow(const Level& level, std::int64_t weight) {
  return (level.odd * weight + level.weight - 1) / (2 * level.weight);
}

Level LowestLevel(std::span<const std::uint32_t> weights, std::int64_t slices) {
  assert(!weights.empty() && slices > 0);
  std::int64_t total = 0;
  for (const std::uint32_t weight : weights) total += weight;
  // Within the level (2·slices − m)/Σc the workers take at most `slices` and lack fewer than m: a start from
  // below that leaves little to do one by one.
  const std::int64_t start =
      std::max<std::int64_t>(2 * slices - static_cast<std::int64_t>(weights.size()), 0);
  const auto higher = [](const Level& a, const Level& b) { return b < a; };
  std::priority_queue<Level, std::vector<Level>, decltype(higher)> next(higher);
  Level highest{0, 1};
  for (const std::uint32_t weight : weights) {
    const std::int64_t taken = SlicesWithin({start, total}, weight);
    slices -= taken;
    if (taken > 0) highest = std::max(highest, LevelOfSlice(taken, weight));
    next.push(LevelOfSlice(taken + 1, weight));
  }
  for (; slices > 0; --slices) {
    highest = next.top();
    next.pop();
    next.push({highest.odd + 2, highest.weight});
  }
  return highest;
}

}  // namespace millrace::engine
