// From how many to which: the slices of one cell are handed to their new owners.
#pragma once

#include <span>
#include <vector>

#include "coordinator/planner/shares.h"

namespace millrace::engine {

// Writes the owner of each slice of `cell` into `owners`. Each worker keeps as many of its slices as it is
// due; what it gives up, and what it gets, is spread evenly over the slices in their order, so that no worker
// ends up with one table all to itself: a busy table then keeps every worker busy.
void Deal(const PlanInput& input, const Cell& cell, std::span<const Share> shares,
          std::vector<WorkerIndex>& owners);

}  // namespace millrace::engine
