#include "framework/testing/memory_actions.h"

namespace millrace::engine {
namespace {

bool RetryFailed(MemoryState& state, MemoryTable& table, std::uint64_t id, WallTime now) {
  const auto found = table.failed.find(id);
  if (found == table.failed.end()) return false;
  TaskRecord row = std::move(found->second);
  table.failed.erase(found);
  table.error_classes.erase(id);
  row.finished_at.reset();
  Task& task = row.task;
  task.state = TaskState::Waiting;
  task.run_at = now;
  task.failures = 0;
  task.crashes = 0;
  task.claimed_by.clear();
  task.claimed_at.reset();
  state.Totals(task.key.table, task.handler, task.batch).failed -= 1;
  if (MemoryKey* key = state.KeyOf(task); key != nullptr) *key = {.task = task.key, .started = true};
  table.tasks[id] = std::move(row);
  return true;
}

bool Retry(MemoryState& state, MemoryTable& table, std::uint64_t id, WallTime now) {
  const auto found = table.tasks.find(id);
  if (found == table.tasks.end()) return RetryFailed(state, table, id, now);
  Task& task = found->second.task;
  if (task.state != TaskState::Waiting) return false;
  task.run_at = now;
  task.failures = 0;
  task.crashes = 0;
  task.cancel = false;
  return true;
}

void EndKey(MemoryState& state, const Task& task, WallTime now) {
  MemoryKey* key = task.biz_key.empty() ? nullptr : state.KeyOf(task);
  if (key == nullptr) return;
  if (task.state != TaskState::Failed && !key->started) {
    state.keys.erase({task.handler, task.biz_key});
  } else {
    *key = {.task = task.key, .ended = true, .started = true, .keep_until = now + kMemoryKeyRetention};
  }
}

bool Cancel(MemoryState& state, MemoryTable& table, std::uint64_t id, WallTime now) {
  const auto waiting = table.tasks.find(id);
  if (waiting != table.tasks.end() && waiting->second.task.state == TaskState::Running) {
    waiting->second.task.cancel = true;
    return true;
  }
  MemoryPool& pool = waiting != table.tasks.end() ? table.tasks : table.failed;
  const auto found = pool.find(id);
  if (found == pool.end()) return false;
  TaskRecord row = std::move(found->second);
  pool.erase(found);
  const Task& task = row.task;
  TaskTotals& totals = state.Totals(task.key.table, task.handler, task.batch);
  totals.cancelled += 1;
  totals.failed -= task.state == TaskState::Failed;
  EndKey(state, task, now);
  row.task.state = TaskState::Cancelled;
  row.task.cancel = false;
  row.finished_at = now;
  table.error_classes.erase(id);
  table.done[id] = std::move(row);
  return true;
}

bool SetState(MemoryTable& table, std::uint64_t id, TaskState from, TaskState to) {
  const auto found = table.tasks.find(id);
  if (found == table.tasks.end() || found->second.task.state != from) return false;
  found->second.task.state = to;
  return true;
}

}  // namespace

bool ActOn(MemoryState& state, TaskAction action, const TaskKey& key, WallTime now) {
  const auto found = state.tables.find(key.table);
  if (found == state.tables.end()) return false;
  switch (action) {
    case TaskAction::Retry:
      return Retry(state, found->second, key.id, now);
    case TaskAction::Cancel:
      return Cancel(state, found->second, key.id, now);
    case TaskAction::Hold:
      return SetState(found->second, key.id, TaskState::Waiting, TaskState::Held);
    case TaskAction::Release:
      return SetState(found->second, key.id, TaskState::Held, TaskState::Waiting);
  }
  return false;
}

}  // namespace millrace::engine
