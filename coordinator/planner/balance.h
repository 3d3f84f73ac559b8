// How many slices each worker gets, before it is asked which. The loads with the smallest Σ t²/c fall into
// layers: the fullest workers are those whose slices can go nowhere else, and below them the same again.
#pragma once

#include <span>
#include <vector>

#include "coordinator/planner/cells.h"

namespace millrace::engine {

// Cells and workers of a layer go with each other alone. Every layer is at one level; a worker there takes
// `least` slices or one more, if that one would add exactly the level.
struct Balance {
  struct Load {
    std::uint32_t layer = 0;
    std::int64_t least = 0;
    std::int64_t most = 0;
  };
  std::vector<std::uint32_t> layer_of_cell;
  std::vector<Load> loads;           // by worker; all 0 for one that stands by
  std::vector<std::int64_t> extras;  // by layer: how many of its workers take one more
};

inline constexpr std::uint32_t kNoLayer = 0xFFFFFFFF;  // of cells that nobody accepts, and of standbys

// Any distribution within these bounds, with as many extras, has the smallest Σ t²/c; no other one has.
Balance FindBalance(std::span<const Cell> cells, std::span<const PlanWorker> workers);

}  // namespace millrace::engine
