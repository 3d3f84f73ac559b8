#include "framework/policy/coverage.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint32_t> Of(const std::vector<std::string>& owned, std::uint32_t slices) {
  return Uncovered(owned, slices);
}

TEST(CoverageTest, WhatNobodyOwnsIsUncovered) {
  EXPECT_THAT(Of({"0-2", "2,5"}, 8), ElementsAre(3, 4, 6, 7));
  EXPECT_THAT(Of({}, 2), ElementsAre(0, 1));
}

TEST(CoverageTest, OneThatOwnsEverythingCoversAll) { EXPECT_THAT(Of({"0-2", ""}, 8), IsEmpty()); }

TEST(CoverageTest, NumbersBeyondTheTableAreNobodysConcern) { EXPECT_THAT(Of({"0-99"}, 8), IsEmpty()); }

TEST(CoverageTest, ATextThatCannotBeReadCoversNothing) { EXPECT_THAT(Of({"all"}, 2), ElementsAre(0, 1)); }

}  // namespace
}  // namespace millrace::engine
