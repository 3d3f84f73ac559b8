#include "coordinator/testing/timeline.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;

class TimelineTest : public testing::Test {
 protected:
  // Writes `name` down when it happens.
  void Plan(Micros delay, Strand* strand, char name) {
    timeline_.After(delay, strand, [this, name] { happened_ += name; });
  }
  void Run(Micros span) { timeline_.RunUntil(timeline_.Now() + span); }

  Timeline timeline_{1};
  Strand strand_;
  std::string happened_;
};

TEST_F(TimelineTest, EventsHappenInTheOrderOfTheirTimesThenOfTheirMaking) {
  Plan(seconds(2), nullptr, 'c');
  Plan(seconds(1), nullptr, 'a');
  Plan(seconds(1), nullptr, 'b');
  Run(seconds(3));
  EXPECT_EQ(happened_, "abc");
  EXPECT_EQ(timeline_.Now() - Timeline::kBeginning, seconds(3));
  EXPECT_EQ(timeline_.Steps(), 3u);
}

TEST_F(TimelineTest, WhatAHeldStrandWouldDoHappensWhenItIsLetGoInItsOrder) {
  Plan(seconds(1), &strand_, 'a');
  Plan(seconds(2), &strand_, 'b');
  Plan(seconds(5), &strand_, 'c');
  strand_.held_until = timeline_.Now() + seconds(5);
  Run(seconds(5));
  EXPECT_EQ(happened_, "");
  Run(seconds(1));
  EXPECT_EQ(happened_, "abc");
}

TEST_F(TimelineTest, WhatADeadProcessWouldHaveDoneIsForgotten) {
  Plan(seconds(1), &strand_, 'a');
  ++strand_.life;
  Plan(seconds(2), &strand_, 'b');
  Run(seconds(3));
  EXPECT_EQ(happened_, "b");
}

TEST_F(TimelineTest, AStepOfTheWallClockMovesNoOther) {
  TimelineClock clock(timeline_);
  const WallTime before = clock.WallNow();
  clock.StepWall(-seconds(5));
  EXPECT_EQ(clock.WallNow(), before - seconds(5));
  EXPECT_EQ(clock.Now(), timeline_.Now());
}

}  // namespace
}  // namespace millrace::engine
