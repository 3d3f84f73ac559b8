#include "framework/mill/in_flight.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

TEST(MemoryBudgetTest, AClaimBringsInAPartOfItAtMost) {
  const MemoryBudget memory;
  EXPECT_GT(memory.Room(0), 0u);
  EXPECT_LE(memory.Room(0), MemoryBudget::kInAll / 4);
}

TEST(MemoryBudgetTest, WhereAllIsInUseEachShardHasALittleStill) {
  MemoryBudget memory;
  memory.Add(MemoryBudget::kInAll);
  EXPECT_EQ(memory.Room(0), MemoryBudget::kEachShard);
  EXPECT_EQ(memory.Room(MemoryBudget::kEachShard), 0u);
  memory.Remove(MemoryBudget::kInAll);
  EXPECT_GT(memory.Room(MemoryBudget::kEachShard), 0u);
}

TEST(MemoryBudgetTest, TooLittleIsNothing) {
  MemoryBudget memory;
  memory.Add(MemoryBudget::kInAll - 1);
  EXPECT_EQ(memory.Room(MemoryBudget::kEachShard - 1), 0u);
}

}  // namespace
}  // namespace millrace::engine
