#include "framework/testing/memory_task_desk.h"

#include <algorithm>
#include <cstdlib>

#include "framework/testing/memory_changes.h"

namespace millrace::engine {
namespace {

template <class Value>
bool Fits(const std::optional<Value>& wanted, const Value& value) {
  return !wanted || *wanted == value;
}
bool Fits(const std::string& wanted, const std::string& value) { return wanted.empty() || wanted == value; }

bool Matches(const MemoryTable& table, const TaskFilter& filter, const Task& task) {
  if (!filter.error_class.empty()) {
    const auto found = table.error_classes.find(task.key.id);
    if (task.state != TaskState::Failed || found == table.error_classes.end()) return false;
    if (found->second != filter.error_class) return false;
  }
  return Fits(filter.state, task.state) && Fits(filter.handler, task.handler) &&
         Fits(filter.batch, task.batch) && Fits(filter.key, task.biz_key) && Fits(filter.slice, task.slice);
}

}  // namespace

Result<SubmitReport> MemoryTaskDesk::Submit(const TableName& table, std::span<const NewTask> tasks) {
  MutexLock lock(shard_.mutex);
  return SubmitTo(shard_.state, table, tasks, shard_.clock.WallNow());
}

Result<TaskRecord> MemoryTaskDesk::Get(const TaskKey& key) {
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(key.table));
  for (const MemoryPool* pool : {&table->tasks, &table->failed, &table->done}) {
    const auto found = pool->find(key.id);
    if (found == pool->end()) continue;
    TaskRecord record = found->second;
    for (const auto& [attempt, noted] : shard_.state.attempts[key]) record.attempts.push_back(noted);
    return record;
  }
  return Fail(ErrorCode::NotFound, "there is no task " + ToString(key));
}

Result<TaskKey> MemoryTaskDesk::Find(const TableName& name, const std::string& handler,
                                     const std::string& key) {
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(name));
  for (const auto& [place, entry] : shard_.state.keys) {
    if (place.second == key && Fits(handler, place.first)) return entry.task;
  }
  for (const auto& [id, row] : table->tasks) {
    if (row.task.biz_key == key && Fits(handler, row.task.handler)) return row.task.key;
  }
  return Fail(ErrorCode::NotFound, "no task in " + name + " has the key '" + Shorten(key, 80) + "'");
}

// A place in the list is "POOL:ID", behind which the page begins.
Result<TaskPage> MemoryTaskDesk::List(const TableName& name, const TaskFilter& filter,
                                      const std::string& after, std::size_t limit) {
  if (limit == 0) return Fail(ErrorCode::Invalid, "a page of no tasks was asked for");
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(name));
  const int first = after.empty() ? 0 : std::atoi(after.c_str());
  const std::uint64_t behind = after.empty() ? 0 : std::strtoull(after.c_str() + 2, nullptr, 10);
  const MemoryPool* pools[] = {&table->tasks, &table->failed, &table->done};
  TaskPage page;
  for (int i = first; i < 3; ++i) {
    for (auto row = pools[i]->upper_bound(i == first ? behind : 0); row != pools[i]->end(); ++row) {
      if (!Matches(*table, filter, row->second.task)) continue;
      page.records.push_back(row->second);
      if (page.records.size() < limit) continue;
      page.next = std::to_string(i) + ":" + std::to_string(row->first);
      return page;
    }
  }
  return page;
}

Result<std::vector<std::uint64_t>> MemoryTaskDesk::Apply(TaskAction action, const TableName& table,
                                                         std::span<const std::uint64_t> ids,
                                                         const std::string&) {
  if (ids.size() > kMaxBatchRows) return Fail(ErrorCode::Invalid, "more than 999 tasks at once");
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRYV(shard_.state.Table(table));
  std::vector<std::uint64_t> changed;
  for (const std::uint64_t id : ids) {
    if (ActOn(shard_.state, action, {table, id}, shard_.clock.WallNow())) changed.push_back(id);
  }
  return changed;
}

Result<bool> MemoryTaskDesk::SetPause(const std::string& what, const std::string& actor, bool on) {
  BOOST_OUTCOME_TRYV(CheckPauseName(what));
  MutexLock lock(shard_.mutex);
  if (!on) return shard_.state.pauses.erase(what) > 0;
  return shard_.state.pauses.try_emplace(what, PauseRecord{what, Shorten(actor, 190), shard_.clock.WallNow()})
      .second;
}

Result<std::vector<PauseRecord>> MemoryTaskDesk::Pauses() {
  MutexLock lock(shard_.mutex);
  std::vector<PauseRecord> pauses;
  for (const auto& [what, pause] : shard_.state.pauses) pauses.push_back(pause);
  return pauses;
}

Result<std::vector<TaskTotals>> MemoryTaskDesk::Totals() {
  MutexLock lock(shard_.mutex);
  std::vector<TaskTotals> totals;
  for (const auto& [group, sums] : shard_.state.totals) totals.push_back(sums);
  return totals;
}

Result<std::vector<GroupBacklog>> MemoryTaskDesk::Backlog(const TableName& name) {
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(name));
  std::map<std::string, GroupBacklog> by_handler;
  for (const auto& [id, row] : table->tasks) {
    if (row.task.state == TaskState::Held) continue;
    GroupBacklog& backlog =
        by_handler.try_emplace(row.task.handler, GroupBacklog{.table = name, .handler = row.task.handler})
            .first->second;
    backlog.oldest_due = std::min(backlog.oldest_due.value_or(row.task.run_at), row.task.run_at);
    backlog.waiting = std::min(backlog.waiting + 1, kExactBacklog);
    backlog.more = backlog.waiting == kExactBacklog;
  }
  std::vector<GroupBacklog> result;
  for (auto& [handler, backlog] : by_handler) result.push_back(std::move(backlog));
  return result;
}

}  // namespace millrace::engine
