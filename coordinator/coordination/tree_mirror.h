// What a machine has read of the tree, and what it has to read again: nodes and lists that it tracks, each
// fresh or stale. A watch, a new connection or an answer that surprised makes things stale; NextRead asks for
// them, and many of these reads may be under way at once. Decisions are taken when all is fresh.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordination/tree.h"
#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe.
class TreeMirror {
 public:
  // Whether its changes are to be told. What nobody else should change can do without: it is read again after
  // a write of ours, and now and then.
  enum class Watch { Yes, No };

  // Begins to follow a node, or a node's children. Tracking twice changes nothing, but that it may be
  // watched from then on.
  void TrackNode(const std::string& path, Watch watch = Watch::Yes);
  void TrackList(const std::string& path, Watch watch = Watch::Yes);
  // Tracks exactly these children of a folder as nodes: those that are not among the (sorted) names are
  // forgotten, with all that is tracked below them.
  void TrackNodesOf(const std::string& folder, const std::vector<std::string>& names,
                    Watch watch = Watch::Yes);
  // Of a folder whose list is followed no more its children are forgotten, too.
  void ForgetList(const std::string& folder);

  // Where nothing tracked is stale: true. What is read anew as a precaution is not stale, nor what this
  // client may not read: that is as it was read last, and asked for again by the sweep.
  bool Fresh() const { return stale_ == 0; }
  // The node as it was read last; nullptr: it does not exist, or was never read.
  const TreeNode* Node(const std::string& path) const;
  // The names of the children as they were read last; empty where the folder does not exist.
  const std::vector<std::string>& List(const std::string& path) const;
  // Whether a folder whose list is tracked was there.
  bool HasFolder(const std::string& path) const;

  // What this client was not allowed to read when it asked last, by whatever access list somebody gave it.
  const std::set<std::string>& Denied() const { return denied_; }
  bool IsDenied(const std::string& path) const { return denied_.contains(path); }

  // What is to be read next; nullopt: nothing that is not under way already. So nullopt does not mean Fresh.
  std::optional<TreeRequest> NextRead();
  // Takes the answer to a Get or List of something tracked; anything else is ignored. Whether it says
  // something new.
  bool Replied(const TreeRequest& request, const TreeReply& reply);
  void Event(const TreeEvent& event);
  // After a write, whatever came of it: what it touched is read again.
  void Touched(const TreeRequest& write);
  void MakeStale(const std::string& path);
  void MakeAllStale();
  // Watches may be lost without a word: everything is read again within each interval, all at once or in
  // parts of fifty to a hundred things, a hundred a second at most (thousands take longer). To be called as
  // often as the machine is asked, a fifth of the interval apart at most; what it makes NextRead ask for
  // holds up no decision, and a part is not begun before the one before it has been answered.
  void ReconcileEvery(Micros interval, BootTime now);

 private:
  struct Entry {
    bool watched = true;
    bool stale = true;
    bool due = false;    // the sweep has come to it, and there is no answer yet
    bool asked = false;  // a read of it is under way
    bool again = false;  // and it became stale meanwhile
    bool read = false;   // at least once
    bool exists = false;
    bool denied = false;
    TreeNode node;
    std::vector<std::string> children;
  };
  enum class Kind { List, Node };  // in the order in which they are read
  using Key = std::pair<Kind, std::string>;
  using Entries = std::map<Key, Entry>;

  void Track(Key key, Watch watch);
  void Untrack(const Key& key);
  void ForgetBelow(const std::string& folder, const std::vector<std::string>& but);
  void MarkStale(const Key& key, Entry& entry);
  void MarkStale(const Key& key);
  void NotDue(const Key& key, Entry& entry);
  bool SetDenied(const Key& key, Entry& entry, bool denied);
  const Entry* Find(Kind kind, const std::string& path) const;
  void Sweep(std::size_t count);

  Entries entries_;
  std::size_t stale_ = 0;
  std::size_t due_ = 0;
  std::set<Key> wanted_;  // stale, and not asked for
  std::set<Key> sweep_;   // due, and not asked for
  std::set<std::string> denied_;
  Key swept_;  // the last that the sweep came to
  BootTime reconciled_{};
};

// `/workers/w1` → `/workers`; `/workers` → `/`.
std::string ParentOf(const std::string& path);

}  // namespace millrace::engine
