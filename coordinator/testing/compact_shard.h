// One task table and its incarnations in a form that is quick enough for ten thousand simulations: the
// conditions of the real statements (framework/store/README.md) on rows in a vector. A property test holds
// it to what the memory store does; texts, keys and pools of ended tasks are left to that one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/incarnation_store.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// What the statements check. A planted bug leaves one of them out.
struct ShardGuards {
  bool claim_needs_life = true;      // EXISTS (incarnation with dead=0)
  bool settle_needs_attempt = true;  // AND attempt=?
  bool rescue_needs_death = true;    // the claimer is marked dead, or missing
  bool mark_needs_beat = true;       // DELETE ... AND beat=seen
};

struct CompactRow {
  std::uint64_t id = 0;
  std::uint32_t slice = 0;
  std::string handler;
  TaskState state = TaskState::Waiting;
  WallTime run_at;
  std::uint32_t attempt = 0;
  std::uint32_t failures = 0;
  std::string claimed_by;
  std::size_t rescues = 0;  // attempts that ended by one
  bool cancel = false;
  std::string key;
};

// Not thread-safe. Each call is one transaction; its contract is that of TaskStore or IncarnationStore.
class CompactShard {
 public:
  explicit CompactShard(const Clock& clock, ShardGuards guards = {}) : clock_(clock), guards_(guards) {}

  static constexpr TableName kTable = "tasks";

  // Adds a waiting task, with a key where it has one; returns its id.
  std::uint64_t Insert(std::uint32_t slice, const std::string& handler, WallTime run_at,
                       const std::string& key = {});
  // Asks a task to stop, wherever it is.
  void Cancel(std::uint64_t id);

  Result<DueMap> Due(std::span<const TableSlices> tables) const;
  Result<std::vector<ScanRow>> Scan(const ScanRequest& request) const;
  Result<std::vector<Task>> Claim(const ClaimRequest& request);
  // The statements of Resolve, as a database gets them one by one: the waiting rows with the attempt seen are
  // raised, then those rows are looked up that run under the incarnation with a higher one, to be adopted.
  Result<std::size_t> RaiseWaiting(const ClaimRequest& request);
  Result<std::vector<ScanRow>> RunningAbove(const ClaimRequest& request) const;
  Result<std::vector<Task>> Adopt(const ClaimRequest& request);
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request);
  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request);
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation, std::span<const Task> tasks);
  Result<std::vector<TaskKey>> Cancelled(const std::string& incarnation,
                                         std::span<const TaskKey> running) const;
  Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch);
  Result<std::vector<bool>> StillRunning(const std::string& incarnation,
                                         std::span<const Settlement> batch) const;

  Status Register(const Incarnation& incarnation);
  Result<bool> Renew(const std::string& id);
  Result<std::vector<PeerBeat>> Peers() const;
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat);
  Result<bool> Retire(const std::string& id);

  // The truth, for checks.
  const CompactRow& Row(std::uint64_t id) const { return rows_[id - 1]; }
  const std::vector<CompactRow>& rows() const { return rows_; }
  std::size_t Open() const { return open_.size(); }  // tasks that have not ended
  bool IsAlive(const std::string& incarnation) const;
  // When its row was last written by its own renewal, or made.
  BootTime BeatAt(const std::string& incarnation) const;
  Micros LeaseOf(const std::string& incarnation) const;

 private:
  struct Life {
    Incarnation incarnation;
    std::uint64_t beat = 0;
    bool dead = false;
    BootTime beat_at;
  };

  CompactRow* Find(std::uint64_t id);
  bool RunsUnder(const CompactRow& row, const std::string& incarnation, std::uint32_t attempt) const;
  void End(CompactRow& row, const Settlement& settlement);
  void Close(CompactRow& row, TaskState state);

  const Clock& clock_;
  const ShardGuards guards_;
  std::vector<CompactRow> rows_;     // by id, from 1
  std::vector<std::uint64_t> open_;  // sorted
  std::map<std::string, Life> lives_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> keys_;  // by handler and key: the task
};

}  // namespace millrace::engine
