#include "framework/mill/known_groups.h"

#include <gmock/gmock.h>

#include <set>

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WallTime kMapsBegin{seconds(50'000)};

class KnownGroupsTest : public testing::Test {
 protected:
  static DueGroup Group(std::uint32_t slice, WallTime first, std::size_t rows = 0, bool later = false) {
    return {"tasks", slice, "noop", 50, first, later, rows};
  }
  void Whole(std::vector<DueGroup> groups, std::uint64_t greatest = 100) {
    map_ = {std::move(groups), at_};
    map_.greatest["tasks"] = greatest;
    known_.Take({.begins_parts = true}, map_, cursors_);
    Refresh();
  }
  const DueWanted& Ask(Micros later = std::chrono::milliseconds(200)) {
    now_ += later;
    at_ += later;
    wanted_ = known_.Wanted(now_, cursors_);
    return wanted_;
  }
  void Answer(std::vector<DueGroup> groups, std::uint64_t greatest = 0, std::vector<DueGroup> after = {}) {
    map_ = {std::move(groups), at_};
    if (greatest > 0) map_.greatest["tasks"] = greatest;
    map_.after = std::move(after);
    known_.Take(wanted_, map_, cursors_);
    Refresh();
  }
  void Refresh() { cursors_.Refresh(now_, map_.groups, std::chrono::minutes(1)); }
  void ReadToItsEnd(const DueGroup& group) { cursors_.Advance(group, {at_, 1}, 1, false); }

  KnownGroups known_;
  ScanCursors cursors_;
  DueWanted wanted_;
  DueMap map_;
  BootTime now_{seconds(1000)};
  WallTime at_ = kMapsBegin;
  std::uint64_t known_at_ = 100'000;
};

TEST_F(KnownGroupsTest, WithoutAMapThatBeginsThemThereAreNoParts) {
  EXPECT_FALSE(known_.Begun());
  map_ = {{Group(1, at_)}, at_};
  known_.Take({}, map_, cursors_);
  EXPECT_FALSE(known_.Begun());
  Whole({});
  EXPECT_TRUE(known_.Begun());
}

TEST_F(KnownGroupsTest, AGroupThatIsNotReadToItsEndStaysAndIsNotAskedFor) {
  Whole({Group(1, at_ - seconds(60)), Group(2, at_ - seconds(60))});
  cursors_.Advance(Group(1, at_), {at_ - seconds(30), 7}, 100, true);
  ReadToItsEnd(Group(2, at_));
  EXPECT_THAT(Ask().after, IsEmpty());
  Answer({});
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_EQ(map_.groups[0].slice, 1U);
  EXPECT_EQ(map_.groups[0].first_run_at, kMapsBegin - seconds(30)) << "from where it has not been read";
}

TEST_F(KnownGroupsTest, NewRowsAreReadAsManyAsThereAre) {
  Whole({});
  Ask();
  Answer({Group(3, at_ - seconds(1), 17)}, 117);
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_EQ(map_.groups[0].rows, 17U);
  EXPECT_EQ(cursors_.Expected(map_.groups[0]), 17U);
  EXPECT_EQ(Ask().newer.at("tasks"), 117U);
  Answer({Group(3, at_ - seconds(1), 5)}, 122);
  EXPECT_EQ(map_.groups[0].rows, 0U) << "there are others in front of these";
  EXPECT_EQ(cursors_.Expected(map_.groups[0]), 0U);
  ReadToItsEnd(map_.groups[0]);
  EXPECT_THAT(Ask().after, IsEmpty());
  Answer({});
  EXPECT_THAT(map_.groups, IsEmpty());
}

TEST_F(KnownGroupsTest, CommitsThatComeLateAreFoundOnceASecondForFiveSeconds) {
  Whole({}, 100'000);
  Ask();
  Answer({}, 100'100);
  Ask(seconds(1));
  Answer({}, 100'200);
  int again = 0;
  for (int i = 0; i < 25; ++i) {
    again += Ask().newer.at("tasks") < 100'200 ? 1 : 0;
    Answer({});
  }
  EXPECT_EQ(again, 5);
  for (int i = 0; i < 5; ++i) {
    Ask();
    Answer({});
  }
  EXPECT_EQ(Ask(seconds(1)).newer.at("tasks"), 100'200U);
}

TEST_F(KnownGroupsTest, CommitsThatWereUnderWayWhenAWholeMapWasReadAreFoundToo) {
  Whole({}, 100'000);
  EXPECT_EQ(Ask().newer.at("tasks"), 90'000U) << "nobody knows what was the greatest before";
  Answer({}, 100'200);
  EXPECT_EQ(Ask().newer.at("tasks"), 100'200U);
  Answer({});
  Whole({}, 100'300);
  EXPECT_EQ(Ask(seconds(1)).newer.at("tasks"), 90'000U);
  Answer({});
  Ask(seconds(5));
  Answer({});
  EXPECT_EQ(Ask(seconds(1)).newer.at("tasks"), 100'300U);
}

TEST_F(KnownGroupsTest, WhatIsDueLaterComesAtItsTimeAndThenWhatIsBehindIt) {
  Whole({Group(1, at_ - seconds(60), 0, true), Group(2, at_ + seconds(1))});
  ReadToItsEnd(Group(1, at_));
  ASSERT_THAT(Ask().after, SizeIs(1));
  EXPECT_EQ(wanted_.after[0].slice, 1U);
  EXPECT_EQ(wanted_.after[0].first_run_at, kMapsBegin);
  const WallTime comes = kMapsBegin + seconds(5);
  Answer({}, 0, {Group(1, comes)});
  ASSERT_THAT(map_.groups, SizeIs(2));
  EXPECT_EQ(map_.groups[0].first_run_at, comes);
  EXPECT_EQ(map_.groups[1].first_run_at, kMapsBegin + seconds(1));
  EXPECT_THAT(Ask(seconds(1)).after, IsEmpty());
  Answer({});
  ReadToItsEnd(map_.groups[1]);
  ASSERT_THAT(Ask().after, SizeIs(1)) << "behind one that came due";
  EXPECT_EQ(wanted_.after[0].slice, 2U);
  Answer({});
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_THAT(Ask(seconds(10)).after, IsEmpty());
  Answer({});
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_EQ(map_.groups[0].first_run_at, comes);
}

TEST_F(KnownGroupsTest, NewRowsInFrontOfLaterOnesDoNotHideThem) {
  Whole({Group(1, at_ + seconds(5))});
  Ask();
  Answer({Group(1, at_ - seconds(1), 2)}, 102);
  EXPECT_EQ(map_.groups[0].rows, 2U);
  ReadToItsEnd(map_.groups[0]);
  ASSERT_THAT(Ask().after, SizeIs(1));
  Answer({}, 0, {Group(1, kMapsBegin + seconds(5))});
  EXPECT_EQ(map_.groups[0].first_run_at, kMapsBegin + seconds(5));
}

TEST_F(KnownGroupsTest, OfNewRowsSomeOfWhichAreDueLaterTheOthersAreAskedForOnceTheFirstAreRead) {
  Whole({});
  Ask();
  Answer({Group(1, at_ - seconds(1), 2, true)}, 102);
  ReadToItsEnd(map_.groups[0]);
  EXPECT_THAT(Ask().after, SizeIs(1));
}

TEST_F(KnownGroupsTest, WhatWaitsAgainIsAskedFor) {
  Whole({});
  known_.Return(GroupKeyOf(Group(4, {})), at_);
  known_.LookAgain(GroupKeyOf(Group(5, {})), at_ - seconds(60), now_ + seconds(1));
  ASSERT_THAT(Ask().after, SizeIs(1));
  EXPECT_EQ(wanted_.after[0].slice, 4U);
  EXPECT_LT(wanted_.after[0].first_run_at, kMapsBegin);
  Answer({});
  ASSERT_THAT(Ask(seconds(1)).after, SizeIs(1)) << "not before it may";
  EXPECT_EQ(wanted_.after[0].slice, 5U);
  Answer({}, 0, {Group(5, kMapsBegin - seconds(60))});
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_THAT(Ask().after, IsEmpty()) << "once is enough";
}

TEST_F(KnownGroupsTest, AGroupThatIsBeingReadStartsAgainWhereSomethingWaitsBehindThat) {
  const DueGroup group = Group(1, at_ - seconds(60));
  Whole({group});
  cursors_.Advance(group, {at_ - seconds(30), 7}, 100, true);
  known_.Return(GroupKeyOf(group), at_ - seconds(45));
  Ask();
  Answer({}, 0, {Group(1, kMapsBegin - seconds(45))});
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_EQ(cursors_.At(map_.groups[0]).run_at, kMapsBegin - seconds(45) - Micros(1));
}

TEST_F(KnownGroupsTest, WhatStandsBehindTheCursorAtTheSameTimeIsAskedForAtTheEnd) {
  const DueGroup group = Group(1, at_ - seconds(60));
  Whole({group});
  cursors_.Advance(group, {at_ - seconds(30), 50}, 100, true);
  known_.Return(GroupKeyOf(group), at_ - seconds(30));
  Ask();
  Answer({}, 0, {Group(1, kMapsBegin - seconds(30))});
  ASSERT_THAT(map_.groups, SizeIs(1));
  EXPECT_EQ(cursors_.At(map_.groups[0]).id, 50U) << "not the whole tie again, while there is more";
  ReadToItsEnd(map_.groups[0]);
  ASSERT_THAT(Ask().after, SizeIs(1));
  EXPECT_EQ(wanted_.after[0].first_run_at, kMapsBegin - seconds(30) - Micros(1));
}

TEST_F(KnownGroupsTest, ARowThatStaysWhereItIsIsLookedAtOnceASecond) {
  const DueGroup group = Group(1, at_ - seconds(60));
  Whole({group});
  int read = 0;
  for (int look = 0; look < 50; ++look) {
    const bool is_there = !map_.groups.empty();
    read += is_there ? 1 : 0;
    if (is_there) known_.LookAgain(GroupKeyOf(group), group.first_run_at, now_ + seconds(1));
    if (is_there) ReadToItsEnd(group);
    const auto& asked = Ask().after;
    const bool found = !asked.empty() && asked[0].first_run_at < group.first_run_at;
    Answer({}, 0, found ? std::vector<DueGroup>{group} : std::vector<DueGroup>{});
  }
  EXPECT_GE(read, 8);
  EXPECT_LE(read, 11) << "in ten seconds";
}

TEST_F(KnownGroupsTest, HoweverFarPartsAreApartEveryOtherBringsWhatIsNewest) {
  Whole({}, 100'000);
  for (int i = 1; i <= 10; ++i) {
    const bool earlier = Ask(seconds(3)).newer.at("tasks") < known_at_;
    EXPECT_EQ(earlier, i % 2 == 1) << i;
    known_at_ = 100'000 + static_cast<std::uint64_t>(i) * 100;
    Answer({}, known_at_);
  }
}

TEST_F(KnownGroupsTest, OfVeryManyGroupsThatAreAskedForAllHaveTheirTurn) {
  Whole({});
  std::set<std::uint32_t> asked;
  for (int turn = 0; turn < 3; ++turn) {
    for (std::uint32_t slice = 0; slice < 600; ++slice) known_.Return(GroupKeyOf(Group(slice, {})), at_);
    Ask();
    EXPECT_LE(wanted_.after.size(), 256U);
    for (const DueGroup& group : wanted_.after) asked.insert(group.slice);
    Answer({});
  }
  EXPECT_THAT(asked, SizeIs(600));
}

TEST_F(KnownGroupsTest, OfATableThatCouldNotBeReadNothingIsTold) {
  Whole({Group(1, at_ - seconds(60))});
  Ask();
  map_ = {{}, at_};
  map_.refused["tasks"] = "locked";
  known_.Take(wanted_, map_, cursors_);
  EXPECT_THAT(map_.groups, IsEmpty());
}

TEST_F(KnownGroupsTest, OfVeryManyGroupsThereAreNoParts) {
  std::vector<DueGroup> groups;
  for (std::uint32_t slice = 0; slice <= KnownGroups::kMost; ++slice) groups.push_back(Group(slice, at_));
  Whole(std::move(groups));
  EXPECT_FALSE(known_.Begun());
  EXPECT_FALSE(known_.MayBegin()) << "so no whole map begins any, until there are fewer";
}

}  // namespace
}  // namespace millrace::engine
