#include "coordinator/coordination/tree_mirror.h"

#include <algorithm>
#include <chrono>

namespace millrace::engine {
namespace {

// The sweep takes its parts at this distance at least, and so much at a time: few parts wake few threads.
constexpr Micros kSweepStep = std::chrono::seconds(1);
constexpr std::int64_t kSmallestPart = 50;
constexpr std::size_t kSweptAtOnce = 100;

}  // namespace

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

void TreeMirror::Track(Key key, Watch watch) {
  const auto [item, added] = entries_.try_emplace(std::move(key));
  if (!added) {
    if (watch == Watch::No || item->second.watched) return;
    item->second.watched = true;  // by the next read
    return MarkStale(item->first, item->second);
  }
  item->second.watched = watch == Watch::Yes;
  ++stale_;
  wanted_.insert(item->first);
}

void TreeMirror::TrackNode(const std::string& path, Watch watch) { Track({Kind::Node, path}, watch); }
void TreeMirror::TrackList(const std::string& path, Watch watch) { Track({Kind::List, path}, watch); }

void TreeMirror::Untrack(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  NotDue(key, found->second);
  SetDenied(key, found->second, false);
  if (found->second.stale) --stale_;
  wanted_.erase(key);
  entries_.erase(found);
}

void TreeMirror::TrackNodesOf(const std::string& folder, const std::vector<std::string>& names, Watch watch) {
  ForgetBelow(folder, names);
  for (const std::string& name : names) TrackNode(folder + "/" + name, watch);
}

void TreeMirror::ForgetList(const std::string& folder) {
  Untrack({Kind::List, folder});
  ForgetBelow(folder, {});
}

// The nodes right below a folder whose names are not among these, and all below them.
void TreeMirror::ForgetBelow(const std::string& folder, const std::vector<std::string>& but) {
  const std::string prefix = folder + "/";
  std::vector<std::string> others;
  for (auto it = entries_.lower_bound({Kind::Node, prefix});
       it != entries_.end() && it->first.second.starts_with(prefix); ++it) {
    const std::string name = it->first.second.substr(prefix.size());
    if (name.find('/') != std::string::npos) continue;
    if (!std::binary_search(but.begin(), but.end(), name)) others.push_back(it->first.second);
  }
  for (const std::string& path : others) {
    Untrack({Kind::Node, path});
    ForgetList(path);
  }
}

const TreeMirror::Entry* TreeMirror::Find(Kind kind, const std::string& path) const {
  const auto found = entries_.find({kind, path});
  return found == entries_.end() ? nullptr : &found->second;
}

const TreeNode* TreeMirror::Node(const std::string& path) const {
  const Entry* entry = Find(Kind::Node, path);
  return entry == nullptr || !entry->exists ? nullptr : &entry->node;
}

const std::vector<std::string>& TreeMirror::List(const std::string& path) const {
  static const std::vector<std::string> none;
  const Entry* entry = Find(Kind::List, path);
  return entry == nullptr ? none : entry->children;
}

bool TreeMirror::HasFolder(const std::string& path) const {
  const Entry* entry = Find(Kind::List, path);
  return entry != nullptr && entry->exists;
}

std::optional<TreeRequest> TreeMirror::NextRead() {
  std::set<Key>& queue = wanted_.empty() ? sweep_ : wanted_;
  if (queue.empty()) return std::nullopt;
  const Key key = std::move(queue.extract(queue.begin()).value());
  Entry& entry = entries_.at(key);
  entry.asked = true;
  return TreeRequest{key.first == Kind::List ? TreeRequest::Kind::List : TreeRequest::Kind::Get, key.second,
                     entry.watched};
}

bool TreeMirror::Replied(const TreeRequest& request, const TreeReply& reply) {
  if (request.kind == TreeRequest::Kind::Write) return false;
  const Key key{request.kind == TreeRequest::Kind::Get ? Kind::Node : Kind::List, request.path};
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  entry.asked = false;
  NotDue(key, entry);
  const bool denied = reply.status == TreeStatus::Denied;
  const bool answered = denied || reply.status == TreeStatus::Ok || reply.status == TreeStatus::NotFound;
  if (!answered || entry.again) {  // it is asked for anew, unless the sweep alone wanted to know
    entry.again = false;
    if (entry.stale) wanted_.insert(key);
  } else if (entry.stale) {
    entry.stale = false;
    --stale_;
    wanted_.erase(key);
  }
  if (!answered) return false;
  const bool turned = SetDenied(key, entry, denied);
  if (denied) return turned;
  const bool exists = reply.status == TreeStatus::Ok;
  const bool news = turned || !entry.read || entry.exists != exists || entry.node != reply.node ||
                    entry.children != reply.children;
  entry.read = true;
  entry.exists = exists;
  entry.node = reply.node;
  entry.children = reply.children;
  return news;
}

// Whether that is news of the path: a node and its children have one access list.
bool TreeMirror::SetDenied(const Key& key, Entry& entry, bool denied) {
  if (entry.denied == denied) return false;
  entry.denied = denied;
  if (denied) return denied_.insert(key.second).second;
  const Entry* other = Find(key.first == Kind::List ? Kind::Node : Kind::List, key.second);
  return (other == nullptr || !other->denied) && denied_.erase(key.second) > 0;
}

void TreeMirror::NotDue(const Key& key, Entry& entry) {
  if (!entry.due) return;
  entry.due = false;
  --due_;
  sweep_.erase(key);
}

void TreeMirror::MarkStale(const Key& key, Entry& entry) {
  if (!entry.stale) ++stale_;
  entry.stale = true;
  NotDue(key, entry);
  if (entry.asked) {
    entry.again = true;
  } else {
    wanted_.insert(key);
  }
}

void TreeMirror::MarkStale(const Key& key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) MarkStale(key, found->second);
}

void TreeMirror::MakeStale(const std::string& path) {
  MarkStale({Kind::Node, path});
  MarkStale({Kind::List, path});
}

void TreeMirror::MakeAllStale() {
  for (auto& [key, entry] : entries_) MarkStale(key, entry);
}

void TreeMirror::ReconcileEvery(Micros interval, BootTime now) {
  const Micros round = interval * 4 / 5;  // whoever asks late by a fifth keeps to the interval, too
  const Micros passed = std::min(now - reconciled_, round);
  if (reconciled_ == BootTime{}) reconciled_ = now;
  if (now - reconciled_ < kSweepStep || !Fresh() || due_ > 0) return;
  const auto all = static_cast<std::int64_t>(entries_.size());
  const auto share = static_cast<std::size_t>((all * passed.count() + round.count() - 1) / round.count());
  if (passed < round / std::max(all / kSmallestPart, std::int64_t{1})) return;
  reconciled_ = now;
  Sweep(std::min(share, kSweptAtOnce));
}

// The next so many after those that the sweep came to last; from the first again after the last of all.
void TreeMirror::Sweep(std::size_t count) {
  auto next = entries_.upper_bound(swept_);
  for (std::size_t i = 0; i < count; ++i, ++next) {
    if (next == entries_.end()) next = entries_.begin();
    Entry& entry = next->second;
    swept_ = next->first;
    if (entry.due || entry.asked) continue;
    entry.due = true;
    ++due_;
    sweep_.insert(swept_);
  }
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
      MarkStale({Kind::Node, step.path});
      continue;
    }
    MakeStale(step.path);
    if (step.kind != TreeWrite::Kind::Set) MakeStale(ParentOf(step.path));
  }
}

}  // namespace millrace::engine
