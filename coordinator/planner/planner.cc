#include "coordinator/planner/planner.h"

#include <algorithm>
#include <cassert>

#include "coordinator/planner/balance.h"
#include "coordinator/planner/cells.h"
#include "coordinator/planner/deal.h"
#include "coordinator/planner/shares.h"

namespace millrace::engine {
namespace {

void Check(const PlanInput& input) {
  for (const PlanWorker& worker : input.workers) assert(worker.weight >= 1 && worker.weight <= kMaxWeight);
  for (const PlanSlice& slice : input.slices) {
    assert(slice.owner == kNobody || slice.owner < input.workers.size());
  }
}

void AddMoves(const PlanInput& input, const Cell& cell, Plan& plan) {
  for (const SliceIndex slice : cell.slices) {
    const WorkerIndex from = input.slices[slice].owner;
    const WorkerIndex to = plan.owners[slice];
    if (from == to) continue;
    const bool accepts = std::binary_search(cell.workers.begin(), cell.workers.end(), from);
    plan.moves.push_back({slice, from, to, accepts});
  }
}

}  // namespace

Plan SolvePlan(const PlanInput& input) {
  Check(input);
  const std::vector<Cell> cells = MakeCells(input);
  const Balance balance = FindBalance(cells, input.workers);
  const std::vector<std::vector<Share>> shares = FindShares(input, cells, balance);
  Plan plan;
  plan.owners.assign(input.slices.size(), kNobody);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].workers.empty()) {
      plan.unplaceable.insert(plan.unplaceable.end(), cells[i].slices.begin(), cells[i].slices.end());
      continue;
    }
    Deal(input, cells[i], shares[i], plan.owners);
    AddMoves(input, cells[i], plan);
  }
  std::sort(plan.moves.begin(), plan.moves.end(),
            [](const PlanMove& a, const PlanMove& b) { return a.slice < b.slice; });
  std::sort(plan.unplaceable.begin(), plan.unplaceable.end());
  return plan;
}

}  // namespace millrace::engine
