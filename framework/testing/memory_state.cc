#include "framework/testing/memory_state.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace millrace::engine {

Result<MemoryTable*> MemoryState::Table(const TableName& name) {
  const auto found = tables.find(name);
  if (found != tables.end()) return &found->second;
  return Fail(ErrorCode::Invalid, "'" + Shorten(name, 60) + "' is not the name of a task table");
}

bool MemoryState::IsAlive(const std::string& incarnation) const {
  const auto found = incarnations.find(incarnation);
  return found != incarnations.end() && !found->second.dead;
}

TaskRecord* MemoryState::Running(const TaskKey& key, const std::string& incarnation, std::uint32_t attempt) {
  const auto table = tables.find(key.table);
  if (table == tables.end()) return nullptr;
  const auto row = table->second.tasks.find(key.id);
  if (row == table->second.tasks.end()) return nullptr;
  const Task& task = row->second.task;
  const bool mine =
      task.state == TaskState::Running && task.claimed_by == incarnation && task.attempt == attempt;
  return mine ? &row->second : nullptr;
}

TaskTotals& MemoryState::Totals(const TableName& table, const std::string& handler,
                                const std::string& batch) {
  TaskTotals& sums = totals[{std::string(table.text()), handler, batch}];
  sums.table = table.text();
  sums.handler = handler;
  sums.batch = batch;
  return sums;
}

std::string MemoryState::KeyHolder(const std::string& handler, const std::string& key, WallTime now) const {
  const auto found = keys.find({handler, key});
  if (found == keys.end()) return {};
  const MemoryKey& entry = found->second;
  if (entry.keep_until && *entry.keep_until <= now) return {};
  if (entry.ended) return ToString(entry.task);
  const auto table = tables.find(entry.task.table);
  if (table == tables.end()) return {};
  for (const MemoryPool* pool : {&table->second.tasks, &table->second.failed, &table->second.done}) {
    if (pool->contains(entry.task.id)) return ToString(entry.task);
  }
  return {};
}

std::string MemoryState::TakeKey(const std::string& handler, const std::string& key, const TaskKey& task,
                                 WallTime now) {
  const auto found = keys.find({handler, key});
  if (found == keys.end() || found->second.task != task) {
    const std::string holder = KeyHolder(handler, key, now);
    if (!holder.empty()) return holder;
  } else if (!found->second.ended) {
    return {};
  }
  keys[{handler, key}] = {.task = task};
  return {};
}

MemoryKey* MemoryState::KeyOf(const Task& task) {
  const auto found = keys.find({task.handler, task.biz_key});
  return found != keys.end() && found->second.task == task.key ? &found->second : nullptr;
}

Result<std::uint64_t> MemoryState::Insert(const TableName& name, Task task) {
  BOOST_OUTCOME_TRY(table, Table(name));
  if (!IsHandlerName(task.handler)) return Fail(ErrorCode::Invalid, "the handler has no handler's name");
  if (task.params.size() > kMaxParams) return Fail(ErrorCode::Invalid, "the params are over 65536 bytes");
  if (!nlohmann::json::accept(task.params)) return Fail(ErrorCode::Invalid, "the params are not valid JSON");
  if (task.slice >= kMaxSlices) return Fail(ErrorCode::Invalid, "the slice is over 16383");
  if (std::max({task.attempt, task.failures, task.crashes}) > kMaxCount) {
    return Fail(ErrorCode::Invalid, "the attempt, the failures or the crashes are over 4100000000");
  }
  if (task.priority > 9) return Fail(ErrorCode::Invalid, "the priority is over 9");
  if (task.state != TaskState::Waiting && task.state != TaskState::Held) {
    return Fail(ErrorCode::Invalid, "a new task waits or is held");
  }
  if (task.key.id == 0) task.key.id = table->next_id++;
  task.key.table = name;
  const std::uint64_t id = task.key.id;
  table->tasks[id].task = std::move(task);
  return id;
}

}  // namespace millrace::engine
