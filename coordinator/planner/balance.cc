#include "coordinator/planner/balance.h"

#include <algorithm>
#include <cassert>
#include <queue>

#include "coordinator/planner/flow_network.h"

namespace millrace::engine {

std::int64_t SlicesWithin(const Level& level, std::int64_t weight) {
  return (level.odd * weight + level.weight) / (2 * level.weight);
}

std::int64_t SlicesBelow(const Level& level, std::int64_t weight) {
  return (level.odd * weight + level.weight - 1) / (2 * level.weight);
}

Level LowestLevel(std::span<const std::uint32_t> weights, std::int64_t slices) {
  assert(!weights.empty() && slices > 0);
  std::int64_t total = 0;
  for (const std::uint32_t weight : weights) total += weight;
  // Within the level (2·slices − m)/Σc the workers take at most `slices` and lack fewer than m: a start from
  // below that leaves little to do one by one.
  const std::int64_t start =
      std::max<std::int64_t>(2 * slices - static_cast<std::int64_t>(weights.size()), 0);
  const auto higher = [](const Level& a, const Level& b) { return b < a; };
  std::priority_queue<Level, std::vector<Level>, decltype(higher)> next(higher);
  Level highest{0, 1};
  for (const std::uint32_t weight : weights) {
    const std::int64_t taken = SlicesWithin({start, total}, weight);
    slices -= taken;
    if (taken > 0) highest = std::max(highest, LevelOfSlice(taken, weight));
    next.push(LevelOfSlice(taken + 1, weight));
  }
  for (; slices > 0; --slices) {
    highest = next.top();
    next.pop();
    next.push({highest.odd + 2, highest.weight});
  }
  return highest;
}

namespace {

using Node = FlowNetwork::Node;
using Arc = FlowNetwork::Arc;

// Decomposition of a polymatroid for a separable convex objective (Fujishige 1980, Groenevelt 1991): the top
// layer is the set of cells that needs the highest level. Newton's method finds that level: a set of cells
// that does not fit names the level at which it would; the next flow shows whether everything fits then.
// The layers are found one after the other, from the fullest down, among the cells and workers that are left.
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

// A cheapest flow: keeping costs nothing, and every slice that a worker does not own yet costs one.
class ShareFinder {
 public:
  ShareFinder(const PlanInput& input, std::span<const Cell> cells, const Balance& balance)
      : input_(input),
        cells_(cells),
        balance_(balance),
        network_(cells.size() + input.workers.size() + balance.extras.size() + 2) {}

  std::vector<std::vector<Share>> Find() {
    AddWorkers();
    std::int64_t slices = 0;
    for (std::size_t cell = 0; cell < cells_.size(); ++cell) slices += AddCell(cell);
    const std::int64_t placed = network_.SendMost(Source(), Sink());
    assert(placed == slices);
    std::vector<std::vector<Share>> shares(cells_.size());
    for (const Offer& offer : offers_) {
      std::int64_t due = network_.Flow(offer.moved);
      if (offer.held > 0) due += network_.Flow(offer.kept);
      if (offer.held > 0 || due > 0) shares[offer.cell].push_back({offer.worker, offer.held, due});
    }
    return shares;
  }

 private:
  // A worker may take slices of a cell: those it holds, by `kept`, which stands for nothing where it holds
  // none, and others.
  struct Offer {
    std::size_t cell = 0;
    WorkerIndex worker = 0;
    std::int64_t held = 0;
    Arc kept = 0;
    Arc moved = 0;
  };

  Node NodeOfCell(std::size_t cell) const { return static_cast<Node>(cell); }
  Node NodeOfWorker(std::size_t worker) const { return static_cast<Node>(cells_.size() + worker); }
  Node NodeOfLayer(std::size_t layer) const {
    return static_cast<Node>(cells_.size() + input_.workers.size() + layer);
  }
  Node Source() const { return NodeOfLayer(balance_.extras.size()); }
  Node Sink() const { return Source() + 1; }

  void AddWorkers() {
    for (std::size_t layer = 0; layer < balance_.extras.size(); ++layer) {
      network_.AddArc(NodeOfLayer(layer), Sink(), balance_.extras[layer]);
    }
    for (std::size_t worker = 0; worker < input_.workers.size(); ++worker) {
      const Balance::Load& load = balance_.loads[worker];
      if (load.layer == kNoLayer) continue;
      network_.AddArc(NodeOfWorker(worker), Sink(), load.least);
      network_.AddArc(NodeOfWorker(worker), NodeOfLayer(load.layer), load.most - load.least);
    }
  }

  std::vector<std::int64_t> HeldByWorker(const Cell& cell) const {
    std::vector<std::int64_t> held(input_.workers.size(), 0);
    for (const SliceIndex slice : cell.slices) {
      if (input_.slices[slice].owner != kNobody) ++held[input_.slices[slice].owner];
    }
    return held;
  }

  // Returns how many slices of the cell have to be placed. A worker of another layer gets none of them, so
  // what it holds of them is not kept.
  std::int64_t AddCell(std::size_t cell) {
    if (cells_[cell].workers.empty()) return 0;
    const auto slices = static_cast<std::int64_t>(cells_[cell].slices.size());
    const std::vector<std::int64_t> held = HeldByWorker(cells_[cell]);
    network_.AddArc(Source(), NodeOfCell(cell), slices);
    for (const WorkerIndex worker : cells_[cell].workers) {
      if (balance_.loads[worker].layer != balance_.layer_of_cell[cell]) continue;
      Offer offer{cell, worker, held[worker]};
      if (offer.held > 0) offer.kept = network_.AddArc(NodeOfCell(cell), NodeOfWorker(worker), offer.held, 0);
      offer.moved = network_.AddArc(NodeOfCell(cell), NodeOfWorker(worker), slices, 1);
      offers_.push_back(offer);
    }
    return slices;
  }

  const PlanInput& input_;
  std::span<const Cell> cells_;
  const Balance& balance_;
  FlowNetwork network_;
  std::vector<Offer> offers_;
};

}  // namespace

Balance FindBalance(std::span<const Cell> cells, std::span<const PlanWorker> workers) {
  return LayerFinder(cells, workers).Find();
}

std::vector<std::vector<Share>> FindShares(const PlanInput& input, std::span<const Cell> cells,
                                           const Balance& balance) {
  return ShareFinder(input, cells, balance).Find();
}

}  // namespace millrace::engine
