#include "framework/policy/scan_deal.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(TableDealTest, EachTableHasAStrandOfItsOwnWhileThereAreEnough) {
  EXPECT_THAT(DealTables({}, {"a", "b", "c"}, 4),
              ElementsAre(Pair(TableName("a"), 0), Pair(TableName("b"), 1), Pair(TableName("c"), 2)));
}

TEST(TableDealTest, WhereThereAreMoreTheyAreSpreadEvenly) {
  std::multiset<std::size_t> strands;
  for (const auto& [table, strand] : DealTables({}, {"a", "b", "c", "d", "e"}, 2)) strands.insert(strand);
  EXPECT_EQ(strands.count(0), 3u);
  EXPECT_EQ(strands.count(1), 2u);
}

TEST(TableDealTest, ATableStaysWhereItIs) {
  const TableDeal before = DealTables({}, {"b", "c"}, 3);
  const TableDeal deal = DealTables(before, {"a", "b", "c"}, 3);
  EXPECT_THAT(deal, ElementsAre(Pair(TableName("a"), 2), Pair(TableName("b"), 0), Pair(TableName("c"), 1)));
  EXPECT_EQ(DealTables(deal, {"a", "b", "c"}, 3), deal);
  EXPECT_THAT(DealTables(deal, {"a", "b", "c"}, 2),
              ElementsAre(Pair(TableName("a"), 0), Pair(TableName("b"), 0), Pair(TableName("c"), 1)));
}

TEST(TableDealTest, AStrandThatComesTakesOverFromThoseThatHaveTooMany) {
  const TableDeal before = DealTables({}, {"a", "b", "c"}, 1);
  EXPECT_THAT(DealTables(before, {"a", "b", "c"}, 3),
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
