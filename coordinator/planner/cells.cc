#include "coordinator/planner/cells.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

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

}  // namespace

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

}  // namespace millrace::engine
