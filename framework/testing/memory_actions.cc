#include "framework/testing/memory_changes.h"

namespace millrace::engine {
namespace {

// The pool in which the task stands and may be changed; nullptr: in none.
MemoryPool* PoolOf(MemoryTable& table, std::uint64_t id) {
  for (MemoryPool* pool : {&table.tasks, &table.failed}) {
    if (pool->contains(id)) return pool;
  }
  return nullptr;
}

void RetryFailed(MemoryState& state, MemoryTable& table, std::uint64_t id, WallTime now) {
  TaskRecord row = std::move(table.failed.extract(id).mapped());
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
}

void RetryWaiting(Task& task, WallTime now) {
  task.run_at = std::min(task.run_at, now);
  task.failures = 0;
  task.crashes = 0;
  task.cancel = false;
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

void End(MemoryState& state, MemoryTable& table, MemoryPool& pool, std::uint64_t id, TaskState after,
         WallTime now) {
  TaskRecord row = std::move(pool.extract(id).mapped());
  const Task& task = row.task;
  TaskTotals& totals = state.Totals(task.key.table, task.handler, task.batch);
  totals.cancelled += 1;
  totals.failed -= task.state == TaskState::Failed;
  EndKey(state, task, now);
  row.task.state = after;
  row.task.cancel = false;
  row.finished_at = now;
  table.error_classes.erase(id);
  table.done[id] = std::move(row);
}

}  // namespace

bool ActOn(MemoryState& state, TaskAction action, const TaskKey& key, WallTime now) {
  const auto found = state.tables.find(key.table);
  if (found == state.tables.end()) return false;
  MemoryTable& table = found->second;
  MemoryPool* pool = PoolOf(table, key.id);
  if (pool == nullptr) return false;
  Task& task = pool->at(key.id).task;
  const auto after = StateAfter(action, task.state);
  if (!after) return false;
  switch (action) {
    case TaskAction::Retry:
      task.state == TaskState::Failed ? RetryFailed(state, table, key.id, now) : RetryWaiting(task, now);
      return true;
    case TaskAction::Cancel:
      if (after == TaskState::Running) {
        task.cancel = true;
      } else {
        End(state, table, *pool, key.id, *after, now);
      }
      return true;
    case TaskAction::Hold:
    case TaskAction::Release:
      task.state = *after;
      return true;
  }
  return false;
}

}  // namespace millrace::engine
