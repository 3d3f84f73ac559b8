#include "coordinator/planner/flow_network.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <ostream>
#include <vector>

namespace millrace::engine {
namespace {

struct Road {
  int from = 0;
  int to = 0;
  int capacity = 0;
  int cost = 0;
};

std::ostream& operator<<(std::ostream& out, const Road& road) {
  return out << road.from << "→" << road.to << " takes " << road.capacity << " at " << road.cost;
}

constexpr int kNodes = 7;

rc::Gen<Road> AnyRoad() {
  return rc::gen::build<Road>(rc::gen::set(&Road::from, rc::gen::inRange(0, kNodes)),
                              rc::gen::set(&Road::to, rc::gen::inRange(0, kNodes)),
                              rc::gen::set(&Road::capacity, rc::gen::inRange(0, 5)),
                              rc::gen::set(&Road::cost, rc::gen::inRange(0, 4)));
}

struct Sent {
  std::int64_t amount = 0;
  std::int64_t cost = 0;
  bool operator==(const Sent&) const = default;
};

// One unit after the other, each along a shortest way by Bellman and Ford: slow, and plain.
Sent SendOneByOne(const std::vector<Road>& roads, int source, int sink) {
  std::vector<Road> halves;
  for (const Road& road : roads) {
    halves.push_back(road);
    halves.push_back({road.to, road.from, 0, -road.cost});
  }
  constexpr int kFar = 1'000'000;
  for (Sent sent;; ++sent.amount) {
    std::vector<int> distance(kNodes, kFar);
    std::vector<std::size_t> by(kNodes, 0);
    distance[source] = 0;
    for (int round = 0; round < kNodes; ++round) {
      for (std::size_t i = 0; i < halves.size(); ++i) {
        const Road& half = halves[i];
        if (half.capacity == 0 || distance[half.from] == kFar) continue;
        if (distance[half.from] + half.cost >= distance[half.to]) continue;
        distance[half.to] = distance[half.from] + half.cost;
        by[half.to] = i;
      }
    }
    if (distance[sink] == kFar) return sent;
    sent.cost += distance[sink];
    for (int node = sink; node != source; node = halves[by[node]].from) {
      --halves[by[node]].capacity;
      ++halves[by[node] ^ 1].capacity;
    }
  }
}

TEST(FlowNetworkTest, SendsAsMuchAndAsCheaplyAsOneUnitAfterTheOther) {
  EXPECT_TRUE(rc::check([] {
    const auto roads = *rc::gen::container<std::vector<Road>>(AnyRoad());
    FlowNetwork network(kNodes);
    std::vector<FlowNetwork::Arc> arcs;
    for (const Road& road : roads) {
      arcs.push_back(network.AddArc(static_cast<FlowNetwork::Node>(road.from),
                                    static_cast<FlowNetwork::Node>(road.to), road.capacity, road.cost));
    }
    Sent sent{network.SendMost(0, kNodes - 1), 0};
    for (std::size_t i = 0; i < roads.size(); ++i) sent.cost += network.Flow(arcs[i]) * roads[i].cost;
    RC_ASSERT(sent == SendOneByOne(roads, 0, kNodes - 1));
  }));
}

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
}  // namespace millrace::engine
