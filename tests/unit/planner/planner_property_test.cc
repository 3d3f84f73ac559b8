// What holds for every input, whatever the workers accept and whoever owns the slices now.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>

#include "coordinator/planner/balance.h"
#include "tests/unit/planner/plan_case.h"

namespace millrace::engine {
namespace {

bool AnyAccepts(const PlanInput& input, SliceIndex slice) {
  for (WorkerIndex worker = 0; worker < input.workers.size(); ++worker) {
    if (Accepts(input, worker, slice)) return true;
  }
  return false;
}

void Holds(const char* what, CaseLimits limits, const std::function<void(const PlanInput&)>& property) {
  EXPECT_TRUE(rc::check(what, [&] {
    const PlanInput input = *AnyCase(limits);
    property(input);
  }));
}

TEST(PlannerPropertyTest, EachPlaceableSliceHasOneOwnerThatAcceptsIt) {
  Holds("owners accept", {}, [](const PlanInput& input) {
    const Plan plan = SolvePlan(input);
    RC_ASSERT(plan.owners.size() == input.slices.size());
    std::vector<SliceIndex> unplaceable;
    for (SliceIndex slice = 0; slice < plan.owners.size(); ++slice) {
      if (!AnyAccepts(input, slice)) unplaceable.push_back(slice);
      RC_ASSERT((plan.owners[slice] == kNobody) == !AnyAccepts(input, slice));
      if (plan.owners[slice] != kNobody) RC_ASSERT(Accepts(input, plan.owners[slice], slice));
    }
    RC_ASSERT(plan.unplaceable == unplaceable);
  });
}

TEST(PlannerPropertyTest, MovesAreWhatChanges) {
  Holds("moves", {}, [](const PlanInput& input) {
    const Plan plan = SolvePlan(input);
    std::vector<PlanMove> moves;
    for (SliceIndex slice = 0; slice < plan.owners.size(); ++slice) {
      const WorkerIndex from = input.slices[slice].owner;
      const WorkerIndex to = plan.owners[slice];
      if (to == kNobody || to == from) continue;
      moves.push_back({slice, from, to, from != kNobody && Accepts(input, from, slice)});
    }
    RC_ASSERT(plan.moves == moves);
  });
}

TEST(PlannerPropertyTest, NoOtherAssignmentIsBetter) {
  const CaseLimits small{.workers = 4, .slices = 7, .groups = 3, .heaviest = 9};
  Holds("brute force", small, [](const PlanInput& input) {
    RC_ASSERT(ScoreOf(input, SolvePlan(input).owners) == BestScore(input));
  });
}

// A slice can wander from one worker to another along slices that each change hands by one; the loads are
// best exactly if no such way leads to where it adds less. (Balance is checked here for inputs that are too
// large to try all assignments.)
std::vector<std::vector<bool>> WaysBetweenWorkers(const PlanInput& input,
                                                  const std::vector<WorkerIndex>& owners) {
  const std::size_t m = input.workers.size();
  std::vector<std::vector<bool>> way(m, std::vector<bool>(m, false));
  for (SliceIndex slice = 0; slice < owners.size(); ++slice) {
    for (WorkerIndex to = 0; owners[slice] != kNobody && to < m; ++to) {
      if (Accepts(input, to, slice)) way[owners[slice]][to] = true;
    }
  }
  for (std::size_t via = 0; via < m; ++via) {
    for (std::size_t from = 0; from < m; ++from) {
      for (std::size_t to = 0; way[from][via] && to < m; ++to) way[from][to] = way[from][to] || way[via][to];
    }
  }
  return way;
}

TEST(PlannerPropertyTest, NoSliceCouldGoWhereItAddsLess) {
  Holds("balance", {.workers = 12, .slices = 100}, [](const PlanInput& input) {
    const Plan plan = SolvePlan(input);
    const auto way = WaysBetweenWorkers(input, plan.owners);
    const auto loads = LoadsOf(input, plan.owners);
    for (std::size_t from = 0; from < loads.size(); ++from) {
      for (std::size_t to = 0; to < loads.size(); ++to) {
        if (from == to || !way[from][to]) continue;
        RC_ASSERT(!(LevelOfSlice(loads[to] + 1, input.workers[to].weight) <
                    LevelOfSlice(loads[from], input.workers[from].weight)));
      }
    }
  });
}

// What it costs in moves to send one slice from a worker to another, the cheapest slice for it; and back for
// nothing between two workers whose loads may differ by that slice without the balance being worse. A round
// trip that saves moves is there exactly if another plan of the same balance has fewer.
std::vector<std::vector<int>> CheapestSwaps(const PlanInput& input, const Plan& plan) {
  constexpr int kNone = 1000;
  const std::size_t m = input.workers.size();
  std::vector<std::vector<int>> cost(m, std::vector<int>(m, kNone));
  for (SliceIndex slice = 0; slice < plan.owners.size(); ++slice) {
    const WorkerIndex from = plan.owners[slice];
    const WorkerIndex holder = input.slices[slice].owner;
    for (WorkerIndex to = 0; from != kNobody && to < m; ++to) {
      if (to == from || !Accepts(input, to, slice)) continue;
      cost[from][to] = std::min(cost[from][to], int{to != holder} - int{from != holder});
    }
  }
  const auto loads = LoadsOf(input, plan.owners);
  for (std::size_t from = 0; from < m; ++from) {
    for (std::size_t to = 0; to < m; ++to) {
      const Level more = LevelOfSlice(loads[to] + 1, input.workers[to].weight);
      const Level less = LevelOfSlice(loads[from], input.workers[from].weight);
      if (!(less < more) && !(more < less)) cost[to][from] = std::min(cost[to][from], 0);
    }
  }
  return cost;
}

TEST(PlannerPropertyTest, NoRoundOfSwapsWouldSaveAMove) {
  Holds("swaps", {.workers = 12, .slices = 100}, [](const PlanInput& input) {
    auto cost = CheapestSwaps(input, SolvePlan(input));
    for (std::size_t via = 0; via < cost.size(); ++via) {
      for (std::size_t from = 0; from < cost.size(); ++from) {
        for (std::size_t to = 0; to < cost.size(); ++to) {
          cost[from][to] = std::min(cost[from][to], cost[from][via] + cost[via][to]);
        }
      }
      for (std::size_t worker = 0; worker < cost.size(); ++worker) RC_ASSERT(cost[worker][worker] >= 0);
    }
  });
}

TEST(PlannerPropertyTest, SolvingAgainChangesNothing) {
  Holds("again", {}, [](const PlanInput& input) {
    const Plan plan = SolvePlan(input);
    const Plan again = SolvePlan(After(input, plan.owners));
    RC_ASSERT(again.moves.empty());
    RC_ASSERT(again.owners == plan.owners);
  });
}

TEST(PlannerPropertyTest, AnyPartOfAPlanLeavesTheRestOfItsMoves) {
  Holds("part", {}, [](const PlanInput& input) {
    const Plan plan = SolvePlan(input);
    PlanInput part = input;
    std::size_t made = 0;
    for (const PlanMove& move : plan.moves) {
      if (*rc::gen::arbitrary<bool>()) continue;
      part.slices[move.slice].owner = move.to;
      ++made;
    }
    RC_ASSERT(SolvePlan(part).moves.size() == plan.moves.size() - made);
  });
}

}  // namespace
}  // namespace millrace::engine
