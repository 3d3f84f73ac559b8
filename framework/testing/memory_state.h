// What stands in a shard of the memory store: a plain model of the tables. Values and rules, no I/O.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "framework/base/random.h"
#include "framework/store/incarnation_store.h"
#include "framework/store/task_desk.h"

namespace millrace::engine {

using MemoryPool = std::map<std::uint64_t, TaskRecord>;

struct MemoryTable {
  std::uint32_t slices = 0;
  std::uint64_t next_id = 1;
  MemoryPool tasks;  // waiting, running and held
  MemoryPool failed;
  MemoryPool done;
  std::map<std::uint64_t, std::string> error_classes;  // of the failed pool
};

struct MemoryKey {
  TaskKey task;
  bool ended = false;
  bool started = false;
  std::optional<WallTime> keep_until;
};

struct MemoryIncarnation {
  Incarnation incarnation;
  WallTime began;
  std::optional<std::uint64_t> beat = 0;
  bool dead = false;
};

// Copyable, so that a transaction can work on a copy and put it back.
struct MemoryState {
  std::map<TableName, MemoryTable> tables;
  std::map<std::string, MemoryIncarnation> incarnations;
  std::map<std::pair<std::string, std::string>, MemoryKey> keys;  // by handler and key
  std::map<TaskKey, std::map<std::uint32_t, AttemptRecord>> attempts;
  std::map<std::tuple<std::string, std::string, std::string>, TaskTotals> totals;
  std::map<std::string, PauseRecord> pauses;  // by what
  Random random{1};
  // Why the claim of a row is refused, as by a constraint or a trigger; empty: it is not.
  std::function<std::string(const Task&)> claim_refusal = [](const Task&) { return std::string(); };

  // Invalid for a name that no schema made.
  Result<MemoryTable*> Table(const TableName& name);
  bool IsAlive(const std::string& incarnation) const;
  // The row that runs under this claim; null: there is none.
  TaskRecord* Running(const TaskKey& key, const std::string& incarnation, std::uint32_t attempt);
  TaskTotals& Totals(const TableName& table, const std::string& handler, const std::string& batch);

  // The ledger of keys. Empty: the key is free, or `task` has it now; else table/id of the holder.
  std::string KeyHolder(const std::string& handler, const std::string& key, WallTime now) const;
  std::string TakeKey(const std::string& handler, const std::string& key, const TaskKey& task, WallTime now);
  // The entry of a task that has one; null: it is another's, or there is none.
  MemoryKey* KeyOf(const Task& task);

  // Invalid where a constraint of the tables refuses the row.
  Result<std::uint64_t> Insert(const TableName& table, Task task);
};

// How long a key stays taken after its task has ended well.
inline constexpr Micros kMemoryKeyRetention = std::chrono::days(30);

}  // namespace millrace::engine
