#include "framework/mill/look_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Micros kBound = milliseconds(200);

class LookScheduleTest : public testing::Test {
 protected:
  // Takes the look that is due; true: a whole one.
  bool Look() {
    const bool part = schedule_.TakesPart(now_, slices_);
    begun_ = part ? begun_ : parts_ && schedule_.WantsParts(now_);
    schedule_.Looked(now_, part ? part_cost_ : full_cost_, part, kBound, 1, begun_);
    spent_on_full_ += part ? Micros(0) : full_cost_;
    now_ = schedule_.Next();
    return !part;
  }
  void LookTwice() {  // the first may have had to connect
    Look();
    Look();
  }

  LookSchedule schedule_;
  std::vector<TableSlices> slices_{{"tasks", true, {}}};
  bool parts_ = true;  // too many groups for them otherwise
  bool begun_ = false;
  BootTime now_{seconds(1000)};
  Micros full_cost_ = milliseconds(2);
  Micros part_cost_ = milliseconds(1);
  Micros spent_on_full_{0};
};

TEST_F(LookScheduleTest, CheapMapsAreAllWholeAndAsOftenAsConfigured) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(Look());
    EXPECT_EQ(schedule_.Interval(), kBound);
  }
}

TEST_F(LookScheduleTest, BetweenDearWholeMapsThereAreParts) {
  full_cost_ = milliseconds(40);
  LookTwice();
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

TEST_F(LookScheduleTest, AMapThatHasNotBegunPartsIsFollowedByAWholeOne) {
  full_cost_ = milliseconds(40);
  LookTwice();
  ASSERT_TRUE(schedule_.WantsParts(now_));
  EXPECT_TRUE(Look());
  EXPECT_FALSE(Look());
}

TEST_F(LookScheduleTest, WhereThereAreNoPartsAllMapsAreWholeAndSeldom) {
  parts_ = false;
  full_cost_ = milliseconds(40);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Look());
  EXPECT_EQ(schedule_.Interval(), seconds(2));
}

TEST_F(LookScheduleTest, WholeMapsTakeASmallPartOfTheTimeHoweverDearTheyBecome) {
  const BootTime began = now_;
  while (now_ < began + std::chrono::minutes(30)) {
    full_cost_ += Micros(100);
    Look();
  }
  EXPECT_LE(spent_on_full_, (now_ - began) / 20);
}

TEST_F(LookScheduleTest, AWholeMapComesWithinTenSecondsHoweverDearTheLastWere) {
  full_cost_ = part_cost_ = milliseconds(2'100);  // the database stood still
  LookTwice();
  full_cost_ = part_cost_ = milliseconds(1);
  const BootTime began = now_;
  while (!Look()) EXPECT_LT(now_ - began, seconds(10));
}

TEST_F(LookScheduleTest, WholeMapsThatOtherSlicesAskForPutOffTheNextNoFurther) {
  full_cost_ = part_cost_ = milliseconds(2'100);
  for (std::uint32_t slice = 1; slice <= 4; ++slice) {
    slices_ = {{"tasks", false, {slice}}};
    ASSERT_TRUE(Look());
  }
  full_cost_ = part_cost_ = milliseconds(1);
  const BootTime began = now_;
  while (!Look()) ASSERT_LT(now_ - began, seconds(10));
}

TEST_F(LookScheduleTest, WherePartsAreNoCheaperMapsAreWholeAndPartsAreTriedAgain) {
  full_cost_ = part_cost_ = milliseconds(40);
  for (int i = 0; i < 6; ++i) Look();
  int parts = 0;
  const BootTime began = now_;
  while (now_ < began + seconds(60)) parts += Look() ? 0 : 1;
  EXPECT_GE(parts, 4);
  EXPECT_LE(parts, 8);
  part_cost_ = milliseconds(1);
  const BootTime cheaper = now_;
  while (now_ < cheaper + seconds(12)) Look();
  int looks = 0;
  for (const BootTime from = now_; now_ < from + seconds(10); ++looks) Look();
  EXPECT_GE(looks, 40) << "as soon as they are, they stand in";
}

TEST_F(LookScheduleTest, ALookBeforeItsTimeIsAWholeOneWhereMapsAreCheap) {
  LookTwice();
  now_ -= milliseconds(100);
  EXPECT_TRUE(Look());
}

TEST_F(LookScheduleTest, OtherSlicesAreLookedAtAsAWhole) {
  full_cost_ = milliseconds(40);
  LookTwice();
  Look();
  ASSERT_FALSE(Look());
  slices_ = {{"tasks", false, {7}}};
  EXPECT_TRUE(Look());
}

TEST_F(LookScheduleTest, AfterTroubleTheNextMapIsAWholeOne) {
  full_cost_ = milliseconds(40);
  LookTwice();
  Look();
  ASSERT_FALSE(Look());
  schedule_.Forget();
  EXPECT_TRUE(Look());
}

}  // namespace
}  // namespace millrace::engine
