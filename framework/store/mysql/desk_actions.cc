#include <algorithm>
#include <map>

#include "framework/store/mysql/key_texts.h"
#include "framework/store/mysql/mysql_desk.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

using Ids = std::vector<std::uint64_t>;

struct Locked {
  std::uint64_t id = 0;
  TaskState state = TaskState::Waiting;
  std::string handler;
  std::string biz_key;
  std::string batch;
};

constexpr const char* kShared =
    "id,slice,handler,priority,params,biz_key,batch,attempt,progress,created_at,last_error";

// One action on the rows of one table, within one transaction.
class Action {
 public:
  Action(Session& session, TaskAction action, const TableName& table, std::span<const std::uint64_t> ids)
      : session_(session), action_(action), table_(table), ids_(List(Sorted(ids))) {
    for (const TaskState state : StatesFor(action))
      states_ += (states_.empty() ? "" : ",") + std::to_string(static_cast<int>(state));
  }

  Status Do() {
    switch (action_) {
      case TaskAction::Retry:
        return Retry();
      case TaskAction::Cancel:
        return Cancel();
      case TaskAction::Hold:
      case TaskAction::Release:
        return Switch();
    }
    return {};
  }
  Ids& changed() { return changed_; }

 private:
  // The rows of the pool that it fits.
  Result<std::vector<Locked>> Lock(const std::string& pool);
  Status Switch();
  Status Retry();
  Status Cancel();
  Status CancelFailed();
  KeyEntries KeysOf(const std::vector<Locked>& rows) const;
  Status Count(const std::vector<Locked>& rows, int cancelled, int failed);
  Status Run(const std::string& sql) {
    if (sql.empty()) return {};
    BOOST_OUTCOME_TRYV(session_.Write(sql));
    return {};
  }
  std::string In(const std::vector<Locked>& rows) {
    Ids ids;
    for (const Locked& row : rows) ids.push_back(row.id);
    changed_.insert(changed_.end(), ids.begin(), ids.end());
    return " WHERE id IN (" + List(ids) + ")";
  }

  Status Set(const std::vector<Locked>& rows, const std::string& values) {
    return Run("UPDATE " + table_ + " FORCE INDEX (PRIMARY) SET " + values + ", updated_at=UTC_TIMESTAMP(6)" +
               In(rows));
  }

  Session& session_;
  const TaskAction action_;
  const TableName& table_;
  const std::string ids_;
  std::string states_;
  Ids changed_;
};

Result<std::vector<Locked>> Action::Lock(const std::string& pool) {
  std::vector<Locked> rows;
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id,state,handler,biz_key,batch FROM " + table_ + pool +
                                        " FORCE INDEX (PRIMARY) WHERE id IN (" + ids_ + ") AND state IN (" +
                                        states_ + ") ORDER BY id FOR UPDATE",
                                    [&](const Row& row) {
                                      rows.push_back({row.Number(1), static_cast<TaskState>(row.Signed(2)),
                                                      row.Text(3), row.Text(4), row.Text(5)});
                                    }));
  return rows;
}

// Nothing but the state changes, and it fits one state.
Status Action::Switch() {
  BOOST_OUTCOME_TRY(rows, Lock(""));
  if (rows.empty()) return {};
  const TaskState after = StateAfter(action_, rows.front().state).value();
  return Set(rows, "state=" + std::to_string(static_cast<int>(after)));
}

Status Action::Retry() {
  BOOST_OUTCOME_TRY(waiting, Lock(""));
  if (!waiting.empty()) {
    BOOST_OUTCOME_TRYV(
        Set(waiting, "run_at=LEAST(run_at,UTC_TIMESTAMP(6)), failures=0, crashes=0, cancel=0"));
  }
  BOOST_OUTCOME_TRY(rows, Lock("_failed"));
  if (rows.empty()) return {};
  const std::string in = In(rows);
  if (Status moved =
          Run("INSERT INTO " + table_ + " (" + kShared + ",state,run_at,failures,crashes) SELECT " + kShared +
              ",0,UTC_TIMESTAMP(6),0,0 FROM " + table_ + "_failed FORCE INDEX (PRIMARY)" + in);
      !moved) {
    return moved;
  }
  BOOST_OUTCOME_TRYV(Run("DELETE FROM " + table_ + "_failed" + in));
  BOOST_OUTCOME_TRYV(Run(ReopenText(KeysOf(rows))));
  return Count(rows, 0, -1);
}

Status Action::Cancel() {
  BOOST_OUTCOME_TRY(rows, Lock(""));
  std::vector<Locked> running;
  std::vector<Locked> still;
  for (const Locked& row : rows)
    (StateAfter(action_, row.state) == TaskState::Running ? running : still).push_back(row);
  if (!running.empty()) {
    BOOST_OUTCOME_TRYV(Set(running, "cancel=1"));
  }
  if (!still.empty()) {
    const std::string in = In(still);
    BOOST_OUTCOME_TRYV(
        Run("INSERT INTO " + table_ + "_done (" + kShared +
            ",run_at,failures,crashes,claimed_by,claimed_at,state,result,finished_at) SELECT " + kShared +
            ",run_at,failures,crashes,claimed_by,claimed_at,4,'',UTC_TIMESTAMP(6) FROM " + table_ +
            " FORCE INDEX (PRIMARY)" + in));
    BOOST_OUTCOME_TRYV(Run("DELETE FROM " + table_ + in));
    const KeyEntries keys = KeysOf(still);
    BOOST_OUTCOME_TRYV(Run(KeepStartedText(keys)));
    BOOST_OUTCOME_TRYV(Run(FreeUnstartedText(keys)));
    BOOST_OUTCOME_TRYV(Count(still, 1, 0));
  }
  return CancelFailed();
}

Status Action::CancelFailed() {
  BOOST_OUTCOME_TRY(rows, Lock("_failed"));
  if (rows.empty()) return {};
  const std::string in = In(rows);
  BOOST_OUTCOME_TRYV(Run("INSERT INTO " + table_ + "_done (" + kShared +
                         ",run_at,failures,crashes,claimed_by,claimed_at,state,result,finished_at) SELECT " +
                         kShared +
                         ",run_at,failures,crashes,claimed_by,claimed_at,4,'',UTC_TIMESTAMP(6) FROM " +
                         table_ + "_failed FORCE INDEX (PRIMARY)" + in));
  BOOST_OUTCOME_TRYV(Run("DELETE FROM " + table_ + "_failed" + in));
  BOOST_OUTCOME_TRYV(Run(KeepText(KeysOf(rows))));
  return Count(rows, 1, -1);
}

KeyEntries Action::KeysOf(const std::vector<Locked>& rows) const {
  KeyEntries entries;
  for (const Locked& row : rows) {
    if (!row.biz_key.empty()) entries.push_back({row.handler, row.biz_key, {table_, row.id}});
  }
  return entries;
}

Status Action::Count(const std::vector<Locked>& rows, int cancelled, int failed) {
  std::map<std::pair<std::string, std::string>, int> groups;
  for (const Locked& row : rows) ++groups[{row.handler, row.batch}];
  std::string values;
  for (const auto& [group, count] : groups) {
    values += (values.empty() ? "(" : ",(") + Quote(table_) + "," + Quote(group.first) + "," +
              Quote(group.second) + ",''," + std::to_string(cancelled * count) + "," +
              std::to_string(failed * count) + ")";
  }
  return Run("INSERT INTO millrace_counters (task_table,handler,batch,incarnation,cancelled,failed) VALUES " +
             values +
             " ON DUPLICATE KEY UPDATE cancelled=cancelled+VALUES(cancelled), failed=failed+VALUES(failed)");
}

}  // namespace

Result<std::vector<std::uint64_t>> MysqlTaskDesk::Apply(TaskAction action, const TableName& table,
                                                        std::span<const std::uint64_t> ids,
                                                        const std::string& actor) {
  Ids changed;
  if (ids.empty()) return changed;
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  Action run(session_, action, table, ids);
  BOOST_OUTCOME_TRYV(run.Do());
  changed = std::move(run.changed());
  if (changed.empty()) return changed;
  std::sort(changed.begin(), changed.end());
  BOOST_OUTCOME_TRYV(
      session_.Write("INSERT INTO millrace_audit (at,actor,action,subject,detail) VALUES (UTC_TIMESTAMP(6)," +
                     Quote(Shorten(actor, 190)) + "," + Quote(ToString(action)) + "," + Quote(table) + "," +
                     Quote(mysql::List(changed)) + ")"));
  BOOST_OUTCOME_TRYV(session_.Commit());
  return changed;
}

}  // namespace millrace::engine::mysql
