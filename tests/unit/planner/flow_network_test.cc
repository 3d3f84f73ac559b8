#include "coordinator/planner/flow_network.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(FlowNetworkTest, SendsAsMuchAsTheNarrowestCutLetsThrough) {
  FlowNetwork network(4);
  network.AddArc(0, 1, 10);
  network.AddArc(0, 2, 5);
  network.AddArc(1, 3, 4);
  network.AddArc(1, 2, 3);
  network.AddArc(2, 3, 7);
  EXPECT_EQ(network.SendMost(0, 3), 11);
}

TEST(FlowNetworkTest, OfTheLargestFlowsTakesACheapestOne) {
  FlowNetwork network(4);
  network.AddArc(0, 1, 2);
  network.AddArc(0, 2, 2);
  const auto dear = network.AddArc(1, 3, 2, 5);
  const auto way_round = network.AddArc(1, 2, 2, 1);
  network.AddArc(2, 3, 3, 1);
  EXPECT_EQ(network.SendMost(0, 3), 4);
  EXPECT_EQ(network.Flow(dear), 1);
  EXPECT_EQ(network.Flow(way_round), 1);
}

// The first path takes what the second needs, and has to give it back.
TEST(FlowNetworkTest, TakesBackWhatStandsInTheWay) {
  FlowNetwork network(6);
  network.AddArc(0, 1, 1);
  network.AddArc(0, 2, 1);
  const auto taken = network.AddArc(1, 3, 1, 0);
  const auto otherwise = network.AddArc(1, 4, 1, 1);
  network.AddArc(2, 3, 1, 0);
  network.AddArc(3, 5, 1);
  network.AddArc(4, 5, 1);
  EXPECT_EQ(network.SendMost(0, 5), 2);
  EXPECT_EQ(network.Flow(taken), 0);
  EXPECT_EQ(network.Flow(otherwise), 1);
}

TEST(FlowNetworkTest, GoesOnWhereAnArcWasWidened) {
  FlowNetwork network(3);
  network.AddArc(0, 1, 9);
  const auto narrow = network.AddArc(1, 2, 2);
  EXPECT_EQ(network.SendMost(0, 2), 2);
  EXPECT_TRUE(network.Reachable(0)[1]);
  network.Widen(narrow, 7);
  EXPECT_EQ(network.SendMost(0, 2), 7);
  EXPECT_FALSE(network.Reachable(0)[1]);
  EXPECT_EQ(network.Flow(narrow), 9);
}

}  // namespace
}  // namespace millrace
