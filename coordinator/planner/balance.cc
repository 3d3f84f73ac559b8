// Decomposition of a polymatroid for a separable convex objective (Fujishige 1980, Groenevelt 1991): the top
// layer is the set of cells that needs the highest level. Newton's method finds that level: a set of cells
// that does not fit names the level at which it would; the next flow shows whether everything fits then.
#include "coordinator/planner/balance.h"

#include <cassert>

#include "coordinator/planner/flow_network.h"
#include "coordinator/planner/level.h"

namespace millrace::engine {
namespace {

using Node = FlowNetwork::Node;

// Finds one layer after the other, from the fullest down, among the cells and workers that are left.
class LayerFinder {
 public:
  LayerFinder(std::span<const Cell> cells, std::span<const PlanWorker> workers)
      : cells_(cells), workers_(workers) {
    balance_.layer_of_cell.assign(cells.size(), kNoLayer);
    balance_.loads.assign(workers.size(), {.layer = kNoLayer});
    for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
      if (!cells[cell].workers.empty()) left_.push_back(cell);
    }
  }

  Balance Find() {
    while (!left_.empty()) TakeLayer();
    return std::move(balance_);
  }

 private:
  std::int64_t SlicesOf(std::span<const std::uint32_t> cells) const {
    std::int64_t slices = 0;
    for (const std::uint32_t cell : cells) slices += static_cast<std::int64_t>(cells_[cell].slices.size());
    return slices;
  }

  // The workers that no layer has taken and that accept some of these cells.
  std::vector<WorkerIndex> FreeWorkersOf(std::span<const std::uint32_t> cells) const {
    std::vector<bool> seen(workers_.size(), false);
    std::vector<WorkerIndex> found;
    for (const std::uint32_t cell : cells) {
      for (const WorkerIndex worker : cells_[cell].workers) {
        if (seen[worker] || balance_.loads[worker].layer != kNoLayer) continue;
        seen[worker] = true;
        found.push_back(worker);
      }
    }
    return found;
  }

  Level LevelFor(std::span<const std::uint32_t> cells) const {
    std::vector<std::uint32_t> weights;
    for (const WorkerIndex worker : FreeWorkersOf(cells)) weights.push_back(workers_[worker].weight);
    return LowestLevel(weights, SlicesOf(cells));
  }

  void TakeLayer();
  void Record(const Level& level, std::span<const std::uint32_t> cells);

  std::span<const Cell> cells_;
  std::span<const PlanWorker> workers_;
  Balance balance_;
  std::vector<std::uint32_t> left_;
};

// source → cells → workers → sink, for the cells and workers that are left.
class Filling {
 public:
  Filling(std::span<const Cell> cells, std::span<const std::uint32_t> left,
          std::span<const WorkerIndex> workers, std::size_t all_workers)
      : left_(left),
        workers_(workers),
        source_(static_cast<Node>(left.size() + workers.size())),
        sink_(source_ + 1),
        network_(sink_ + 1),
        limits_(workers.size(), 0) {
    constexpr Node kTaken = 0xFFFFFFFF;
    std::vector<Node> node_of(all_workers, kTaken);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      node_of[workers[i]] = static_cast<Node>(left.size() + i);
      to_sink_.push_back(network_.AddArc(node_of[workers[i]], sink_, 0));
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Cell& cell = cells[left[i]];
      const auto slices = static_cast<std::int64_t>(cell.slices.size());
      network_.AddArc(source_, static_cast<Node>(i), slices);
      for (const WorkerIndex worker : cell.workers) {
        if (node_of[worker] != kTaken) network_.AddArc(static_cast<Node>(i), node_of[worker], slices);
      }
    }
  }

  // Fills each worker up to its limit, which never falls; returns how many slices are placed.
  template <class LimitOf>
  std::int64_t FillTo(const LimitOf& limit_of) {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const std::int64_t limit = limit_of(workers_[i]);
      network_.Widen(to_sink_[i], limit - limits_[i]);
      limits_[i] = limit;
    }
    return placed_ += network_.SendMost(source_, sink_);
  }

  // The smallest set of cells that fills all its workers to their limits and still does not fit.
  std::vector<std::uint32_t> Crowded() const {
    const std::vector<bool> reachable = network_.Reachable(source_);
    std::vector<std::uint32_t> crowded;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (reachable[i]) crowded.push_back(left_[i]);
    }
    return crowded;
  }

 private:
  std::span<const std::uint32_t> left_;
  std::span<const WorkerIndex> workers_;
  Node source_;
  Node sink_;
  FlowNetwork network_;
  std::vector<FlowNetwork::Arc> to_sink_;
  std::vector<std::int64_t> limits_;
  std::int64_t placed_ = 0;
};

// Below the level that is looked for, not everything fits; the cells that are then crowded are the layer:
// the slices that do not fit are as few as can be, and each of them must add the level.
void LayerFinder::TakeLayer() {
  const std::vector<WorkerIndex> free = FreeWorkersOf(left_);
  const std::int64_t slices = SlicesOf(left_);
  Filling filling(cells_, left_, free, workers_.size());
  std::vector<std::uint32_t> tight = left_;
  while (true) {
    const Level level = LevelFor(tight);
    filling.FillTo([&](WorkerIndex worker) { return SlicesBelow(level, workers_[worker].weight); });
    const std::vector<std::uint32_t> crowded = filling.Crowded();
    const std::int64_t placed =
        filling.FillTo([&](WorkerIndex worker) { return SlicesWithin(level, workers_[worker].weight); });
    if (placed == slices) return Record(level, crowded);
    tight = filling.Crowded();
  }
}

void LayerFinder::Record(const Level& level, std::span<const std::uint32_t> cells) {
  assert(!cells.empty());
  const auto layer = static_cast<std::uint32_t>(balance_.extras.size());
  std::int64_t extras = SlicesOf(cells);
  for (const WorkerIndex worker : FreeWorkersOf(cells)) {
    const std::int64_t weight = workers_[worker].weight;
    balance_.loads[worker] = {layer, SlicesBelow(level, weight), SlicesWithin(level, weight)};
    extras -= balance_.loads[worker].least;
  }
  balance_.extras.push_back(extras);
  for (const std::uint32_t cell : cells) balance_.layer_of_cell[cell] = layer;
  std::erase_if(left_, [&](std::uint32_t cell) { return balance_.layer_of_cell[cell] != kNoLayer; });
}

}  // namespace

Balance FindBalance(std::span<const Cell> cells, std::span<const PlanWorker> workers) {
  return LayerFinder(cells, workers).Find();
}

}  // namespace millrace::engine
