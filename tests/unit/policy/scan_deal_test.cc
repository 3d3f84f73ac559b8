#include "framework/policy/scan_deal.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(TableDealTest, EachTableHasAStrandOfItsOwnWhileThereAreEnough) {
  TableDeal deal;
  EXPECT_TRUE(deal.Deal({"a", "b", "c"}, 4));
  EXPECT_THAT(deal.Strands(),
              ElementsAre(Pair(TableName("a"), 0), Pair(TableName("b"), 1), Pair(TableName("c"), 2)));
}

TEST(TableDealTest, WhereThereAreMoreTheyAreSpreadEvenly) {
  TableDeal deal;
  deal.Deal({"a", "b", "c", "d", "e"}, 2);
  std::multiset<std::size_t> strands;
  for (const auto& [table, strand] : deal.Strands()) strands.insert(strand);
  EXPECT_EQ(strands.count(0), 3u);
  EXPECT_EQ(strands.count(1), 2u);
}

TEST(TableDealTest, ATableStaysWhereItIs) {
  TableDeal deal;
  deal.Deal({"b", "c"}, 3);
  EXPECT_TRUE(deal.Deal({"a", "b", "c"}, 3));
  EXPECT_THAT(deal.Strands(),
              ElementsAre(Pair(TableName("a"), 2), Pair(TableName("b"), 0), Pair(TableName("c"), 1)));
  EXPECT_FALSE(deal.Deal({"a", "b", "c"}, 3));
  EXPECT_TRUE(deal.Deal({"a", "b", "c"}, 2));
  EXPECT_THAT(deal.Strands(),
              ElementsAre(Pair(TableName("a"), 0), Pair(TableName("b"), 0), Pair(TableName("c"), 1)));
}

TEST(TableDealTest, AStrandThatComesTakesOverFromThoseThatHaveTooMany) {
  TableDeal deal;
  deal.Deal({"a", "b", "c"}, 1);
  EXPECT_TRUE(deal.Deal({"a", "b", "c"}, 3));
  EXPECT_THAT(deal.Strands(),
              ElementsAre(Pair(TableName("a"), 0), Pair(TableName("b"), 1), Pair(TableName("c"), 2)));
}

TEST(StrandOfPriorityTest, EachStrandHasNeighboursAndTheFirstTheMostUrgent) {
  std::vector<std::size_t> strands;
  for (std::uint32_t priority = 0; priority < kPriorities; ++priority)
    strands.push_back(StrandOfPriority(priority, 4));
  EXPECT_THAT(strands, ElementsAre(0, 0, 0, 1, 1, 2, 2, 2, 3, 3));
  EXPECT_EQ(StrandOfPriority(9, 16), 9u);
  EXPECT_EQ(StrandOfPriority(9, 1), 0u);
}

}  // namespace
}  // namespace millrace::engine
