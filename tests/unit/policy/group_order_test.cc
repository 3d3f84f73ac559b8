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

}  // namespace
}  // namespace millrace::engine
