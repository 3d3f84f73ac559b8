#include "coordinator/planner/balance.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace millrace::engine {
namespace {

// The rule itself: one slice after the other goes to where it adds least.
Level LevelOneByOne(const std::vector<std::uint32_t>& weights, int slices) {
  std::vector<std::int64_t> taken(weights.size(), 0);
  Level level;
  for (int i = 0; i < slices; ++i) {
    std::size_t best = 0;
    for (std::size_t w = 1; w < weights.size(); ++w) {
      if (LevelOfSlice(taken[w] + 1, weights[w]) < LevelOfSlice(taken[best] + 1, weights[best])) best = w;
    }
    level = LevelOfSlice(++taken[best], weights[best]);
  }
  return level;
}

TEST(LevelTest, LowestLevelIsThatOfTheLastSlicePlacedOneByOne) {
  EXPECT_TRUE(rc::check([] {
    const auto weights = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 1001)));
    const int slices = *rc::gen::inRange(1, 300);
    const Level fast = LowestLevel(weights, slices);
    const Level slow = LevelOneByOne(weights, slices);
    RC_ASSERT(fast.odd * slow.weight == slow.odd * fast.weight);
  }));
}

TEST(LevelTest, CountsBelowAndWithinAreThoseOfTheSingleSlices) {
  EXPECT_TRUE(rc::check([] {
    const Level level = LevelOfSlice(*rc::gen::inRange(1, 200), *rc::gen::inRange(1, 12));
    const std::int64_t weight = *rc::gen::inRange(1, 12);
    std::int64_t below = 0;
    std::int64_t within = 0;
    while (LevelOfSlice(below + 1, weight) < level) ++below;
    while (!(level < LevelOfSlice(within + 1, weight))) ++within;
    RC_ASSERT(SlicesBelow(level, weight) == below);
    RC_ASSERT(SlicesWithin(level, weight) == within);
  }));
}

}  // namespace
}  // namespace millrace::engine
