// Which worker owns which slice, with the fewest moves. Pure: the same input gives the same plan, and nothing
// is remembered between two calls.
//
// Of all plans the one is chosen that (1) places the most slices, (2) has the smallest Σ t²/c over the
// workers (t slices on a worker of weight c), and (3) moves the fewest. How, and why these follow from it, is
// in README.md: solving again changes nothing; whatever part of the moves has been made, the rest of them
// leads to a best plan; where every worker accepts everything, a leaver's slices alone move when it leaves,
// and slices move to the joiner alone when one joins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::engine {

// Workers, slices and groups are numbers, counted from 0. Among equally good plans the numbers decide, so
// number by sorted names: then the order in which things were learnt changes nothing.
using WorkerIndex = std::uint32_t;
using SliceIndex = std::uint32_t;
using GroupIndex = std::uint32_t;

inline constexpr WorkerIndex kNobody = 0xFFFFFFFF;
inline constexpr std::uint32_t kMaxWeight = 1'000'000;  // keeps every comparison exact in 64 bits

struct PlanWorker {
  std::uint32_t weight = 1;                            // 1..kMaxWeight
  std::optional<std::vector<GroupIndex>> groups = {};  // accepts these alone; nullopt: every group
  std::optional<std::vector<SliceIndex>> slices = {};  // and of them these alone; nullopt: every slice
};

struct PlanSlice {
  GroupIndex group = 0;
  WorkerIndex owner = kNobody;  // who has it now, though it may no longer accept it
};

struct PlanInput {
  std::vector<PlanWorker> workers;
  std::vector<PlanSlice> slices;
};

struct PlanMove {
  SliceIndex slice = 0;
  WorkerIndex from = kNobody;
  WorkerIndex to = kNobody;
  // The present owner may keep it: the move is for balance, and can wait. Otherwise nobody works on it.
  bool voluntary = false;
  bool operator==(const PlanMove&) const = default;
};

struct Plan {
  std::vector<WorkerIndex> owners;      // by slice; kNobody: no worker accepts it
  std::vector<PlanMove> moves;          // by slice; first placements are moves, too
  std::vector<SliceIndex> unplaceable;  // sorted
};

// Every index in `input` is in range. O(n + m log m) for n slices and m workers that accept everything.
Plan SolvePlan(const PlanInput& input);

}  // namespace millrace::engine
