#include "framework/mill/look_schedule.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::SizeIs;

constexpr Micros kBound = milliseconds(200);
constexpr WallTime kNow{seconds(50'000)};

DueGroup Group(std::uint32_t slice, Micros waits) { return {"tasks", slice, "noop", 50, kNow - waits}; }

class LookScheduleTest : public testing::Test {
 protected:
  // Takes the look that is due; true: a full one.
  bool Look() {
    const DueFloor floor = schedule_.Floor(now_, slices_);
    schedule_.Looked(now_, floor.Empty() ? full_cost_ : floored_cost_, floor, map_, kBound, 1);
    spent_on_full_ += floor.Empty() ? full_cost_ : Micros(0);
    now_ = schedule_.Next();
    return floor.Empty();
  }
  void LookTwice() {  // the first may have had to connect
    Look();
    Look();
  }

  LookSchedule schedule_;
  std::vector<TableSlices> slices_{{"tasks", true, {}}};
  DueMap map_{{}, kNow};
  BootTime now_{seconds(1000)};
  Micros full_cost_ = milliseconds(2);
  Micros floored_cost_ = milliseconds(1);
  Micros spent_on_full_{0};
};

TEST_F(LookScheduleTest, CheapMapsAreAllFullAndAsOftenAsConfigured) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(Look());
    EXPECT_EQ(schedule_.Interval(), kBound);
  }
}

TEST_F(LookScheduleTest, BetweenDearFullMapsThereAreOthersFromAFloorOn) {
  full_cost_ = milliseconds(40);
  LookTwice();
  int full = 0;
  const BootTime began = now_;
  spent_on_full_ = Micros(0);
  int looks = 0;
  for (; now_ < began + seconds(60); ++looks) full += Look() ? 1 : 0;
  EXPECT_GE(looks, 300) << "nobody waits longer than configured";
  EXPECT_GE(full, 29) << "as often as without the others";
  EXPECT_LE(spent_on_full_, seconds(60) / 20);
}

TEST_F(LookScheduleTest, FullMapsTakeASmallPartOfTheTimeHoweverDearTheyBecome) {
  const BootTime began = now_;
  while (now_ < began + std::chrono::minutes(30)) {
    full_cost_ += Micros(100);
    Look();
  }
  EXPECT_LE(spent_on_full_, (now_ - began) / 20);
}

TEST_F(LookScheduleTest, AFullMapComesWithinTenSecondsHoweverDearTheLastWere) {
  full_cost_ = floored_cost_ = milliseconds(2'100);  // the database stood still
  LookTwice();
  full_cost_ = floored_cost_ = milliseconds(1);
  const BootTime began = now_;
  while (!Look()) EXPECT_LT(now_ - began, seconds(10));
}

TEST_F(LookScheduleTest, WholeMapsThatOtherSlicesAskForPutOffTheNextNoFurther) {
  full_cost_ = floored_cost_ = milliseconds(2'100);
  for (std::uint32_t slice = 1; slice <= 4; ++slice) {
    slices_ = {{"tasks", false, {slice}}};
    ASSERT_TRUE(Look());
  }
  full_cost_ = floored_cost_ = milliseconds(1);
  const BootTime began = now_;
  while (!Look()) ASSERT_LT(now_ - began, seconds(10));
}

TEST_F(LookScheduleTest, WhereAFloorDoesNotHelpAllMapsAreFullAgain) {
  full_cost_ = floored_cost_ = milliseconds(40);
  LookTwice();
  for (int i = 0; i < 5; ++i) Look();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(Look());
    EXPECT_EQ(schedule_.Interval(), seconds(2));
  }
}

TEST_F(LookScheduleTest, AFloorThatDidNotHelpIsTriedAgainOnceFullMapsTakeTwiceAsLong) {
  full_cost_ = floored_cost_ = milliseconds(20);
  for (int i = 0; i < 10; ++i) Look();
  ASSERT_TRUE(Look());
  full_cost_ = milliseconds(45);
  floored_cost_ = milliseconds(1);
  int floored = 0;
  for (int i = 0; i < 10; ++i) floored += Look() ? 0 : 1;
  EXPECT_GE(floored, 5);
}

TEST_F(LookScheduleTest, ALookBeforeItsTimeIsAFullOneWhereMapsAreCheap) {
  LookTwice();
  now_ -= milliseconds(100);
  EXPECT_TRUE(Look());
}

TEST_F(LookScheduleTest, OtherSlicesAreLookedAtAsAWhole) {
  full_cost_ = milliseconds(40);
  LookTwice();
  ASSERT_FALSE(Look());
  slices_ = {{"tasks", false, {7}}};
  EXPECT_TRUE(Look());
}

TEST_F(LookScheduleTest, TheFloorOfAnOldGroupIsItsHeadAndOfAnotherAFewSecondsAgo) {
  full_cost_ = milliseconds(40);
  map_.groups = {Group(1, seconds(60)), Group(2, seconds(1)), Group(3, -seconds(60))};
  LookTwice();
  const DueFloor floor = schedule_.Floor(now_, slices_);
  EXPECT_EQ(floor.from, WallTime::max());
  ASSERT_THAT(floor.earlier, SizeIs(3));
  EXPECT_EQ(floor.earlier[0].first_run_at, kNow - seconds(60));
  EXPECT_EQ(floor.earlier[1].first_run_at, kNow - seconds(5));
  EXPECT_EQ(floor.earlier[2].first_run_at, kNow - seconds(5));
}

TEST_F(LookScheduleTest, AGroupThatIsEmptyForAMomentIsAskedForStill) {
  full_cost_ = milliseconds(40);
  map_.groups = {Group(1, seconds(60))};
  LookTwice();
  map_.groups.clear();
  map_.now = kNow + seconds(30);
  const BootTime began = now_;
  Look();
  DueFloor floor = schedule_.Floor(now_, slices_);
  ASSERT_THAT(floor.earlier, SizeIs(1));
  EXPECT_EQ(floor.earlier[0].first_run_at, map_.now - seconds(5));
  while (now_ < began + seconds(61)) Look();
  floor = schedule_.Floor(now_, slices_);
  if (floor.Empty()) {  // a full one is due
    Look();
    floor = schedule_.Floor(now_, slices_);
  }
  EXPECT_FALSE(floor.Empty());
  EXPECT_THAT(floor.earlier, SizeIs(0));
}

TEST_F(LookScheduleTest, OfVeryManyGroupsAllMapsAreFullAndSeldom) {
  full_cost_ = milliseconds(40);
  for (std::uint32_t slice = 0; slice < 300; ++slice) map_.groups.push_back(Group(slice, seconds(1)));
  LookTwice();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Look());
    EXPECT_EQ(schedule_.Interval(), seconds(2));
  }
}

}  // namespace
}  // namespace millrace::engine
