// What a leader reads of the tree: who is there, what is assigned, what operators ask for. It knows what has
// to be read next, and hands out the documents; what to make of them is the leader's business.
//
// Two nodes for each worker, and a watch on one of them: a leader of thousands must be able to read all of
// it, and to set its watches again after each new connection. The assignments, which it alone writes, are
// read again after each write; what somebody else does to them by hand is found when everything is read anew.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/coordination/tree_mirror.h"
#include "coordinator/leader/membership.h"
#include "coordinator/leader/plan_writer.h"

namespace millrace::engine {

inline constexpr const char* kProceedNode = "/control/proceed";
inline constexpr const char* kPlanNode = "/plan";

// Not thread-safe.
class LeaderTree {
 public:
  LeaderTree();

  void Event(const TreeEvent& event) { mirror_.Event(event); }
  // nullopt: there is nothing that is not being read already.
  std::optional<TreeRequest> NextRead(BootTime now);
  // All of it has been read.
  bool Fresh() const { return mirror_.Fresh(); }
  // The answer to a read; whether it says something new.
  bool Replied(const TreeRequest& request, const TreeReply& reply);
  // After a write, whatever came of it.
  void Written(const TreeRequest& request) { mirror_.Touched(request); }
  void MakeAllStale() { mirror_.MakeAllStale(); }

  const TreeMirror& mirror() const { return mirror_; }
  bool Has(const std::string& path) const { return mirror_.Node(path) != nullptr; }
  // Who there is, or what they have, may not be read and never was: there is nothing to plan with.
  bool Blind() const;
  // Otherwise there are pages whose shares of limits may be in force, and nobody knows which.
  bool KnowsAllPages() const;
  // A page is parsed anew when it has changed. Without those of workers of which a page may not be read: it
  // could not be written either, and one refusal would stop the whole plan.
  StoredAssignments Assignments();
  // Of what leaders have written; 0: there is nothing.
  std::uint64_t LatestTerm();
  // Without those workers, too: nothing can be given to them.
  MembershipView Members(const StoredAssignments& assignments);
  // Whether the statuses of the workers are read, too.
  void FollowStatuses(bool follow);
  // By worker; of those that can be read.
  std::map<std::string, StatusDocument> Statuses();
  static bool IsStatus(const std::string& path);

 private:
  template <class Document>
  struct Parsed {
    std::int64_t created = 0;  // of the node that was parsed, and its version
    std::int32_t version = 0;
    std::shared_ptr<const Document> document;  // null: it can't be read
  };
  template <class Document>
  using ParsedNodes = std::map<std::string, Parsed<Document>>;  // by path

  void Follow(const TreeRequest& request);
  bool CanAssign(const std::string& id) const;
  template <class Document>
  std::shared_ptr<const Document> Parse(ParsedNodes<Document>& known, const std::string& path,
                                        Result<Document> (*read)(std::string_view));
  template <class Document>
  void Forget(ParsedNodes<Document>& known) const;

  TreeMirror mirror_;
  bool follows_statuses_ = false;
  ParsedNodes<StatusDocument> statuses_;
  ParsedNodes<AssignDocument> pages_;
  ParsedNodes<WorkerDocument> workers_;
};

}  // namespace millrace::engine
