#include "coordinator/coordination/tree_mirror.h"

#include <algorithm>

namespace millrace {
namespace {

// The paths of what is tracked right below a folder and is not among these names.
template <class Entries>
std::vector<std::string> Others(const Entries& entries, const std::string& folder,
                                const std::vector<std::string>& names) {
  const std::string prefix = folder + "/";
  std::vector<std::string> others;
  for (auto it = entries.lower_bound(prefix); it != entries.end() && it->first.starts_with(prefix); ++it) {
    const std::string name = it->first.substr(prefix.size());
    if (name.find('/') != std::string::npos) continue;
    if (!std::binary_search(names.begin(), names.end(), name)) others.push_back(it->first);
  }
  return others;
}

}  // namespace

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

void TreeMirror::Track(Entries& entries, const std::string& path) {
  if (entries.try_emplace(path).second) ++stale_;
}

void TreeMirror::TrackNode(const std::string& path) { Track(nodes_, path); }
void TreeMirror::TrackList(const std::string& path) { Track(lists_, path); }

void TreeMirror::Untrack(Entries& entries, const std::string& path) {
  const auto found = entries.find(path);
  if (found == entries.end()) return;
  if (found->second.stale) --stale_;
  entries.erase(found);
}

void TreeMirror::TrackNodesOf(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& path : Others(nodes_, folder, names)) Untrack(nodes_, path);
  for (const std::string& name : names) TrackNode(folder + "/" + name);
}

void TreeMirror::TrackListsOf(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& path : Others(lists_, folder, names)) {
    Untrack(lists_, path);
    TrackNodesOf(path, {});
  }
  for (const std::string& name : names) TrackList(folder + "/" + name);
}

const TreeNode* TreeMirror::Node(const std::string& path) const {
  const auto found = nodes_.find(path);
  return found == nodes_.end() || !found->second.exists ? nullptr : &found->second.node;
}

const std::vector<std::string>& TreeMirror::List(const std::string& path) const {
  static const std::vector<std::string> none;
  const auto found = lists_.find(path);
  return found == lists_.end() ? none : found->second.children;
}

std::optional<TreeRequest> TreeMirror::NextRead() const {
  if (stale_ == 0) return std::nullopt;
  for (const auto& [path, entry] : lists_) {
    if (entry.stale) return TreeRequest{TreeRequest::Kind::List, path, true};
  }
  for (const auto& [path, entry] : nodes_) {
    if (entry.stale) return TreeRequest{TreeRequest::Kind::Get, path, true};
  }
  return std::nullopt;
}

bool TreeMirror::Replied(const TreeRequest& request, const TreeReply& reply) {
  if (request.kind == TreeRequest::Kind::Write) return false;
  if (reply.status != TreeStatus::Ok && reply.status != TreeStatus::NotFound) return false;  // it stays stale
  Entries& entries = request.kind == TreeRequest::Kind::Get ? nodes_ : lists_;
  const auto found = entries.find(request.path);
  if (found == entries.end()) return false;
  Entry& entry = found->second;
  if (entry.stale) --stale_;
  Entry next{false, true, reply.status == TreeStatus::Ok, reply.node, reply.children};
  const bool news = !entry.read || entry.exists != next.exists || entry.node != next.node ||
                    entry.children != next.children;
  entry = std::move(next);
  return news;
}

void TreeMirror::Soil(Entry& entry) {
  if (!entry.stale) ++stale_;
  entry.stale = true;
}

void TreeMirror::Soil(Entries& entries, const std::string& path) {
  const auto found = entries.find(path);
  if (found != entries.end()) Soil(found->second);
}

void TreeMirror::MakeStale(const std::string& path) {
  Soil(nodes_, path);
  Soil(lists_, path);
}

void TreeMirror::MakeAllStale() {
  for (auto& [path, entry] : nodes_) Soil(entry);
  for (auto& [path, entry] : lists_) Soil(entry);
}

void TreeMirror::ReconcileEvery(Micros interval, BootTime now) {
  if (now - reconciled_ < interval) return;
  if (reconciled_ != BootTime{}) MakeAllStale();
  reconciled_ = now;
}

void TreeMirror::Event(const TreeEvent& event) {
  if (event.kind == TreeEvent::Kind::Changed) {
    MakeStale(event.path);
  } else {
    MakeAllStale();
  }
}

void TreeMirror::Touched(const TreeRequest& write) {
  for (const TreeWrite& step : write.writes) {
    if (step.kind == TreeWrite::Kind::Check) {
      Soil(nodes_, step.path);
      continue;
    }
    MakeStale(step.path);
    if (step.kind != TreeWrite::Kind::Set) Soil(lists_, ParentOf(step.path));
  }
}

}  // namespace millrace
