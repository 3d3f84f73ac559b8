#include "coordinator/planner/planner.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <unordered_map>

#include "coordinator/planner/balance.h"

namespace millrace::engine {
namespace {

// A set of workers, a bit each.
using Bits = std::vector<std::uint64_t>;

void Set(Bits& bits, std::size_t at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }

struct BitsHash {
  std::size_t operator()(const Bits& bits) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : bits) hash = (std::rotl(hash, 5) ^ word) * 0x9E3779B97F4A7C15;
    return hash ^ (hash >> 32);
  }
};

std::vector<WorkerIndex> Members(const Bits& bits) {
  std::vector<WorkerIndex> members;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    for (std::uint64_t word = bits[i]; word != 0; word &= word - 1) {
      members.push_back(static_cast<WorkerIndex>(i * 64 + std::countr_zero(word)));
    }
  }
  return members;
}

std::vector<Bits> WorkersByGroup(const PlanInput& input, std::size_t words) {
  GroupIndex groups = 0;
  for (const PlanSlice& slice : input.slices) groups = std::max(groups, slice.group + 1);
  std::vector<Bits> accept(groups, Bits(words));
  for (std::size_t w = 0; w < input.workers.size(); ++w) {
    if (!input.workers[w].groups) {
      for (Bits& bits : accept) Set(bits, w);
      continue;
    }
    for (const GroupIndex group : *input.workers[w].groups) {
      if (group < groups) Set(accept[group], w);
    }
  }
  return accept;
}

bool AnyLimits(const PlanInput& input) {
  return std::any_of(input.workers.begin(), input.workers.end(),
                     [](const PlanWorker& worker) { return worker.slices.has_value(); });
}

// Who accepts each slice as far as lists of slices go; empty where no worker has such a list.
std::vector<Bits> WorkersBySlice(const PlanInput& input, std::size_t words) {
  if (!AnyLimits(input)) return {};
  Bits unlimited(words);
  for (std::size_t w = 0; w < input.workers.size(); ++w) {
    if (!input.workers[w].slices) Set(unlimited, w);
  }
  std::vector<Bits> accept(input.slices.size(), unlimited);
  for (std::size_t w = 0; w < input.workers.size(); ++w) {
    if (!input.workers[w].slices) continue;
    for (const SliceIndex slice : *input.workers[w].slices) Set(accept[slice], w);
  }
  return accept;
}

class CellMaker {
 public:
  std::size_t CellOf(const Bits& workers) {
    const auto [found, fresh] = known_.try_emplace(workers, cells_.size());
    if (fresh) cells_.push_back({Members(workers), {}});
    return found->second;
  }
  void Add(std::size_t cell, SliceIndex slice) { cells_[cell].slices.push_back(slice); }
  std::vector<Cell> Take() { return std::move(cells_); }

 private:
  std::unordered_map<Bits, std::size_t, BitsHash> known_;
  std::vector<Cell> cells_;
};

// Every slice is in one cell, also those that nobody accepts. In the order of the cells' first slices.
std::vector<Cell> MakeCells(const PlanInput& input) {
  const std::size_t words = (input.workers.size() + 63) / 64;
  const std::vector<Bits> by_group = WorkersByGroup(input, words);
  std::vector<Bits> by_slice = WorkersBySlice(input, words);
  constexpr std::size_t kUnknown = -1;
  std::vector<std::size_t> cell_of_group(by_group.size(), kUnknown);
  CellMaker maker;
  for (SliceIndex slice = 0; slice < input.slices.size(); ++slice) {
    const GroupIndex group = input.slices[slice].group;
    if (!by_slice.empty()) {
      Bits& workers = by_slice[slice];
      for (std::size_t i = 0; i < words; ++i) workers[i] &= by_group[group][i];
      maker.Add(maker.CellOf(workers), slice);
      continue;
    }
    if (cell_of_group[group] == kUnknown) cell_of_group[group] = maker.CellOf(by_group[group]);
    maker.Add(cell_of_group[group], slice);
  }
  return maker.Take();
}

// The place of one slice among those that a worker is to get: (2i+1)/(2·need) of the way through all that are
// handed out.
struct Seat {
  std::int64_t odd = 1;
  std::int64_t need = 1;
  WorkerIndex worker = 0;
};

bool operator<(const Seat& a, const Seat& b) {
  const std::int64_t left = a.odd * b.need;
  const std::int64_t right = b.odd * a.need;
  return left != right ? left < right : a.worker < b.worker;
}

std::vector<Seat> SeatsInOrder(std::span<const Share> shares) {
  std::vector<Seat> seats;
  for (const Share& share : shares) {
    const std::int64_t need = share.due - share.held;
    for (std::int64_t i = 0; i < need; ++i) seats.push_back({2 * i + 1, need, share.worker});
  }
  std::sort(seats.begin(), seats.end());
  return seats;
}

// Of the slices that a worker holds, in their order, which does it keep?
struct Keeping {
  std::int64_t held = 0;
  std::int64_t kept = 0;
  std::int64_t seen = 0;

  bool KeepsNext() {
    ++seen;
    return seen * kept / held > (seen - 1) * kept / held;
  }
};

// From how many to which: writes the owner of each slice of `cell` into `owners`. Each worker keeps as many
// of its slices as it is due; what it gives up, and what it gets, is spread evenly over the slices in their
// order, so that no worker ends up with one table all to itself: a busy table then keeps every worker busy.
void Deal(const PlanInput& input, const Cell& cell, std::span<const Share> shares,
          std::vector<WorkerIndex>& owners) {
  std::vector<Keeping> keeping(input.workers.size());
  for (const Share& share : shares) keeping[share.worker] = {share.held, std::min(share.held, share.due)};
  const std::vector<Seat> seats = SeatsInOrder(shares);
  auto seat = seats.begin();
  for (const SliceIndex slice : cell.slices) {
    const WorkerIndex owner = input.slices[slice].owner;
    if (owner != kNobody && keeping[owner].held > 0 && keeping[owner].KeepsNext()) {
      owners[slice] = owner;
    } else {
      assert(seat != seats.end());
      owners[slice] = (seat++)->worker;
    }
  }
}

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
