#include "framework/store/sqlite/sqlite_task_desk.h"

#include "framework/store/sqlite/due_map.h"
#include "framework/store/sqlite/pools.h"
#include "framework/store/sqlite/rows.h"
#include "framework/store/sqlite/submit.h"
#include "framework/store/sqlite/task_actions.h"

namespace millrace::engine {
namespace {

Status CheckBatch(std::size_t rows) {
  if (rows <= kMaxBatchRows) return {};
  return Fail(ErrorCode::Invalid, std::to_string(rows) + " tasks in one batch; the limit is 999");
}

Result<std::uint64_t> CountGroup(SqliteConnection& db, const DueGroup& group, std::uint64_t limit) {
  auto rows = db.Select("SELECT count(*) FROM (SELECT 1 FROM " + group.table + " INDEXED BY " + group.table +
                            "_due WHERE slice=? AND handler=? AND urgency=? AND urgency IS NOT NULL LIMIT ?)",
                        group.slice, group.handler, group.urgency, limit);
  std::uint64_t count = 0;
  if (rows.Next()) count = rows.Id(0);
  if (rows.error()) return Fail(*rows.error());
  return count;
}

}  // namespace

Result<SubmitReport> SqliteTaskDesk::Submit(const TableName& table, std::span<const NewTask> tasks) {
  BOOST_OUTCOME_TRYV(CheckBatch(tasks.size()));
  return db_.Write([&] { return SubmitBatch(db_, table, tasks); });
}

Result<std::vector<AttemptRecord>> SqliteTaskDesk::Attempts(const TaskKey& key) {
  auto rows = db_.Select(
      "SELECT attempt, at, incarnation, kind, error_class, message FROM millrace_attempts"
      " WHERE task_table=? AND task_id=? ORDER BY attempt",
      key.table, key.id);
  std::vector<AttemptRecord> attempts;
  while (rows.Next()) {
    attempts.push_back(
        {rows.Number(0), TimeOf(rows.Text(1)), rows.Text(2), rows.Text(3), rows.Text(4), rows.Text(5)});
  }
  if (rows.error()) return Fail(*rows.error());
  return attempts;
}

Result<TaskRecord> SqliteTaskDesk::Get(const TaskKey& key) {
  return db_.Read([&]() -> Result<TaskRecord> {
    BOOST_OUTCOME_TRY(record, FindRecord(db_, key));
    if (!record) {
      return Fail(ErrorCode::NotFound, "there is no task " + ToString(key));
    }
    BOOST_OUTCOME_TRY(attempts, Attempts(key));
    record->attempts = std::move(attempts);
    return std::move(*record);
  });
}

Result<TaskKey> SqliteTaskDesk::Find(const TableName& table, const std::string& handler,
                                     const std::string& key) {
  const SqlBind any = SqlBind::OrNull(handler);
  const std::string ledger =
      "SELECT task_id FROM tasks_keys WHERE task_table=? AND biz_key=? AND handler=coalesce(?, handler) "
      "LIMIT 1";
  auto entered = db_.Select(ledger, table, key, any);
  if (entered.Next()) return TaskKey{table, entered.Id(0)};
  if (entered.error()) return Fail(*entered.error());
  auto waiting = db_.Select(
      "SELECT id FROM " + table + " WHERE biz_key=? AND handler=coalesce(?, handler) LIMIT 1", key, any);
  if (waiting.Next()) return TaskKey{table, waiting.Id(0)};
  if (waiting.error()) return Fail(*waiting.error());
  return Fail(ErrorCode::NotFound, "no task in " + table + " has the key '" + Shorten(key, 80) + "'");
}

Result<TaskPage> SqliteTaskDesk::List(const TableName& table, const TaskFilter& filter,
                                      const std::string& after, std::size_t limit) {
  if (limit == 0) return Fail(ErrorCode::Invalid, "a page of no tasks was asked for");
  return db_.Read([&] { return ReadPage(db_, table, filter, after, limit); });
}

Result<std::vector<std::uint64_t>> SqliteTaskDesk::Apply(TaskAction action, const TableName& table,
                                                         std::span<const std::uint64_t> ids,
                                                         const std::string& actor) {
  BOOST_OUTCOME_TRYV(CheckBatch(ids.size()));
  return db_.Write([&] { return ApplyAction(db_, action, table, ids, actor); });
}

Result<std::vector<TaskTotals>> SqliteTaskDesk::Totals() {
  auto rows = db_.Select(
      "SELECT task_table, handler, batch, sum(succeeded), sum(cancelled), sum(failed), sum(attempts_failed)"
      " FROM millrace_counters GROUP BY task_table, handler, batch ORDER BY task_table, handler, batch");
  std::vector<TaskTotals> totals;
  const auto sum = [&](int column) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(rows.Integer(column), 0));
  };
  while (rows.Next()) {
    totals.push_back({rows.Text(0), rows.Text(1), rows.Text(2), sum(3), sum(4), sum(5), sum(6)});
  }
  if (rows.error()) return Fail(*rows.error());
  return totals;
}

Result<std::vector<GroupBacklog>> SqliteTaskDesk::Backlog(const TableName& table) {
  return db_.Read([&]() -> Result<std::vector<GroupBacklog>> {
    std::vector<DueGroup> groups;
    BOOST_OUTCOME_TRYV(ReadDueGroups(db_, {{.table = table}}, groups));
    std::map<std::string, GroupBacklog> by_handler;
    for (const DueGroup& group : groups) {
      GroupBacklog& backlog =
          by_handler.try_emplace(group.handler, GroupBacklog{.table = table, .handler = group.handler})
              .first->second;
      backlog.oldest_due = std::min(backlog.oldest_due.value_or(group.first_run_at), group.first_run_at);
      if (backlog.more) continue;
      BOOST_OUTCOME_TRY(count, CountGroup(db_, group, kExactBacklog - backlog.waiting));
      backlog.waiting += count;
      backlog.more = backlog.waiting >= kExactBacklog;
    }
    std::vector<GroupBacklog> result;
    for (auto& [handler, backlog] : by_handler) result.push_back(std::move(backlog));
    return result;
  });
}

}  // namespace millrace::engine
