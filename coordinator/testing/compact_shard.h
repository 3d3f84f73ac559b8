// The task tables of a shard, its incarnations and its ledger of keys in a form that is quick enough for ten
// thousand simulations: the conditions of the real statements (framework/store/README.md) on rows in vectors.
// A property test holds it to what the SQLite store does; texts and retentions are left to that one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/incarnation_store.h"
#include "framework/store/permit_store.h"
#include "framework/store/schema_store.h"
#include "framework/store/task_store.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What the statements check. A planted bug leaves one of them out.
struct ShardGuards {
  bool claim_needs_life = true;      // EXISTS (incarnation with dead=0)
  bool settle_needs_attempt = true;  // AND attempt=?
  bool settle_needs_claimer = true;  // AND claimed_by=?
  bool rescue_needs_death = true;    // the claimer is marked dead, or missing
  bool mark_needs_beat = true;       // DELETE ... AND beat=seen
  bool permit_needs_life = true;     // EXISTS (whoever takes it, with dead=0)
};

struct CompactRow {
  std::uint64_t id = 0;
  std::uint32_t slice = 0;
  std::string handler;
  TaskState state = TaskState::Waiting;
  WallTime run_at;
  WallTime created_at;
  std::uint32_t attempt = 0;
  std::uint32_t failures = 0;
  std::string claimed_by;
  std::size_t rescues = 0;  // attempts that ended by one
  bool cancel = false;
  std::string key;
  std::uint32_t priority = 5;
};

struct CompactTable {
  TableName name;
  std::uint32_t slices = 0;
  std::vector<CompactRow> rows = {};     // by id, from 1
  std::vector<std::uint64_t> open = {};  // ids of tasks that have not ended; sorted
};

// Which task of a handler has which key: the ledger's rules, without retentions. Not thread-safe.
class CompactLedger {
 public:
  using Name = std::pair<std::string, std::string>;  // of a key: its handler, and itself
  struct Entry {
    TaskKey task;
    bool started = false;
    bool ended = false;
  };

  // Enters the key for the task, or finds it entered; who has it. `gone`: whether a task is in no pool: its
  // entry is void, since a failover has lost it.
  template <class Gone>
  TaskKey Enter(const std::string& handler, const std::string& key, const TaskKey& task, Gone gone) {
    Entry& entry = entries_.try_emplace({handler, key}, Entry{task}).first->second;
    const bool is_void = !entry.ended && gone(entry.task);
    if (is_void || (entry.task == task && entry.ended)) entry = {task};
    return entry.task;
  }
  // An attempt of the task has ended. A task that never started gives its key back when it is cancelled.
  void Ended(const std::string& handler, const std::string& key, const Settlement& settlement) {
    Entry* entry = Of(handler, key, settlement.key);
    if (entry == nullptr) return;
    entry->started = entry->started || settlement.started;
    if (settlement.to == Settlement::To::Cancelled && !entry->started) {
      entries_.erase({handler, key});
    } else if (!StaysHot(settlement.to)) {
      entry->ended = true;
    }
  }
  // Nobody knows whether the attempt had started.
  void Rescued(const std::string& handler, const std::string& key, const TaskKey& task) {
    if (Entry* entry = Of(handler, key, task)) entry->started = true;
  }

  const Entry& At(const std::string& handler, const std::string& key) const {
    return entries_.at({handler, key});
  }
  const std::map<Name, Entry>& entries() const { return entries_; }

 private:
  // Null: the key is not the task's.
  Entry* Of(const std::string& handler, const std::string& key, const TaskKey& task) {
    const auto found = key.empty() ? entries_.end() : entries_.find({handler, key});
    return found != entries_.end() && found->second.task == task ? &found->second : nullptr;
  }

  std::map<Name, Entry> entries_;
};

// Not thread-safe. Each call is one transaction; its contract is that of TaskStore or IncarnationStore.
class CompactShard {
 public:
  static constexpr TableName kTable = "tasks";

  explicit CompactShard(const Clock& clock, ShardGuards guards = {},
                        const std::vector<TableName>& tables = {kTable}, std::uint32_t slices = 4);

  // Adds a waiting task, with a key where it has one; returns its id.
  std::uint64_t Insert(const TableName& table, std::uint32_t slice, const std::string& handler,
                       WallTime run_at, const std::string& key = {}, std::uint32_t priority = 5);
  // Asks a task to stop, wherever it is.
  void Cancel(const TaskKey& key);

  Result<DueMap> Due(std::span<const TableSlices> tables, const DueWanted& wanted = {}) const;
  Result<std::vector<ScanRow>> Scan(const ScanRequest& request) const;
  Result<std::vector<std::uint64_t>> GreatestIds(std::span<const TableName> tables) const;
  Result<std::vector<Task>> Claim(const ClaimRequest& request);
  // The statements of Resolve, as a database gets them one by one: the waiting rows with the attempt seen are
  // raised, then those rows are looked up that run under the incarnation with a higher one, to be adopted.
  Result<std::size_t> RaiseWaiting(const ClaimRequest& request);
  Result<std::vector<ScanRow>> RunningAbove(const ClaimRequest& request) const;
  Result<std::vector<Task>> Adopt(const ClaimRequest& request);
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request);
  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request);
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation, std::span<const Task> tasks);
  // The second half of it for what Running has told before, whatever has become of the rows since: a planted
  // bug, since without their locks a row may end in between.
  std::vector<KeyVerdict> EnterKeys(std::span<const Task> tasks);
  // Those that run as claimed.
  std::vector<Task> Running(const std::string& incarnation, std::span<const Task> tasks) const;
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

  // As PermitStore has them.
  Result<std::vector<Permit>> Permits(std::span<const std::string> handlers) const;
  Status Make(const std::string& handler, std::uint32_t count);
  Result<std::vector<PermitAnswer>> Change(const std::string& incarnation,
                                           std::span<const PermitChange> changes);
  Result<std::string> Home() const { return state_.home; }
  Status NameHome(const std::string& home);

  // As SchemaStore has them.
  std::vector<TableInfo> Tables() const;
  Status Resize(const TableName& table, std::uint32_t slices);
  std::size_t RenumberStep(const TableName& table, std::size_t limit);

  // The truth, for checks.
  const CompactRow* Find(const TaskKey& key) const;  // null: there is none
  const std::vector<CompactTable>& tables() const { return state_.tables; }
  std::size_t Open() const;  // tasks that have not ended
  bool Knows(const std::string& incarnation) const { return state_.lives.contains(incarnation); }
  bool IsAlive(const std::string& incarnation) const;
  // When its row was last written by its own renewal, or made.
  BootTime BeatAt(const std::string& incarnation) const;
  Micros LeaseOf(const std::string& incarnation) const;

  // All that the shard holds, for a failover that goes back to an earlier copy.
  struct Life {
    Incarnation incarnation;
    std::uint64_t beat = 0;
    bool dead = false;
    BootTime beat_at;
  };
  struct State {
    std::vector<CompactTable> tables;
    std::map<std::string, Life> lives;
    CompactLedger keys;
    std::map<std::pair<std::string, std::uint32_t>, Permit> permits = {};  // by handler and number
    std::string home = {};                                                 // of permits
  };
  const State& state() const { return state_; }
  void Restore(State state) { state_ = std::move(state); }

 private:
  DueMap Part(std::span<const TableSlices> tables, const DueWanted& wanted) const;
  CompactTable* TableOf(const TableName& name);
  const CompactTable* TableOf(const TableName& name) const;
  CompactRow* FindRow(const TableName& table, std::uint64_t id);
  bool RunsUnder(const CompactRow& row, const std::string& incarnation, std::uint32_t attempt) const;
  void End(CompactRow& row, const Settlement& settlement);
  void Close(const TableName& table, CompactRow& row, TaskState state);
  bool Write(const std::string& incarnation, const PermitChange& change);

  const Clock& clock_;
  const ShardGuards guards_;
  State state_;
};

}  // namespace millrace::engine
