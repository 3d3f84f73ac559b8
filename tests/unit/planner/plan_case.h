// Random problems for the planner, and what a plan is measured by, computed the plain way.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <vector>

#include "coordinator/planner/planner.h"

namespace millrace::engine {

// Shown when a property fails: RapidCheck prints the smallest input that it finds.
std::ostream& operator<<(std::ostream& out, const PlanInput& input);

struct CaseLimits {
  int workers = 8;
  int slices = 40;
  int groups = 4;
  bool constrained = true;  // workers may accept some groups or slices alone
  int heaviest = 1000;
};

// Owners are anything: right, unbalanced, not accepting what they own, nobody.
rc::Gen<PlanInput> AnyCase(CaseLimits limits);

bool Accepts(const PlanInput& input, WorkerIndex worker, SliceIndex slice);

// How many slices each worker has.
std::vector<std::int64_t> LoadsOf(const PlanInput& input, const std::vector<WorkerIndex>& owners);

// The input as it is once the plan is carried out.
PlanInput After(PlanInput input, const std::vector<WorkerIndex>& owners);
inline PlanInput Balanced(const PlanInput& input) { return After(input, SolvePlan(input).owners); }

// What a plan is judged by, in the order of importance: smaller is better.
struct Score {
  std::size_t unplaced = 0;
  std::int64_t imbalance = 0;  // Σ t²/c, times the product of all weights
  std::size_t moves = 0;
  auto operator<=>(const Score&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Score& score);

Score ScoreOf(const PlanInput& input, const std::vector<WorkerIndex>& owners);

// The best score of all assignments there are: for a handful of slices.
Score BestScore(const PlanInput& input);

}  // namespace millrace::engine
