// Who leads. Each candidate has an ephemeral node of its own under election/; the one made first leads, and
// says so by a new term in the node `epoch`. All that a leader writes is a multi that begins with a check of
// that node's version, so that one who was paused and does not know of its successor can't write. Should
// somebody delete `epoch`, its versions begin again: so a term has a child there as well,
// `epoch/<incarnation>`, which the next term takes away, and which the writes of a leader check, too. Terms
// themselves never go back: a new one is above all that this process has read, and above what the leader
// finds in the tree (LeadAbove).
//
// This is ZooKeeper's leader recipe with the transaction that made the node in the place of a sequence
// number. The names are eight slots: however many processes would stand, the ninth finds none free, and what
// was there a moment ago is no matter, since a create of what is there fails. Which slot it is means nothing.
// Other names in the folder are not candidates (and a slot that somebody made by hand, which no session owns,
// is a seat less).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/machine.h"
#include "coordinator/coordination/tree_mirror.h"

namespace millrace::engine {

struct Term {
  std::uint64_t epoch = 0;
  std::int32_t version = 0;  // of the node `epoch`: what each write of the leader checks
  bool operator==(const Term&) const = default;
};

class Election final : public TreeMachine {
 public:
  static constexpr std::size_t kSlots = 8;  // more candidates would only cost each other reads

  // `incarnation` is unique among all processes that ever stand.
  Election(std::string id, std::string incarnation);

  void Event(const TreeEvent& event, BootTime now) override;
  std::optional<TreeRequest> Next(BootTime now) override;
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) override;
  BootTime WakeAt(BootTime now) const override;

  // The term that this process leads, as far as it knows; the check in each write finds out.
  const std::optional<Term>& Leading() const { return term_; }
  // Whether all is known that it goes by: nothing is being read anew.
  bool Fresh() const { return mirror_.Fresh(); }
  // A check has failed: somebody else may lead.
  void Doubt();
  bool Stands() const;
  // Which shards this process can't read, for the others to know; nullopt: that is not known.
  void Say(std::optional<std::vector<std::string>> unread) { unread_ = std::move(unread); }
  // The other candidates as they were read last. Only while it stands.
  std::vector<CandidateDocument> Others() const;
  // Takes its candidacy back, and does not stand again before `until`, unless nobody else does: then behind
  // all others.
  void Resign(BootTime until);
  bool Resigning() const { return resigning_; }
  // Something was written in this term, which is thus not the present one: the next is above it.
  void LeadAbove(std::uint64_t epoch);
  // What each write of the leader begins with. Only while Leading().
  std::vector<TreeWrite> Guard() const;

 private:
  void Follow();
  std::optional<TreeRequest> Stand(BootTime now);
  bool TakeSeat(BootTime now);
  std::optional<TreeRequest> Tell(const TreeNode& own) const;
  std::string Text() const;
  std::optional<TreeRequest> Claim(const TreeNode& own);
  TreeRequest BeginTerm(const TreeNode& own, const TreeNode& node) const;
  static std::uint64_t TermIn(const TreeNode& node);
  bool First(const TreeNode& own) const;
  std::vector<std::string> Taken() const;

  const std::string id_;
  const std::string incarnation_;
  const std::string term_node_;  // path of its child of `epoch`
  std::string own_;              // path of the slot that is its own, or that it tried last; empty: none
  TreeMirror mirror_;
  std::int64_t session_ = 0;  // 0: none
  std::optional<BootTime> stand_at_;
  std::size_t tries_ = 0;
  std::optional<std::vector<std::string>> unread_;
  bool resigning_ = false;  // until its node is gone
  BootTime rest_until_{};
  std::set<std::string> stuck_;  // children of `epoch` that can't be removed
  std::uint64_t highest_ = 0;    // of all terms that were read
  std::uint64_t passed_ = 0;     // this term and those before it are over
  std::optional<Term> term_;
};

}  // namespace millrace::engine
