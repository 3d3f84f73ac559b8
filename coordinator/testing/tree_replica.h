// One server's copy of the tree: nodes by path, and the rules of its writes. Pure; no sessions, no time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordination/tree.h"

namespace millrace::engine {

// What one transaction did, for the watches.
struct TreeChanges {
  std::vector<std::string> nodes;    // made, changed or removed
  std::vector<std::string> parents;  // whose list of children changed
};

// Not thread-safe. Replicas that apply the same transactions in the same order are equal.
class TreeReplica {
 public:
  TreeReplica();

  // Get or List, as of this replica.
  TreeReply Read(const TreeRequest& request) const;
  // All of the writes, or none. `number` is the transaction's own: greater than any before.
  TreeReply Apply(const std::vector<TreeWrite>& writes, std::int64_t session, std::int64_t number,
                  TreeChanges& changes);
  // The end of a session.
  void RemoveOwned(std::int64_t session, TreeChanges& changes);

  const std::map<std::string, TreeNode>& nodes() const { return nodes_; }

 private:
  using Undo = std::vector<std::pair<std::string, std::optional<TreeNode>>>;

  TreeStatus ApplyOne(const TreeWrite& write, std::int64_t session, std::int64_t number, Undo& undo,
                      TreeChanges& changes);
  std::vector<std::string> ChildrenOf(const std::string& path) const;
  bool HasChildren(const std::string& path) const;

  std::map<std::string, TreeNode> nodes_;
};

}  // namespace millrace::engine
