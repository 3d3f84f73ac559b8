#include "framework/mill/solo_gate.h"

#include <gtest/gtest.h>

#include "framework/testing/manual_clock.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SoloGateTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  SoloGate gate_{clock_};
};

TEST_F(SoloGateTest, SolitudeWaitsForEverybodyInside) {
  ASSERT_TRUE(gate_.Enter(2));
  EXPECT_FALSE(gate_.EnterAlone("a"));
  gate_.Leave();
  EXPECT_FALSE(gate_.EnterAlone("a"));
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("a"));
}

TEST_F(SoloGateTest, NobodyEntersWhileSolitudeIsWantedOrHad) {
  ASSERT_TRUE(gate_.Enter(1));
  EXPECT_FALSE(gate_.EnterAlone("a"));
  EXPECT_FALSE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("a"));
  EXPECT_FALSE(gate_.Enter(1));
  EXPECT_FALSE(gate_.EnterAlone("b"));
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SoloGateTest, ATaskThatIsClaimedAlreadyCountsButIsToldNotToRun) {
  EXPECT_FALSE(gate_.Wanted());
  EXPECT_TRUE(gate_.EnterClaimed());
  EXPECT_FALSE(gate_.EnterAlone("a"));
  EXPECT_FALSE(gate_.EnterClaimed());
  gate_.Leave(2);
  EXPECT_TRUE(gate_.EnterAlone("a"));
}

TEST_F(SoloGateTest, SuspectsFollowEachOtherForAStretchThenTheOthersHaveAsLong) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(gate_.EnterAlone(std::to_string(i)));
    clock_.Advance(seconds(1));
    gate_.LeaveAlone();
  }
  EXPECT_FALSE(gate_.EnterAlone("next"));
  EXPECT_FALSE(gate_.Wanted()) << "a wish in their turn keeps nobody out";
  ASSERT_TRUE(gate_.Enter(1));
  clock_.Advance(seconds(9));
  EXPECT_FALSE(gate_.EnterAlone("next"));
  clock_.Advance(seconds(2));
  EXPECT_FALSE(gate_.EnterAlone("next"));
  EXPECT_FALSE(gate_.Enter(1)) << "their turn is over";
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("next"));
}

TEST_F(SoloGateTest, ATurnThatNobodyUsesIsOverAtOnce) {
  ASSERT_TRUE(gate_.EnterAlone("a"));
  clock_.Advance(seconds(30));
  gate_.LeaveAlone();
  EXPECT_FALSE(gate_.EnterAlone("b"));
  clock_.Advance(milliseconds(500));
  EXPECT_TRUE(gate_.EnterAlone("b"));
}

// Its scan may hang in the shard, and no thread comes to take the wish back.
TEST_F(SoloGateTest, AShardThatClaimsNoMoreKeepsNobodyOut) {
  gate_.Enter(1);
  EXPECT_FALSE(gate_.EnterAlone("gone/tasks/7"));
  gate_.WithdrawAll("other");
  EXPECT_FALSE(gate_.Enter(1));
  gate_.WithdrawAll("gone");
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SoloGateTest, ASuspectThatRunsAloneDoesSoToItsEndAlsoInAShardThatClaimsNoMore) {
  EXPECT_TRUE(gate_.EnterAlone("gone/tasks/7"));
  gate_.WithdrawAll("gone");
  EXPECT_FALSE(gate_.Enter(1));
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SoloGateTest, BesideWhatRunsForLongNobodyIsKeptOutUntilThatIsDueToEndSoon) {
  gate_.Enter(1);
  EXPECT_FALSE(gate_.EnterAlone("a", std::chrono::hours(1)));
  EXPECT_TRUE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_FALSE(gate_.EnterAlone("a", seconds(20)));
  EXPECT_FALSE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("a"));
}

}  // namespace
}  // namespace millrace::engine
