#include "framework/policy/eligibility.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::engine {
namespace {

using Types = std::vector<std::string>;

const SliceName kSlice{"main", "tasks_001", 7};
const Types kTypes{"award", "noop"};

TEST(EligibilityTest, WithoutLimitsEverySliceIsAllowed) {
  EXPECT_TRUE(Eligible({}, kSlice, kTypes));
  EXPECT_FALSE(WorkerLimits{}.Any());
}

TEST(EligibilityTest, EachLimitSaysWhatItForbids) {
  EXPECT_EQ(ObstacleOf({.load_balance = {{1, 8}}}, kSlice, kTypes), Obstacle::LoadBalance);
  EXPECT_EQ(ObstacleOf({.shards = {{"east", "west"}}}, kSlice, kTypes), Obstacle::Shard);
  EXPECT_EQ(ObstacleOf({.tables = {{"tasks", "west/tasks_001"}}}, kSlice, kTypes), Obstacle::Table);
  EXPECT_EQ(ObstacleOf({.handlers = {{"noop"}}}, kSlice, kTypes), Obstacle::Handler);
  EXPECT_EQ(*FirstRefused({.handlers = {{"noop"}}}, kTypes), "award");
}

TEST(EligibilityTest, ASliceWithinAllLimitsIsAllowed) {
  const WorkerLimits limits{.handlers = {{"award", "mail", "noop"}},
                            .load_balance = {{0, 7}},
                            .shards = {{"main"}},
                            .tables = {{"main/tasks_001"}}};
  EXPECT_TRUE(Eligible(limits, kSlice, kTypes));
  EXPECT_TRUE(Eligible({.tables = {{"tasks_001"}}}, kSlice, kTypes)) << "a table of any shard";
  EXPECT_TRUE(limits.Any());
}

TEST(EligibilityTest, AnEmptyLimitForbidsEverything) {
  EXPECT_FALSE(Eligible({.handlers = Types()}, kSlice, kTypes));
  EXPECT_FALSE(Eligible({.load_balance = std::vector<std::uint32_t>()}, kSlice, kTypes));
  EXPECT_FALSE(Eligible({.shards = Types()}, kSlice, kTypes));
}

TEST(EligibilityTest, OneWhoTakesEveryTypeAloneMayHaveTheGroupOfTheOthers) {
  EXPECT_TRUE(Eligible({}, kSlice, {"*"}));
  EXPECT_FALSE(Eligible({.handlers = {{"award", "noop"}}}, kSlice, {"*"}));
}

TEST(EligibilityTest, BothAllowWhatEachAllows) {
  const WorkerLimits both = Both({.handlers = {{"a", "b"}}, .shards = {{"x"}}},
                                 {.handlers = {{"b", "c"}}, .load_balance = {{1, 2}}});
  EXPECT_EQ(both, (WorkerLimits{.handlers = {{"b"}}, .load_balance = {{1, 2}}, .shards = {{"x"}}}));
  EXPECT_EQ(Both(both, {.load_balance = {{3}}}).load_balance, std::vector<std::uint32_t>());
}

}  // namespace
}  // namespace millrace::engine
