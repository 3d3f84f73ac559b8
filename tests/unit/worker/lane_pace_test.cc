#include "framework/worker/lane_pace.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LanePaceTest, BeforeTheFirstTaskItQueuesTwoPerThread) { EXPECT_EQ(LanePace(8, 0).Capacity(), 16u); }

TEST(LanePaceTest, SlowTasksAreNotHoarded) {
  LanePace pace(8, 0);
  pace.Ran(1, seconds(10));
  EXPECT_EQ(pace.Capacity(), 8u);
}

TEST(LanePaceTest, HalfASecondOfWorkIsQueued) {
  LanePace pace(8, 0);
  pace.Ran(1, milliseconds(50));
  EXPECT_EQ(pace.Capacity(), 80u);
}

TEST(LanePaceTest, FastTasksStopAtTheBound) {
  LanePace pace(2, 0);
  pace.Ran(999, microseconds(100));
  EXPECT_EQ(pace.Capacity(), LanePace::kMost);
}

TEST(LanePaceTest, AConfiguredNumberHoldsWhateverThePace) {
  LanePace pace(8, 200);
  pace.Ran(1, seconds(10));
  EXPECT_EQ(pace.Capacity(), 200u);
}

TEST(LanePaceTest, ATaskWaitsForThoseBeforeItAndForAThread) {
  LanePace pace(8, 0);
  EXPECT_GE(pace.WaitFor(0), seconds(60));
  pace.Ran(1, seconds(1));
  EXPECT_EQ(pace.WaitFor(0), milliseconds(125));
  EXPECT_EQ(pace.WaitFor(15), seconds(2));
}

TEST(LanePaceTest, ANewNumberOfThreadsKeepsThePace) {
  LanePace pace(8, 0);
  pace.Ran(1, milliseconds(50));
  pace.Resize(2, 0);
  EXPECT_EQ(pace.Capacity(), 20u);
}

TEST(LanePaceTest, ItFollowsAChangeOfPace) {
  LanePace pace(1, 0);
  pace.Ran(1, milliseconds(1));
  for (int i = 0; i < 100; ++i) pace.Ran(1, milliseconds(100));
  EXPECT_LE(pace.Capacity(), 6u);
}

}  // namespace
}  // namespace millrace::engine
