// A cheapest flow: keeping costs nothing, and every slice that a worker does not own yet costs one.
#include "coordinator/planner/shares.h"

#include <cassert>

#include "coordinator/planner/flow_network.h"

namespace millrace::engine {
namespace {

using Node = FlowNetwork::Node;
using Arc = FlowNetwork::Arc;

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

std::vector<std::vector<Share>> FindShares(const PlanInput& input, std::span<const Cell> cells,
                                           const Balance& balance) {
  return ShareFinder(input, cells, balance).Find();
}

}  // namespace millrace::engine
