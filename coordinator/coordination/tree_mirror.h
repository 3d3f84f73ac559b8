// What a machine has read of the tree, and what it has to read again: nodes and lists that it tracks, each
// fresh or stale. A watch, a new connection or an answer that surprised makes things stale; NextRead asks for
// them one by one. Decisions are taken when all is fresh.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordination/tree.h"
#include "framework/base/clock.h"

namespace millrace {

// Not thread-safe.
class TreeMirror {
 public:
  // Begins to follow a node, or a node's children. Tracking twice changes nothing.
  void TrackNode(const std::string& path);
  void TrackList(const std::string& path);
  // Tracks exactly these children of a folder as nodes: those that are not among the (sorted) names are
  // forgotten.
  void TrackNodesOf(const std::string& folder, const std::vector<std::string>& names);
  // The same for their lists: of those that are forgotten their children are, too.
  void TrackListsOf(const std::string& folder, const std::vector<std::string>& names);

  // Where nothing tracked is stale: true.
  bool Fresh() const { return stale_ == 0; }
  // The node as it was read last; nullptr: it does not exist, or was never read.
  const TreeNode* Node(const std::string& path) const;
  // The names of the children as they were read last; empty where the folder does not exist.
  const std::vector<std::string>& List(const std::string& path) const;

  // What is to be read next, with a watch; nullopt if all is fresh.
  std::optional<TreeRequest> NextRead() const;
  // Takes the answer to a Get or List of something tracked; anything else is ignored. Whether it says
  // something new.
  bool Replied(const TreeRequest& request, const TreeReply& reply);
  void Event(const TreeEvent& event);
  // After a write, whatever came of it: what it touched is read again.
  void Touched(const TreeRequest& write);
  void MakeStale(const std::string& path);
  void MakeAllStale();
  // Watches may be lost without a word: now and then everything is read again.
  void ReconcileEvery(Micros interval, BootTime now);

 private:
  struct Entry {
    bool stale = true;
    bool read = false;  // at least once
    bool exists = false;
    TreeNode node;
    std::vector<std::string> children;
  };
  using Entries = std::map<std::string, Entry>;

  void Track(Entries& entries, const std::string& path);
  void Untrack(Entries& entries, const std::string& path);
  void Soil(Entry& entry);
  void Soil(Entries& entries, const std::string& path);

  Entries nodes_;
  Entries lists_;
  std::size_t stale_ = 0;
  BootTime reconciled_{};
};

// `/workers/w1` → `/workers`; `/workers` → `/`.
std::string ParentOf(const std::string& path);

}  // namespace millrace
