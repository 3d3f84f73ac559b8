// The statements of a shard, each checked against what must never happen, by the truth that the rows show
// and not by the guard that is meant to prevent it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/testing/compact_shard.h"
#include "coordinator/testing/journal.h"
#include "framework/task/transaction_policy.h"

namespace millrace::engine {

// Not thread-safe. The statements are those of CompactShard.
class CheckedShard {
 public:
  // The shard has these tables, of so many slices each at the beginning.
  struct Schema {
    std::string shard = "main";
    std::vector<TableName> tables = {CompactShard::kTable};
    std::uint32_t slices = 4;
  };

  CheckedShard(const Clock& clock, Journal& journal, ShardGuards guards, const Schema& schema)
      : shard_(clock, guards, schema.tables, schema.slices),
        name_(schema.shard),
        clock_(clock),
        journal_(journal) {}

  const std::string& name() const { return name_; }
  CompactShard& shard() { return shard_; }
  const CompactShard& shard() const { return shard_; }

  // No claim succeeds under an incarnation that is marked dead, nor does an adoption.
  Result<std::vector<Task>> Claim(const ClaimRequest& request);
  Result<std::vector<Task>> Adopt(const ClaimRequest& request);
  // A running task is never taken from a live incarnation.
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request);
  // An attempt is settled at most once, and only by the incarnation that runs it. It ends as its handler has
  // said: a success is one, a failure counts where the handler has failed. A task is cancelled where somebody
  // has asked for it or its key is another's, and given up where its failures, or its rescues, are enough.
  Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch);
  // What could be claimed is not failed unclaimed.
  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request);
  // A handler's own transaction: its SQL takes effect with the settle or not at all, at most once a task, and
  // with no outcome but success. Refused: the attempt is no longer the incarnation's, and all is rolled back.
  Result<CommitVerdict> Commit(const std::string& incarnation, const Settlement& settlement);
  // Nobody is marked dead whose beat moved within its lease, nor within a lease after an outage that was long
  // enough for whoever watches to notice it; but for a while after a failover, which may bring beats back to
  // numbers that were seen before it.
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat);
  // A task that is told to be a duplicate has one beside it that holds the key by right: it has not ended, or
  // has taken effect, or may have.
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation, std::span<const Task> tasks);
  std::vector<KeyVerdict> EnterKeys(std::span<const Task> tasks);
  // No permit is taken or bound under an incarnation that is marked dead, nor taken from a live one.
  Result<std::vector<PermitAnswer>> Change(const std::string& incarnation,
                                           std::span<const PermitChange> changes);

  // The database is back after an outage.
  void WasAway(Micros span) { outages_.push_back({clock_.Now(), span}); }
  // What the handler of an attempt has said, before that is settled.
  void Said(const std::string& life, const TaskKey& task, std::uint32_t attempt, OutcomeKind said) {
    said_[{task, attempt, life}] = said;
  }
  // Tasks of this type may fail so often in all; told again, the least counts.
  void MayFail(const std::string& type, std::uint32_t times) {
    std::uint32_t& least = may_fail_.try_emplace(type, times).first->second;
    least = std::min(least, times);
  }

  // Whether a start under this life is as it should be. One that a failover has lost can't know it yet.
  bool MayStart(const std::string& incarnation) const {
    return shard_.IsAlive(incarnation) || lost_.contains(incarnation);
  }
  // Whether the task may go on running under a live claimer that knows nothing of it: a failover has lost its
  // settle, and the claimer may own its slice no more.
  bool MayRest(const TaskKey& task) const {
    const CompactRow* row = shard_.Find(task);
    return unsettled_.contains(task) && row->state == TaskState::Running && shard_.IsAlive(row->claimed_by);
  }
  // Whether a failover has lost the claim of this attempt: another may have the task beside it.
  bool LostClaim(const TaskKey& task, std::uint32_t attempt, const std::string& life) const {
    return unclaimed_.contains({task, attempt, life});
  }
  // No row runs under the life.
  void CheckNothingRuns(const std::string& incarnation) const;

  // What a failover goes back to: all that is committed by now, and what the checks know of it.
  struct Copy;
  std::shared_ptr<const Copy> Keep() const;
  void GoBack(const Copy& copy);

  // When it last failed over; zero: never.
  BootTime FailedOver() const { return failed_over_; }

  std::size_t Rescued() const { return rescued_; }
  std::size_t Refused() const { return refused_; }
  std::size_t MarkedDead() const { return marked_dead_; }

 private:
  using AttemptOf = std::tuple<TaskKey, std::uint32_t, std::string>;  // a task, a number, and a life

  void NoteLost(const CompactTable& now, const CompactTable& kept);
  void CheckEnd(const std::string& incarnation, const CompactRow& before, const Settlement& settlement);
  void CheckHolders(const std::vector<KeyVerdict>& verdicts);
  std::string NameOf(const TaskKey& key) const { return "task " + name_ + "/" + ToString(key); }
  std::string NameOf(const Settlement& settlement) const;
  void CheckTaken(const std::string& how, const ClaimRequest& request,
                  const Result<std::vector<Task>>& taken);
  // Of all tasks of one handler with one key only one ever takes effect; but for a task that held it and
  // whose entry a failover has lost: it may be running.
  void CheckKey(const Settlement& settlement);

  CompactShard shard_;
  const std::string name_;
  const Clock& clock_;
  Journal& journal_;
  std::map<TaskKey, std::uint32_t> settled_;  // the last attempt that was settled
  std::map<CompactLedger::Name, TaskKey> effects_;
  std::set<std::string> lost_;                                 // lives of which a failover knows nothing
  std::set<std::pair<CompactLedger::Name, TaskKey>> keyless_;  // see CheckKey
  BootTime failed_over_{};
  struct Outage {
    BootTime end;
    Micros span;
  };
  std::vector<Outage> outages_;
  std::set<TaskKey> unsettled_;    // tasks whose settle a failover has lost
  std::set<AttemptOf> unclaimed_;  // whose claim one has lost
  std::set<TaskKey> withdrawn_;    // whose cancel
  std::map<AttemptOf, OutcomeKind> said_;
  std::map<std::string, std::uint32_t> may_fail_;  // by task type
  std::set<TaskKey> duplicates_;                   // whose key was found to be another's
  std::size_t rescued_ = 0;
  std::size_t refused_ = 0;
  std::size_t marked_dead_ = 0;
};

}  // namespace millrace::engine
