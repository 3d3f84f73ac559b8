// The leader's side of the cluster as a machine: it stands for election, and while it leads it keeps the
// plan: reads who is there, decides who should own what, and writes the assignments, each write guarded by
// its term.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "coordinator/coordination/election.h"
#include "coordinator/leader/leader_tree.h"
#include "coordinator/leader/limit_keeper.h"
#include "coordinator/leader/membership.h"
#include "coordinator/leader/plan.h"
#include "coordinator/leader/plan_writer.h"
#include "coordinator/leader/usefulness.h"

namespace millrace::engine {

struct LeaderOptions {
  std::string id;
  std::string incarnation;
  CalmOptions calm;
  PageBounds bounds = {};
};

// What a leader plans with, beside the tree.
struct LeaderFacts {
  // The task tables as they were read last; null: not known yet, so that nothing is planned.
  std::shared_ptr<const TableCatalog> catalog;
  std::map<std::string, std::string> groups = {};  // task type → configured group
  std::vector<std::string> unrunnable = {};        // `shard: handler`, to be told
  std::vector<std::string> troubles = {};          // what keeps it from planning, to be told
  // The shards that this process can't read; sorted. nullopt: it does not know yet.
  std::optional<std::vector<std::string>> unread = {};
  LimitShares limits = {};              // the whole of each that this process knows, by task type
  std::set<std::string> breakers = {};  // task types that have one
  bool operator==(const LeaderFacts&) const = default;
};

// What a plan amounts to.
struct PlanFigures {
  std::size_t workers = 0;  // that are there
  std::size_t owned = 0;    // slices of those that are there
  std::size_t unowned = 0;  // slices of nobody who is there and may have them
};

class Leader final : public TreeMachine {
 public:
  struct Calls {
    // Asked before each write, and now and then by who does not lead; must not wait.
    std::function<LeaderFacts()> facts;
    std::function<void(const std::vector<SliceMove>&)> moved;    // these were written; may be empty
    std::function<void(const std::optional<Term>&)> leads = {};  // the term began or ended; may be empty
    // What was decided: which rows somebody works on. May be empty.
    std::function<void(Ownership)> decided = {};
    // A page of an assignment can't be read and is written anew: its path. May be empty.
    std::function<void(const std::string&)> repaired = {};
    // The time of the wall for people, always the same for the same moment. Empty: they are told no times.
    std::function<WallTime(BootTime)> wall = {};
    // Whether it stands for election, when that changes; may be empty.
    std::function<void(bool)> stands = {};
    // It gives the lead up, and why; may be empty.
    std::function<void(const std::string&)> resigns = {};
    // Before and after it decides a plan, for those who measure; may be empty, both or neither.
    std::function<void()> plans = {};
    std::function<void(const PlanFigures&)> planned = {};
    // Whose lives the shards show; asked where limits are divided. Empty: nothing is known.
    std::function<LivesByShard()> lives = {};
    // The cluster does not take what it writes, and why: told once until something is taken. May be empty.
    std::function<void(const std::string&)> refused = {};
    // A node that it may not read, when that is found: its path. May be empty.
    std::function<void(const std::string&)> denied = {};
  };

  Leader(LeaderOptions options, Calls calls);

  void Event(const TreeEvent& event, BootTime now) override;
  std::optional<TreeRequest> Next(BootTime now) override;
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime now) override;
  BootTime WakeAt(BootTime now) const override;

  const std::optional<Term>& Leading() const { return election_.Leading(); }
  // Nothing is left to write, and nothing waits.
  bool Settled() const { return settled_ && decision_->waiting == 0; }

 private:
  void LookAtFacts(BootTime now);
  void Granted(Micros timeout);
  bool GiveWay(BootTime now);
  void Begin(BootTime now);
  void End();
  bool TermIsPassed();
  std::optional<TreeRequest> Decide(BootTime now);
  void Plan(TreeRequest& request, BootTime now);
  bool IsOwnWriting(const TreeRequest& request, const TreeReply& reply) const;
  bool HasOwnChildren(const std::string& folder, const std::vector<std::string>& children) const;
  std::vector<TreeWrite> DivideLimits(BootTime now);
  void TellRepairs(const StoredAssignments& stored) const;
  std::vector<std::string> Troubles(const std::map<std::string, WorkerDocument>& present) const;
  std::vector<TreeWrite> Tidy(const StoredAssignments& stored, BootTime now);
  std::vector<std::string> ForeignBreakers() const;
  std::vector<std::string> EndedBreakers(const StoredAssignments& stored);
  std::vector<std::string> LongEndedBreakers(const StoredAssignments& stored, BootTime now);
  std::vector<TreeWrite> Tell(const std::map<std::string, WorkerDocument>& present, BootTime now);

  const LeaderOptions options_;
  const Calls calls_;
  Election election_;
  LeaderTree tree_;
  Membership membership_;
  LimitKeeper limits_;
  LimitShares whole_limits_;          // that are divided
  std::optional<std::uint64_t> led_;  // the epoch for which the membership was begun
  Judgement judgement_;
  Usefulness usefulness_;
  BootTime look_at_{};   // at the facts
  BootTime weigh_at_{};  // whether another should lead
  bool stands_ = false;
  bool dirty_ = true;
  bool settled_ = false;
  bool compared_ = false;  // the term with those that the tree knows
  BootTime decide_at_{};
  bool shares_dirty_ = true;  // something was read that the shares of limits go by
  BootTime divide_at_{};
  LeaderFacts facts_;
  std::shared_ptr<const PlanDecision> decision_ = std::make_shared<const PlanDecision>();
  std::optional<PlanWriter> writer_;                // of it, until all is written or something else is read
  std::map<std::string, std::string> written_;      // by that, by path
  std::vector<SliceMove> sent_;                     // carried out by the write under way
  bool refused_ = false;                            // that was told, and nothing was taken since
  std::map<std::string, BootTime> ended_breakers_;  // since when nobody has one of the type
  std::set<std::string> stuck_;  // nodes that can't be removed or made, since somebody was busy by hand there
};

}  // namespace millrace::engine
