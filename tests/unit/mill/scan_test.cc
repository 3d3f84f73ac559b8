#include "framework/mill/scan.h"

#include <gtest/gtest.h>

#include "tests/unit/mill/start_time.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

constexpr Micros kRewind = seconds(2);
constexpr WallTime kDue{seconds(5000)};

DueGroup Group(std::uint32_t slice, WallTime first) { return {"tasks", slice, "noop", 50, first}; }

class ScanCursorTest : public ::testing::Test {
 protected:
  ScanCursors cursors_;
  const DueGroup group_ = Group(1, kDue);
  const ScanPosition last_{kDue + seconds(3), 42};
};

TEST(HeadTest, NoRowOfTheGroupStandsBeforeItsHead) {
  const DueGroup group = Group(1, kDue);
  EXPECT_LT(HeadOf(group), (ScanPosition{kDue, 0}));
  EXPECT_EQ(HeadOf(Group(1, WallTime{})), ScanPosition{}) << "a time that nobody could read";
}

TEST_F(ScanCursorTest, AGroupStartsAtItsBeginning) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), HeadOf(group_));
  EXPECT_TRUE(cursors_.MayHaveMore(group_));
}

TEST_F(ScanCursorTest, AFullPageGoesOnBehindItsLastRow) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 999, true);
  cursors_.Refresh(kStart + seconds(1), {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), last_);
  EXPECT_EQ(cursors_.Rank(group_).waiting_since, last_.run_at);
}

// As .NET's and Go's time of nothing.
TEST_F(ScanCursorTest, AFullPageOfTheYearOneGoesOnBehindItsLastRow) {
  const WallTime year_one{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};
  const DueGroup group = Group(1, year_one);
  cursors_.Refresh(kStart, {group}, kRewind);
  EXPECT_EQ(cursors_.At(group), ScanPosition{});
  cursors_.Advance(group, {year_one, 150}, 150, true);
  EXPECT_EQ(cursors_.At(group), (ScanPosition{year_one, 150}));
  cursors_.Advance(group, {year_one, 300}, 150, true);
  cursors_.Refresh(kStart + seconds(1), {group}, kRewind);
  EXPECT_EQ(cursors_.At(group), (ScanPosition{year_one, 300}));
}

TEST_F(ScanCursorTest, AGroupThatRanEmptyStartsAgain) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 3, false);
  EXPECT_FALSE(cursors_.MayHaveMore(group_));
  cursors_.Refresh(kStart + seconds(1), {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), HeadOf(group_));
  EXPECT_TRUE(cursors_.MayHaveMore(group_));
}

TEST_F(ScanCursorTest, WhatIsReadAgainMakesASmallGroupNoLargerOne) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 60, false);
  cursors_.Rewind(group_);
  EXPECT_EQ(cursors_.At(group_), HeadOf(group_));
  EXPECT_TRUE(cursors_.MayHaveMore(group_));
  cursors_.Advance(group_, last_, 60, false);
  cursors_.Refresh(kStart + seconds(1), {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), HeadOf(group_));
}

TEST_F(ScanCursorTest, ALargeGroupThatRanEmptyGoesOnBehindItsCursorUntilTheRewindInterval) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 500, false);
  cursors_.Refresh(kStart + seconds(1), {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), last_);
  EXPECT_TRUE(cursors_.MayHaveMore(group_));
  cursors_.Refresh(kStart + seconds(2), {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), HeadOf(group_));
}

TEST_F(ScanCursorTest, AGroupThatNeverRunsEmptyGoesBackOnTheRewindInterval) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 999, true);
  cursors_.Refresh(kStart + seconds(2), {group_}, kRewind);
  EXPECT_EQ(cursors_.At(group_), HeadOf(group_));
}

TEST_F(ScanCursorTest, AHeadThatMovedToAnEarlierTimeIsSeenAtOnce) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 999, true);
  const DueGroup earlier = Group(1, kDue - seconds(1));
  cursors_.Refresh(kStart + seconds(1), {earlier}, kRewind);
  EXPECT_EQ(cursors_.At(group_), HeadOf(earlier));
}

TEST_F(ScanCursorTest, AHeadThatMovedOnIsNoReasonToGoBack) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  cursors_.Advance(group_, last_, 999, true);
  cursors_.Refresh(kStart + seconds(1), {Group(1, kDue + seconds(1))}, kRewind);
  EXPECT_EQ(cursors_.At(group_), last_);
}

TEST_F(ScanCursorTest, AGroupThatGoesBackKeepsItsTurn) {
  cursors_.Refresh(kStart, {group_}, kRewind);
  EXPECT_EQ(cursors_.Rank(group_).served, 0u);
  cursors_.Served(group_, 7);
  cursors_.Refresh(kStart + kRewind, {group_}, kRewind);
  EXPECT_EQ(cursors_.Rank(group_).served, 7u);
}

TEST_F(ScanCursorTest, WhatTheMapDoesNotNameIsForgotten) {
  cursors_.Refresh(kStart, {group_, Group(2, kDue)}, kRewind);
  cursors_.Refresh(kStart, {Group(2, kDue)}, kRewind);
  EXPECT_FALSE(cursors_.MayHaveMore(group_));
  EXPECT_EQ(cursors_.Size(), 1u);
}

}  // namespace
}  // namespace millrace::engine
