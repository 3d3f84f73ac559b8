// The primal-dual method (Ford and Fulkerson 1962) with Dijkstra's distances on reduced costs, and Dinic's
// blocking flows (1970) among the arcs that lie on shortest paths.
#include "coordinator/planner/flow_network.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace millrace::engine {
namespace {

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

}  // namespace

FlowNetwork::Arc FlowNetwork::AddArc(Node from, Node to, std::int64_t capacity, std::int32_t cost) {
  const Arc arc = static_cast<Arc>(halves_.size());
  halves_.push_back({to, first_[from], capacity, cost});
  first_[from] = arc;
  halves_.push_back({from, first_[to], 0, -cost});
  first_[to] = arc + 1;
  return arc;
}

// Dijkstra. Nodes farther than the sink rise by the sink's distance alone, which keeps reduced costs legal.
bool FlowNetwork::RaisePotentials(Node source, Node sink) {
  std::vector<std::int64_t> distance(first_.size(), kFar);
  using Entry = std::pair<std::int64_t, Node>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  distance[source] = 0;
  open.emplace(0, source);
  while (!open.empty()) {
    const auto [at, node] = open.top();
    open.pop();
    if (at > distance[node]) continue;
    if (node == sink) break;
    for (Arc arc = first_[node]; arc != kNone; arc = halves_[arc].next) {
      if (halves_[arc].room == 0) continue;
      const std::int64_t through = at + ReducedCost(arc);
      std::int64_t& best = distance[halves_[arc].to];
      if (through >= best) continue;
      best = through;
      open.emplace(through, halves_[arc].to);
    }
  }
  if (distance[sink] == kFar) return false;
  for (Node node = 0; node < first_.size(); ++node) {
    potential_[node] += std::min(distance[node], distance[sink]);
  }
  return true;
}

bool FlowNetwork::RankNodes(Node source, Node sink) {
  rank_.assign(first_.size(), -1);
  rank_[source] = 0;
  std::vector<Node> queue{source};
  for (std::size_t i = 0; i < queue.size() && rank_[sink] < 0; ++i) {
    for (Arc arc = first_[queue[i]]; arc != kNone; arc = halves_[arc].next) {
      const Node to = halves_[arc].to;
      if (rank_[to] >= 0 || !Open(arc)) continue;
      rank_[to] = rank_[queue[i]] + 1;
      queue.push_back(to);
    }
  }
  return rank_[sink] >= 0;
}

std::int64_t FlowNetwork::Push(Node node, Node sink, std::int64_t limit) {
  if (node == sink) return limit;
  std::int64_t pushed = 0;
  for (Arc& arc = current_[node]; arc != kNone; arc = halves_[arc].next) {
    Half& half = halves_[arc];
    if (rank_[half.to] != rank_[node] + 1 || !Open(arc)) continue;
    const std::int64_t through = Push(half.to, sink, std::min(limit - pushed, half.room));
    half.room -= through;
    halves_[arc ^ 1].room += through;
    pushed += through;
    if (pushed == limit) break;
  }
  return pushed;
}

std::int64_t FlowNetwork::SendMost(Node source, Node sink) {
  std::int64_t sent = 0;
  while (RaisePotentials(source, sink)) {
    while (RankNodes(source, sink)) {
      current_ = first_;
      sent += Push(source, sink, kFar);
    }
  }
  return sent;
}

std::vector<bool> FlowNetwork::Reachable(Node source) const {
  std::vector<bool> seen(first_.size(), false);
  std::vector<Node> open{source};
  seen[source] = true;
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    for (Arc arc = first_[node]; arc != kNone; arc = halves_[arc].next) {
      const Node to = halves_[arc].to;
      if (halves_[arc].room == 0 || seen[to]) continue;
      seen[to] = true;
      open.push_back(to);
    }
  }
  return seen;
}

}  // namespace millrace::engine
