#include "framework/testing/memory_task_store.h"

#include <algorithm>

#include "framework/store/due_scope.h"
#include "framework/task/urgency.h"
#include "framework/testing/memory_changes.h"

namespace millrace::engine {
namespace {

Status CheckSize(std::size_t count) {
  if (count <= kMaxBatchRows) return {};
  return Fail(ErrorCode::Invalid, std::to_string(count) + " rows in one batch; the limit is 999");
}

Status MustLive(const MemoryState& state, const std::string& incarnation) {
  if (state.IsAlive(incarnation)) return {};
  return Fail(ErrorCode::Cancelled, "the incarnation " + incarnation + " was marked dead in this shard");
}

std::vector<std::uint64_t> Sorted(std::vector<std::uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The waiting rows of the ids that have the attempt seen.
std::vector<Task*> WaitingRows(MemoryTable& table, const ClaimRequest& request) {
  std::vector<Task*> rows;
  for (const std::uint64_t id : Sorted(request.ids)) {
    const auto row = table.tasks.find(id);
    if (row == table.tasks.end()) continue;
    Task& task = row->second.task;
    if (task.state == TaskState::Waiting && task.attempt == request.attempt) rows.push_back(&task);
  }
  return rows;
}

void AddGroups(const MemoryTable& table, const DueScope& scope, std::vector<DueGroup>& groups) {
  std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, WallTime> first;
  for (const auto& [id, row] : table.tasks) {
    const Task& task = row.task;
    if (task.state == TaskState::Held) continue;
    const auto place =
        first.try_emplace({task.slice, task.handler, Urgency(task.priority, task.failures)}, task.run_at);
    place.first->second = std::min(place.first->second, task.run_at);
  }
  for (const auto& [group, run_at] : first) {
    const auto& [slice, handler, urgency] = group;
    DueGroup due{scope.whole.table, slice, handler, urgency, run_at};
    if (scope.whole.Covers(slice, handler) && scope.Covers(due)) groups.push_back(std::move(due));
  }
}

bool Belongs(const Task& task, const DueGroup& group) {
  return task.state != TaskState::Held && task.slice == group.slice && task.handler == group.handler &&
         Urgency(task.priority, task.failures) == group.urgency;
}

}  // namespace

Result<DueMap> MemoryTaskStore::Due(std::span<const TableSlices> tables) {
  MutexLock lock(shard_.mutex);
  DueMap map;
  for (const DueScope& scope : ScopesOf(tables)) {
    BOOST_OUTCOME_TRY(table, shard_.state.Table(scope.whole.table));
    AddGroups(*table, scope, map.groups);
  }
  for (const auto& [what, pause] : shard_.state.pauses) map.pauses.push_back(what);
  map.now = shard_.clock.WallNow();
  return map;
}

Result<std::vector<ScanRow>> MemoryTaskStore::Scan(const ScanRequest& request) {
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(request.group.table));
  const WallTime now = shard_.clock.WallNow();
  std::vector<ScanRow> rows;
  for (const auto& [id, row] : table->tasks) {
    const Task& task = row.task;
    const ScanPosition place{task.run_at, id};
    if (!Belongs(task, request.group) || task.run_at > now || place <= request.after) continue;
    rows.push_back({id, task.run_at, task.state, task.attempt, task.crashes, task.claimed_by,
                    request.with_bytes ? TextBytes(task) : 0});
  }
  std::sort(rows.begin(), rows.end(), [](const ScanRow& a, const ScanRow& b) {
    return std::pair(a.run_at, a.id) < std::pair(b.run_at, b.id);
  });
  if (rows.size() > request.limit) rows.resize(request.limit);
  return rows;
}

Result<std::vector<Task>> MemoryTaskStore::Claim(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(request.table));
  BOOST_OUTCOME_TRYV(MustLive(shard_.state, request.incarnation));
  const WallTime now = shard_.clock.WallNow();
  for (const Task* task : WaitingRows(*table, request)) {
    if (std::string why = shard_.state.claim_refusal(*task); !why.empty())
      return Fail(ErrorCode::Invalid, why);
  }
  std::vector<Task> claimed;
  for (Task* task : WaitingRows(*table, request)) {
    // An id given twice is taken once.
    if (task->run_at > now || task->state != TaskState::Waiting) continue;
    task->state = TaskState::Running;
    ++task->attempt;
    task->claimed_by = request.incarnation;
    task->claimed_at = now;
    claimed.push_back(*task);
  }
  return claimed;
}

Result<std::vector<std::uint64_t>> MemoryTaskStore::FailUnclaimed(const ClaimRequest& request,
                                                                  const std::string& why) {
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(request.table));
  std::vector<std::uint64_t> failed;
  for (const Task* waiting : WaitingRows(*table, request)) {
    const std::uint64_t id = waiting->key.id;
    TaskRecord row = table->tasks.extract(id).mapped();
    Task& task = row.task;
    task.state = TaskState::Failed;
    task.last_error = Shorten(why);
    row.finished_at = shard_.clock.WallNow();
    shard_.state.Totals(request.table, task.handler, task.batch).failed += 1;
    MemoryKey* key = task.biz_key.empty() ? nullptr : shard_.state.KeyOf(task);
    if (key != nullptr) key->ended = true;
    table->error_classes[id] = kUnclaimable;
    table->failed[id] = std::move(row);
    failed.push_back(id);
  }
  return failed;
}

std::vector<Task> MemoryTaskStore::Raise(const ClaimRequest& request, std::uint32_t attempt) {
  std::vector<Task> raised;
  for (const std::uint64_t id : Sorted(request.ids)) {
    TaskRecord* row = shard_.state.Running({request.table, id}, request.incarnation, attempt);
    if (row == nullptr) continue;
    ++row->task.attempt;
    raised.push_back(row->task);
  }
  return raised;
}

Result<std::vector<Task>> MemoryTaskStore::Resolve(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(request.table));
  std::vector<Task> adopted;
  if (shard_.state.IsAlive(request.incarnation)) adopted = Raise(request, request.attempt + 1);
  for (Task* task : WaitingRows(*table, request)) ++task->attempt;
  return adopted;
}

Result<std::vector<Task>> MemoryTaskStore::Adopt(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRYV(MustLive(shard_.state, request.incarnation));
  return Raise(request, request.attempt);
}

Result<std::vector<std::uint64_t>> MemoryTaskStore::Rescue(const RescueRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  MutexLock lock(shard_.mutex);
  std::vector<std::uint64_t> rescued;
  if (shard_.state.IsAlive(request.claimed_by)) return rescued;
  const WallTime now = shard_.clock.WallNow();
  for (const std::uint64_t id : Sorted(request.ids)) {
    TaskRecord* row = shard_.state.Running({request.table, id}, request.claimed_by, request.attempt);
    if (row == nullptr) continue;
    row->task.state = TaskState::Waiting;
    row->task.claimed_by.clear();
    row->task.claimed_at.reset();
    rescued.push_back(id);
    if (MemoryKey* key = row->task.biz_key.empty() ? nullptr : shard_.state.KeyOf(row->task))
      key->started = true;
    shard_.state.attempts[row->task.key].try_emplace(
        request.attempt,
        AttemptRecord{request.attempt, now, request.claimed_by, "rescued", "lost_worker",
                      "the worker " + request.claimed_by + " is dead; the task waits again"});
  }
  return rescued;
}

Result<std::vector<KeyVerdict>> MemoryTaskStore::ConfirmKeys(const std::string& incarnation,
                                                             std::span<const Task> tasks) {
  MutexLock lock(shard_.mutex);
  std::vector<KeyVerdict> verdicts;
  for (const Task& task : tasks) {
    if (task.biz_key.empty() || shard_.state.Running(task.key, incarnation, task.attempt) == nullptr)
      continue;
    const std::string holder =
        shard_.state.TakeKey(task.handler, task.biz_key, task.key, shard_.clock.WallNow());
    verdicts.push_back({task.key, holder.empty(), holder});
  }
  return verdicts;
}

Result<SettleReport> MemoryTaskStore::Settle(const std::string& incarnation,
                                             std::span<const Settlement> batch) {
  MutexLock lock(shard_.mutex);
  return SettleIn(shard_.state, incarnation, batch, shard_.clock.WallNow());
}

Result<std::vector<bool>> MemoryTaskStore::StillRunning(const std::string& incarnation,
                                                        std::span<const Settlement> batch) {
  MutexLock lock(shard_.mutex);
  std::vector<bool> running;
  for (const Settlement& settlement : batch) {
    running.push_back(shard_.state.Running(settlement.key, incarnation, settlement.attempt) != nullptr);
  }
  return running;
}

Result<std::vector<TaskKey>> MemoryTaskStore::SaveProgress(const std::string& incarnation,
                                                           std::span<const TaskProgress> progress) {
  MutexLock lock(shard_.mutex);
  for (const TaskProgress& mark : progress) {
    TaskRecord* row = shard_.state.Running(mark.key, incarnation, mark.attempt);
    if (row != nullptr) row->task.progress = Shorten(mark.progress);
  }
  return std::vector<TaskKey>{};
}

Result<std::vector<TaskKey>> MemoryTaskStore::Cancelled(const std::string& incarnation,
                                                        std::span<const TaskKey> running) {
  MutexLock lock(shard_.mutex);
  std::vector<TaskKey> cancelled;
  for (const TaskKey& key : running) {
    BOOST_OUTCOME_TRY(table, shard_.state.Table(key.table));
    const auto row = table->tasks.find(key.id);
    if (row == table->tasks.end()) continue;
    const Task& task = row->second.task;
    if (task.state == TaskState::Running && task.claimed_by == incarnation && task.cancel)
      cancelled.push_back(key);
  }
  return cancelled;
}

}  // namespace millrace::engine
