// The statements of a shard, each checked against what must never happen, by the truth that the rows show
// and not by the guard that is meant to prevent it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/testing/compact_shard.h"
#include "coordinator/testing/journal.h"
#include "framework/task/transaction_policy.h"

namespace millrace::engine {

// Not thread-safe. The statements are those of CompactShard.
class CheckedShard {
 public:
  CheckedShard(const Clock& clock, Journal& journal, ShardGuards guards)
      : shard_(clock, guards), clock_(clock), journal_(journal) {}

  CompactShard& shard() { return shard_; }
  const CompactShard& shard() const { return shard_; }

  // No claim succeeds under an incarnation that is marked dead, nor does an adoption.
  Result<std::vector<Task>> Claim(const ClaimRequest& request);
  Result<std::vector<Task>> Adopt(const ClaimRequest& request);
  // A running task is never taken from a live incarnation.
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request);
  // An attempt is settled at most once, and only by the incarnation that runs it.
  Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch);
  // A handler's own transaction: its SQL takes effect with the settle or not at all, at most once a task, and
  // with no outcome but success. Refused: the attempt is no longer the incarnation's, and all is rolled back.
  Result<CommitVerdict> Commit(const std::string& incarnation, const Settlement& settlement);
  // Nobody is marked dead whose beat moved within its lease.
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat);

  std::size_t Rescued() const { return rescued_; }
  std::size_t Refused() const { return refused_; }
  std::size_t MarkedDead() const { return marked_dead_; }

 private:
  void CheckTaken(const std::string& how, const ClaimRequest& request,
                  const Result<std::vector<Task>>& taken);
  // Of all tasks of one handler with one key only one ever takes effect.
  void CheckKey(const Settlement& settlement);

  CompactShard shard_;
  const Clock& clock_;
  Journal& journal_;
  std::vector<std::uint32_t> settled_;  // by task: the last attempt that was settled
  std::map<std::pair<std::string, std::string>, std::uint64_t> effects_;  // by handler and key: the task
  std::size_t rescued_ = 0;
  std::size_t refused_ = 0;
  std::size_t marked_dead_ = 0;
};

}  // namespace millrace::engine
