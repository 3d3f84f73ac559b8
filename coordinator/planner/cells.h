// Slices that the same workers accept are one cell: what is decided for one of them can be decided for all.
#pragma once

#include <vector>

#include "coordinator/planner/planner.h"

namespace millrace::engine {

struct Cell {
  std::vector<WorkerIndex> workers;  // who accepts its slices; sorted
  std::vector<SliceIndex> slices;    // sorted, never empty
};

// Every slice is in one cell, also those that nobody accepts. In the order of the cells' first slices.
std::vector<Cell> MakeCells(const PlanInput& input);

}  // namespace millrace::engine
