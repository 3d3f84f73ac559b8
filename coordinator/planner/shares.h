// How many slices of each cell each worker gets, so that as few as possible change hands.
#pragma once

#include <span>
#include <vector>

#include "coordinator/planner/balance.h"

namespace millrace::engine {

struct Share {
  WorkerIndex worker = 0;
  std::int64_t held = 0;  // slices of the cell that it owns now
  std::int64_t due = 0;   // slices of the cell that it is to own
};

// By cell, the workers that have or get some of its slices, sorted; for a cell that nobody accepts none. Of
// all shares within `balance` they have the smallest Σ max(0, due − held). Owners that do not accept a slice
// hold nothing.
std::vector<std::vector<Share>> FindShares(const PlanInput& input, std::span<const Cell> cells,
                                           const Balance& balance);

}  // namespace millrace::engine
