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

TEST(CoverageTest, WhoeverWroteATextThatCannotBeReadMayServeAny) {
  EXPECT_THAT(Of({"0", "all"}, 8), IsEmpty());
}

TEST(CoverageTest, OneWorkerServesWhatItsTextNames) {
  EXPECT_TRUE(Covers("0-2,5", 5));
  EXPECT_FALSE(Covers("0-2,5", 4));
  EXPECT_TRUE(Covers("", 4));
  EXPECT_TRUE(Covers("all", 4));
}

}  // namespace
}  // namespace millrace::engine
