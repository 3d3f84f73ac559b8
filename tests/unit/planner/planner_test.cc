// Plans with figures that can be checked by hand.
#include "coordinator/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/planner/plan_case.h"

namespace millrace::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

PlanInput Cluster(std::size_t workers, std::size_t slices) {
  PlanInput input;
  input.workers.resize(workers);
  input.slices.resize(slices);
  return input;
}

TEST(PlannerTest, AnEleventhWorkerAmongTenTakes93Of1024Slices) {
  PlanInput input = Balanced(Cluster(10, 1024));
  input.workers.emplace_back();
  const Plan plan = SolvePlan(input);
  EXPECT_THAT(plan.moves, SizeIs(93));
  EXPECT_THAT(plan.moves, Each(Field(&PlanMove::to, 10u)));
  EXPECT_THAT(plan.moves, Each(Field(&PlanMove::voluntary, true)));
}

TEST(PlannerTest, OneOfTenLeavesAndItsOwnSlicesMove) {
  PlanInput input = Balanced(Cluster(10, 1024));
  std::size_t lost = 0;
  for (PlanSlice& slice : input.slices) {
    if (slice.owner != 9) continue;
    slice.owner = kNobody;
    ++lost;
  }
  input.workers.pop_back();
  const Plan plan = SolvePlan(input);
  EXPECT_THAT(plan.moves, SizeIs(lost));
  EXPECT_THAT(plan.moves, Each(Field(&PlanMove::from, kNobody)));
  EXPECT_THAT(plan.moves, Each(Field(&PlanMove::voluntary, false)));
}

TEST(PlannerTest, WeightsAreRespectedToTheNearestSlice) {
  PlanInput input = Cluster(3, 10);
  input.workers[0].weight = 1;
  input.workers[1].weight = 2;
  input.workers[2].weight = 7;
  EXPECT_THAT(LoadsOf(input, SolvePlan(input).owners), ElementsAre(1, 2, 7));
}

TEST(PlannerTest, ATieGoesToThePresentHolder) {
  PlanInput input = Cluster(2, 3);
  for (PlanSlice& slice : input.slices) slice.owner = 1;
  EXPECT_THAT(LoadsOf(input, SolvePlan(input).owners), ElementsAre(1, 2));
}

TEST(PlannerTest, FirstPlacementSpreadsNeighboursOverTheWorkers) {
  EXPECT_THAT(SolvePlan(Cluster(3, 6)).owners, ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(PlannerTest, WhatAJoinerGetsIsSpreadOverTheSlices) {
  PlanInput input = Balanced(Cluster(1, 64));
  input.workers.emplace_back();
  const Plan plan = SolvePlan(input);
  for (std::size_t s = 0; s < 64; s += 2) EXPECT_NE(plan.owners[s], plan.owners[s + 1]) << s;
}

TEST(PlannerTest, WorkersBeyondTheSlicesStandBy) {
  PlanInput input = Cluster(5, 3);
  input.slices[0].owner = 4;
  input.slices[1].owner = 4;
  const Plan plan = SolvePlan(input);
  EXPECT_THAT(LoadsOf(input, plan.owners), UnorderedElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(plan.moves, SizeIs(2));
}

TEST(PlannerTest, ASliceThatNobodyAcceptsIsUnplaceable) {
  PlanInput input = Cluster(1, 2);
  input.workers[0].groups = {0};
  input.slices[1] = {.group = 1, .owner = 0};
  const Plan plan = SolvePlan(input);
  EXPECT_THAT(plan.owners, ElementsAre(0, kNobody));
  EXPECT_THAT(plan.unplaceable, ElementsAre(1));
}

TEST(PlannerTest, WithoutWorkersNothingIsPlaceable) {
  EXPECT_THAT(SolvePlan(Cluster(0, 2)).unplaceable, ElementsAre(0, 1));
  EXPECT_THAT(SolvePlan(Cluster(2, 0)).moves, IsEmpty());
}

TEST(PlannerTest, AWorkerThatStopsAcceptingLosesItsSlicesAtOnce) {
  PlanInput input = Balanced(Cluster(2, 8));
  input.workers[0].groups.emplace();
  EXPECT_THAT(SolvePlan(input).moves, Each(Field(&PlanMove::voluntary, false)));
  EXPECT_THAT(LoadsOf(input, SolvePlan(input).owners), ElementsAre(0, 8));
}

// Group 0 can go to worker 0 alone, which is then fuller than the others can help: they share the rest.
TEST(PlannerTest, WhoHasToBeFullerLeavesTheRestToTheOthers) {
  PlanInput input = Cluster(3, 18);
  input.workers[1].groups = {1};
  input.workers[2].groups = {1};
  for (std::size_t s = 10; s < 18; ++s) input.slices[s].group = 1;
  EXPECT_THAT(LoadsOf(input, SolvePlan(input).owners), ElementsAre(10, 4, 4));
}

// Worker 2 accepts group 1 alone, of which worker 1 has none left to give: worker 0 gives it one of group 1,
// and gets one of group 0 from worker 1.
TEST(PlannerTest, AChainOfMovesBalancesWorkersThatShareNothing) {
  PlanInput input = Cluster(3, 9);
  input.workers[1].groups = {0};
  input.workers[2].groups = {1};
  for (std::size_t s = 0; s < 9; ++s) {
    input.slices[s] = {.group = s < 5 ? 0u : 1u, .owner = s < 5 ? 1u : (s < 8 ? 0u : 2u)};
  }
  const Plan plan = SolvePlan(input);
  EXPECT_THAT(LoadsOf(input, plan.owners), ElementsAre(3, 3, 3));
  EXPECT_THAT(plan.moves, SizeIs(4));
}

TEST(PlannerTest, TheHeaviestWeightsAreComparedExactly) {
  PlanInput input = Cluster(2, 3000);
  input.workers[0].weight = kMaxWeight;
  input.workers[1].weight = kMaxWeight - 1;
  EXPECT_THAT(LoadsOf(input, SolvePlan(input).owners), ElementsAre(1500, 1500));
  input.slices.emplace_back();
  EXPECT_THAT(LoadsOf(input, SolvePlan(input).owners), ElementsAre(1501, 1500));
}

}  // namespace
}  // namespace millrace::engine
