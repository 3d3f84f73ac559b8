#include "framework/worker/coverage_watch.h"

#include <gtest/gtest.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

std::vector<Incarnation> Alive(const std::vector<std::string>& owned) {
  std::vector<Incarnation> alive;
  for (const std::string& slices : owned) {
    Incarnation one;
    one.slices = slices;
    alive.push_back(one);
  }
  return alive;
}

class CoverageWatchTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  ScratchStore store_{clock_, {.slices = 8}};
  CoverageWatch watch_{clock_, "main", store_.OpenSchema()};
};

TEST_F(CoverageWatchTest, ItTellsWhatNobodyAliveServesAndWhenThatEnds) {
  watch_.Look(Alive({"0-3", "6"}));
  EXPECT_EQ(watch_.Uncovered(), "4-5,7");
  watch_.Look(Alive({"0-3", "4-7"}));
  EXPECT_EQ(watch_.Uncovered(), "");
}

TEST_F(CoverageWatchTest, BeforeTheFirstBeatNothingIsKnown) {
  watch_.Look({});
  EXPECT_EQ(watch_.Uncovered(), "");
}

TEST_F(CoverageWatchTest, AGrownTableIsSeenAfterAMinute) {
  watch_.Look(Alive({"0-7"}));
  ASSERT_TRUE(store_.OpenSchema()->Resize("tasks", 10));
  watch_.Look(Alive({"0-7"}));
  EXPECT_EQ(watch_.Uncovered(), "");
  clock_.Advance(std::chrono::minutes(1));
  watch_.Look(Alive({"0-7"}));
  EXPECT_EQ(watch_.Uncovered(), "8-9");
}

}  // namespace
}  // namespace millrace::engine
