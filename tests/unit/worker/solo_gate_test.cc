#include "framework/worker/solo_gate.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(SoloGateTest, SolitudeWaitsForEverybodyInside) {
  SoloGate gate;
  ASSERT_TRUE(gate.Enter(2));
  EXPECT_FALSE(gate.EnterAlone("a"));
  gate.Leave();
  EXPECT_FALSE(gate.EnterAlone("a"));
  gate.Leave();
  EXPECT_TRUE(gate.EnterAlone("a"));
}

TEST(SoloGateTest, NobodyEntersWhileSolitudeIsWantedOrHad) {
  SoloGate gate;
  ASSERT_TRUE(gate.Enter(1));
  EXPECT_FALSE(gate.EnterAlone("a"));
  EXPECT_FALSE(gate.Enter(1));
  gate.Leave();
  EXPECT_TRUE(gate.EnterAlone("a"));
  EXPECT_FALSE(gate.Enter(1));
  EXPECT_FALSE(gate.EnterAlone("b"));
  gate.LeaveAlone();
  EXPECT_TRUE(gate.Enter(1));
}

TEST(SoloGateTest, ATaskThatIsClaimedAlreadyCountsButIsToldNotToRun) {
  SoloGate gate;
  EXPECT_FALSE(gate.Wanted());
  EXPECT_TRUE(gate.EnterClaimed());
  EXPECT_FALSE(gate.EnterAlone("a"));
  EXPECT_FALSE(gate.EnterClaimed());
  gate.Leave(2);
  EXPECT_TRUE(gate.EnterAlone("a"));
}

}  // namespace
}  // namespace millrace
