// What a leader reads of the tree: who is there, what is assigned, what operators ask for. It knows what has
// to be read next, and hands out the documents; what to make of them is the leader's business.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/coordination/tree_mirror.h"
#include "coordinator/leader/membership.h"
#include "coordinator/leader/plan_writer.h"

namespace millrace {

inline constexpr const char* kProceedNode = "/control/proceed";
inline constexpr const char* kPlanNode = "/plan";

// Not thread-safe.
class LeaderTree {
 public:
  LeaderTree();

  void Event(const TreeEvent& event) { mirror_.Event(event); }
  // nullopt: all of it has been read.
  std::optional<TreeRequest> NextRead(BootTime now);
  // The answer to a read; whether it says something new.
  bool Replied(const TreeRequest& request, const TreeReply& reply);
  // After a write, whatever came of it.
  void Written(const TreeRequest& request) { mirror_.Touched(request); }
  void MakeAllStale() { mirror_.MakeAllStale(); }

  const TreeMirror& mirror() const { return mirror_; }
  bool Has(const std::string& path) const { return mirror_.Node(path) != nullptr; }
  // A page is parsed anew when it has changed.
  StoredAssignments Assignments();
  MembershipView Members(const StoredAssignments& assignments) const;

 private:
  struct Parsed {
    std::int64_t created = 0;  // of the node that was parsed, and its version
    std::int32_t version = 0;
    std::shared_ptr<const AssignDocument> document;
  };
  void TrackPages();
  std::shared_ptr<const AssignDocument> Parse(const std::string& path, const TreeNode& node);

  TreeMirror mirror_;
  std::map<std::string, Parsed> parsed_;  // by path
};

}  // namespace millrace
