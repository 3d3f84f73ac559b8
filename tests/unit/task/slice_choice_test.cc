#include "framework/task/slice_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace millrace::engine {
namespace {

TEST(SliceChoiceTest, ARunIsAnEighthOfASlicesShareAndAtMostAThousand) {
  EXPECT_EQ(SliceRun(1, 64), 1u);
  EXPECT_EQ(SliceRun(1'023, 64), 1u);
  EXPECT_EQ(SliceRun(1'024, 64), 2u);
  EXPECT_EQ(SliceRun(100'000, 64), 195u);
  EXPECT_EQ(SliceRun(512'000, 64), 1'000u);
  EXPECT_EQ(SliceRun(100'000'000, 64), 1'000u);
  EXPECT_EQ(SliceRun(9, 1), 1u);
  EXPECT_EQ(SliceRun(100'000, 16'384), 1u);
}

TEST(SliceChoiceTest, FewTasksAreSpreadOverAsManySlices) {
  SliceRuns runs(64, 64, Random(1));
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 64; ++i) seen.insert(runs.Next());
  EXPECT_EQ(seen.size(), 64u);
  EXPECT_EQ(*seen.rbegin(), 63u);
}

TEST(SliceChoiceTest, TheOrderIsDrawn) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 50; ++seed) first.insert(SliceRuns(64, 1, Random(seed)).Next());
  EXPECT_GT(first.size(), 20u);
}

TEST(SliceChoiceTest, ManyTasksGoInRunsAndEverySliceGetsItsShare) {
  constexpr std::uint64_t kRows = 100'000;
  SliceRuns runs(64, kRows, Random(7));
  std::map<std::uint32_t, int> share;
  int changes = 0;
  std::uint32_t last = 64;
  for (std::uint64_t i = 0; i < kRows; ++i) {
    const std::uint32_t slice = runs.Next();
    changes += slice != last;
    last = slice;
    ++share[slice];
  }
  EXPECT_LE(changes, 513);  // runs of 195
  EXPECT_GT(changes, 500);
  ASSERT_EQ(share.size(), 64u);
  for (const auto& [slice, rows] : share) EXPECT_NEAR(rows, 1'562, 2 * 195) << slice;
}

TEST(SliceChoiceTest, WhereTheNumberIsNotKnownTheRunsGrow) {
  SliceRuns runs(4, 0, Random(3));
  const auto changes = [&](int rows) {
    int count = 0;
    for (std::uint32_t last = 4; rows > 0; --rows) {
      const std::uint32_t slice = runs.Next();
      count += slice != last;
      last = slice;
    }
    return count;
  };
  EXPECT_GT(changes(60), 50);
  changes(40'000);
  EXPECT_LE(changes(5'000), 6);
}

TEST(SliceChoiceTest, OneSliceIsAlwaysTheSame) {
  SliceRuns runs(1, 0, Random(1));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(runs.Next(), 0u);
}

// As SELECT CRC32('customer-17') % 64 says on MySQL and MariaDB.
TEST(SliceChoiceTest, AKeysSliceIsItsCrc32) {
  EXPECT_EQ(SliceOfKey("123456789", 16'384), 0xCBF43926u % 16'384);
  EXPECT_EQ(SliceOfKey("", 64), 0u);
  EXPECT_EQ(SliceOfKey("customer-17", 1), 0u);
}

}  // namespace
}  // namespace millrace::engine
