#include <algorithm>
#include <map>
#include <set>

#include "framework/store/mysql/mysql_desk.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/submit.h"
#include "framework/store/mysql/task_rows.h"

namespace millrace::engine::mysql {

std::string PoolText(const TableName& table, const Pool& pool) {
  return "SELECT " + TaskColumns(*pool.suffix == '\0') + "," + pool.columns + " FROM " + table + pool.suffix;
}

TaskRecord ReadRecord(const TableName& table, const Row& row) {
  TaskRecord record;
  record.task = ReadTask(table, row);
  record.result = row.Text(kTaskColumns + 1);
  record.finished_at = row.Time(kTaskColumns + 3);
  return record;
}

Result<SubmitReport> MysqlTaskDesk::Submit(const TableName& table, std::span<const NewTask> tasks) {
  if (tasks.empty()) return SubmitReport{};
  // Somebody who enters one of the keys at the same moment has decided it: the second look sees the entry.
  for (int look = 0;; ++look) {
    Transaction transaction(session_);
    BOOST_OUTCOME_TRYV(session_.Begin());
    auto report = RunSubmit(session_, table, tasks);
    if (!report && report.error().code == ErrorCode::Conflict && look < 3) continue;
    if (!report) return Fail(report.error());
    BOOST_OUTCOME_TRYV(session_.Commit());
    return report;
  }
}

Result<TaskRecord> MysqlTaskDesk::Get(const TaskKey& key) {
  // A settle may move the row between two looks, and a retry move it back: hence the second round.
  for (int round = 0; round < 2; ++round) {
    for (const Pool& pool : {kHot, kDone, kFailed}) {
      std::optional<TaskRecord> record;
      BOOST_OUTCOME_TRYV(session_.Query(PoolText(key.table, pool) + " WHERE id=" + std::to_string(key.id),
                                        [&](const Row& row) { record = ReadRecord(key.table, row); }));
      if (!record) continue;
      BOOST_OUTCOME_TRYV(ReadAttempts(*record));
      return *record;
    }
  }
  return Fail(ErrorCode::NotFound, session_.where() + ": there is no task " + ToString(key));
}

Status MysqlTaskDesk::ReadAttempts(TaskRecord& record) {
  const TaskKey& key = record.task.key;
  return session_.Query(
      "SELECT attempt,at,incarnation,kind,error_class,message FROM millrace_attempts WHERE task_table=" +
          Quote(key.table) + " AND task_id=" + std::to_string(key.id) + " ORDER BY attempt",
      [&](const Row& row) {
        record.attempts.push_back({static_cast<std::uint32_t>(row.Number(1)),
                                   row.Time(2).value_or(WallTime{}), row.Text(3), row.Text(4), row.Text(5),
                                   row.Text(6)});
      });
}

Result<TaskKey> MysqlTaskDesk::Find(const TableName& table, const std::string& handler,
                                    const std::string& key) {
  std::optional<TaskKey> found;
  const std::string by_handler = handler.empty() ? "" : " AND handler=" + Quote(handler);
  BOOST_OUTCOME_TRYV(session_.Query("SELECT task_table,task_id FROM tasks_keys WHERE biz_key=" + Quote(key) +
                                        by_handler + " ORDER BY entered_at DESC LIMIT 1",
                                    [&](const Row& row) {
                                      const auto holder = ParseTableName(row.Text(1));
                                      if (holder) found = TaskKey{*holder, row.Number(2)};
                                    }));
  if (found) return *found;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT id FROM " + table + " WHERE biz_key=" + Quote(key) + by_handler + " ORDER BY id LIMIT 1",
      [&](const Row& row) {
        found = TaskKey{table, row.Number(1)};
      }));
  if (found) return *found;
  return Fail(ErrorCode::NotFound, session_.where() + ": no task has the key '" + Shorten(key, 190) + "'");
}

Result<std::vector<TaskTotals>> MysqlTaskDesk::Totals() {
  std::vector<TaskTotals> totals;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT "
      "task_table,handler,batch,GREATEST(SUM(succeeded),0),GREATEST(SUM(cancelled),0),GREATEST(SUM(failed),0)"
      ","
      "GREATEST(SUM(attempts_failed),0) FROM millrace_counters GROUP BY task_table,handler,batch ORDER BY "
      "task_table,handler,batch",
      [&](const Row& row) {
        totals.push_back({row.Text(1), row.Text(2), row.Text(3), row.Number(4), row.Number(5), row.Number(6),
                          row.Number(7)});
      }));
  return totals;
}

namespace {

// What the index's skips tell of one handler.
struct HandlerGroups {
  GroupBacklog backlog;
  std::set<std::string> slices;
  std::set<std::string> urgencies;
};

// As many ranges as the servers' optimizers still plan as such.
constexpr std::size_t kRanges = 1000;

std::string Joined(std::set<std::string>::const_iterator from, std::set<std::string>::const_iterator to) {
  std::string text;
  for (; from != to; ++from) text += (text.empty() ? "" : ",") + *from;
  return text;
}

// Counts by ranges of the index, which hold this handler's rows alone, until there are enough.
Status CountWaiting(Session& session, const HandlerGroups& groups, GroupBacklog& backlog) {
  const std::string urgencies = Joined(groups.urgencies.begin(), groups.urgencies.end());
  const std::size_t step = std::max<std::size_t>(1, kRanges / groups.urgencies.size());
  for (auto from = groups.slices.begin(); from != groups.slices.end() && backlog.waiting < kExactBacklog;) {
    auto to = from;
    for (std::size_t i = 0; i < step && to != groups.slices.end(); ++i) ++to;
    BOOST_OUTCOME_TRYV(session.Query(
        "SELECT COUNT(*) FROM (SELECT 1 FROM " + backlog.table + " FORCE INDEX (due) WHERE slice IN (" +
            Joined(from, to) + ") AND handler=" + Quote(backlog.handler) + " AND urgency IN (" + urgencies +
            ") LIMIT " + std::to_string(kExactBacklog - backlog.waiting) + ") AS counted",
        [&](const Row& row) { backlog.waiting += row.Number(1); }));
    from = to;
  }
  backlog.more = backlog.waiting >= kExactBacklog;
  return {};
}

}  // namespace

Result<std::vector<GroupBacklog>> MysqlTaskDesk::Backlog(const TableName& table) {
  std::map<std::string, HandlerGroups> handlers;
  const BootTime start = BootClock::now();
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT slice,handler,urgency,MIN(run_at) FROM " + table +
                         " FORCE INDEX (due) WHERE urgency IS NOT NULL GROUP BY slice,handler,urgency",
                     [&](const Row& row) {
                       const auto [at, is_new] = handlers.try_emplace(
                           row.Text(2), HandlerGroups{{.table = table, .handler = row.Text(2)}, {}, {}});
                       HandlerGroups& groups = at->second;
                       groups.slices.insert(row.Text(1));
                       groups.urgencies.insert(row.Text(3));
                       const auto due = row.Time(4);
                       auto& oldest = groups.backlog.oldest_due;
                       if (!oldest || due < oldest) oldest = due;
                     }));
  plan_.Mend(session_, table, BootClock::now() - start);
  std::vector<GroupBacklog> backlog;
  for (auto& [handler, groups] : handlers) {
    BOOST_OUTCOME_TRYV(CountWaiting(session_, groups, groups.backlog));
    backlog.push_back(std::move(groups.backlog));
  }
  return backlog;
}

std::unique_ptr<TaskDesk> OpenDesk(const Endpoint& endpoint, ConnectionPool& pool) {
  return std::make_unique<MysqlTaskDesk>(endpoint, pool);
}

}  // namespace millrace::engine::mysql
