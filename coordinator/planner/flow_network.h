// Flows through a small network of nodes and arcs with capacities and costs: the most that goes from one node
// to another and, of these flows, a cheapest.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::engine {

class FlowNetwork {
 public:
  using Node = std::uint32_t;
  using Arc = std::uint32_t;

  explicit FlowNetwork(std::size_t nodes) : first_(nodes, kNone), potential_(nodes, 0) {}

  // Costs are not negative.
  Arc AddArc(Node from, Node to, std::int64_t capacity, std::int32_t cost = 0);
  // After a flow was sent, only in a network whose costs are all 0.
  void Widen(Arc arc, std::int64_t by) { halves_[arc].room += by; }

  // Adds to the flow until no more goes, always along cheapest paths; returns how much was added. Paths of
  // one length are all taken together, so the time is that of a few maximum flows where costs are small.
  std::int64_t SendMost(Node source, Node sink);
  std::int64_t Flow(Arc arc) const { return halves_[arc ^ 1].room; }
  // The nodes to which more could be sent from `source`.
  std::vector<bool> Reachable(Node source) const;

 private:
  static constexpr Arc kNone = 0xFFFFFFFF;
  // An arc and its reverse, which takes flow back, are neighbours: i and i^1.
  struct Half {
    Node to = 0;
    Arc next = kNone;  // of the same tail
    std::int64_t room = 0;
    std::int32_t cost = 0;
  };

  Node Tail(Arc arc) const { return halves_[arc ^ 1].to; }
  std::int64_t ReducedCost(Arc arc) const {
    return halves_[arc].cost + potential_[Tail(arc)] - potential_[halves_[arc].to];
  }
  bool Open(Arc arc) const { return halves_[arc].room > 0 && ReducedCost(arc) == 0; }
  bool RaisePotentials(Node source, Node sink);
  bool RankNodes(Node source, Node sink);
  std::int64_t Push(Node node, Node sink, std::int64_t limit);

  std::vector<Half> halves_;
  std::vector<Arc> first_;
  std::vector<std::int64_t>
      potential_;                   // distances by cost so far: no arc with room has a negative reduced cost
  std::vector<std::int32_t> rank_;  // steps from the source along open arcs; -1: none lead there
  std::vector<Arc> current_;        // where Push goes on at each node
};

}  // namespace millrace::engine
