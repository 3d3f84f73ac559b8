// How many slices each worker gets, and of which cells: by how full workers are, and so that as few slices as
// possible change hands. README.md has the reasons.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coordinator/planner/planner.h"

namespace millrace::engine {

// Slices that the same workers accept are one cell: what is decided for one of them can be decided for all.
struct Cell {
  std::vector<WorkerIndex> workers;  // who accepts its slices; sorted
  std::vector<SliceIndex> slices;    // sorted, never empty
};

// How full workers are, compared exactly. The t-th slice of a worker of weight c adds (2t−1)/c to Σ t²/c; the
// sum is smallest when slices go one after another to where they add least. That is the rule of Sainte-Laguë
// for seats of a parliament.
//
// What one slice adds: odd/weight. A fraction that is never reduced or rounded.
struct Level {
  std::int64_t odd = 1;
  std::int64_t weight = 1;
};

inline Level LevelOfSlice(std::int64_t nth, std::int64_t weight) { return {2 * nth - 1, weight}; }
inline bool operator<(const Level& a, const Level& b) { return a.odd * b.weight < b.odd * a.weight; }

// How many slices a worker of `weight` takes that each add less than `level`, or at most as much.
std::int64_t SlicesBelow(const Level& level, std::int64_t weight);
std::int64_t SlicesWithin(const Level& level, std::int64_t weight);

// The lowest level within which workers of these weights take `slices` of them; at least 1 of each.
Level LowestLevel(std::span<const std::uint32_t> weights, std::int64_t slices);

// How many slices each worker gets, before it is asked which. The loads with the smallest Σ t²/c fall into
// layers: the fullest workers are those whose slices can go nowhere else, and below them the same again.
//
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

// How many slices of a cell a worker gets.
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
