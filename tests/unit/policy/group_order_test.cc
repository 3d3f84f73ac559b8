#include "framework/policy/group_order.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;

constexpr WallTime At(int second) { return WallTime(std::chrono::seconds(second)); }

TEST(GroupOrderTest, TheMostUrgentGroupsComeFirstAndOfThoseTheOldest) {
  const std::vector<GroupRank> groups{{52, 0, At(1)}, {50, 0, At(9)}, {50, 0, At(5)}};
  EXPECT_THAT(OrderGroups(groups, 0), ElementsAre(2, 1, 0));
}

TEST(GroupOrderTest, EquallyUrgentGroupsTakeTurns) {
  const std::vector<GroupRank> groups{{50, 3, At(1)}, {50, 1, At(9)}, {49, 3, At(9)}, {50, 2, At(5)}};
  EXPECT_THAT(OrderGroups(groups, 4), ElementsAre(2, 1, 3, 0));
}

TEST(GroupOrderTest, OneTurnInEightBelongsToTheOldest) {
  const std::vector<GroupRank> groups{{0, 0, At(9)}, {99, 0, At(1)}};
  int oldest_first = 0;
  for (std::uint64_t turn = 0; turn < 80; ++turn) oldest_first += OrderGroups(groups, turn)[0] == 1;
  EXPECT_EQ(oldest_first, 10);
}

TEST(AgedUrgencyTest, WaitingGainsAPriorityEachTimeUpToPriorityZero) {
  const Micros step = std::chrono::minutes(1);
  EXPECT_EQ(AgedUrgency(93, std::chrono::seconds(59), step), 93u);
  EXPECT_EQ(AgedUrgency(93, step, step), 83u);
  EXPECT_EQ(AgedUrgency(93, 8 * step, step), 13u);
  EXPECT_EQ(AgedUrgency(93, std::chrono::hours(24 * 365), step), 3u);
  EXPECT_EQ(AgedUrgency(7, std::chrono::hours(1), step), 7u);
}

TEST(AgedUrgencyTest, NobodyGainsWhereItIsNotConfiguredOrNotDueYet) {
  EXPECT_EQ(AgedUrgency(93, std::chrono::hours(1), Micros(0)), 93u);
  EXPECT_EQ(AgedUrgency(93, -std::chrono::hours(1), std::chrono::minutes(1)), 93u);
}

TEST(AgedUrgencyTest, WhatHasAgedOutranksNoNewcomerThatHadNoTurnYet) {
  const std::uint32_t aged = AgedUrgency(90, std::chrono::hours(9), std::chrono::minutes(1));
  const std::vector<GroupRank> groups{{aged, 4, At(1)}, {0, 0, At(9)}};
  EXPECT_THAT(OrderGroups(groups, 5), ElementsAre(1, 0));
}

}  // namespace
}  // namespace millrace::engine
