#include "framework/store/sqlite/task_actions.h"

#include "framework/store/sqlite/counters.h"
#include "framework/store/sqlite/key_ledger.h"
#include "framework/store/sqlite/pools.h"
#include "framework/store/sqlite/rows.h"

namespace millrace::engine {
namespace {

constexpr char kKept[] =
    "id, slice, handler, priority, params, biz_key, batch, attempt, last_error, progress, created_at";

class Actor {
 public:
  Actor(SqliteConnection& db, const TableName& table, const std::string& name)
      : db_(db), table_(table), name_(name), now_(StoreNow()), now_text_(TimeText(now_)) {}

  Result<bool> Act(TaskAction action, std::uint64_t id) {
    BOOST_OUTCOME_TRY(record, FindRecord(db_, {table_, id}));
    if (!record) return false;
    const Task& task = record->task;
    const auto after = StateAfter(action, task.state);
    if (!after) return false;
    auto changed = Change(action, task, *after);
    if (!changed || !*changed) return changed;
    BOOST_OUTCOME_TRYV(Note(action, task));
    return true;
  }
  Status WriteCounters() { return sums_.Write(db_, ""); }

 private:
  Result<bool> Change(TaskAction action, const Task& task, TaskState after) {
    switch (action) {
      case TaskAction::Retry:
        return Retry(task);
      case TaskAction::Cancel:
        return Cancel(task, after);
      case TaskAction::Hold:
      case TaskAction::Release:
        return SetState(task, after);
    }
    return false;
  }

  Result<bool> Retry(const Task& task) {
    if (task.state != TaskState::Failed) {
      return Changed(db_.Run(
          "UPDATE " + table_ + " SET run_at=?, failures=0, crashes=0, cancel=0, updated_at=? WHERE id=?",
          now_text_, now_text_, task.key.id));
    }
    BOOST_OUTCOME_TRYV(db_.Run("INSERT INTO " + table_ + " (run_at, updated_at, " + kKept +
                                   ") SELECT ?, ?, " + kKept + " FROM " + table_ + "_failed WHERE id=?",
                               now_text_, now_text_, task.key.id));
    sums_.Of(table_, task.handler, task.batch).failed -= 1;
    BOOST_OUTCOME_TRYV(SetKeyFate(db_, task.handler, task.biz_key, task.key, KeyFate::Reopen, now_));
    return Changed(db_.Run("DELETE FROM " + table_ + "_failed WHERE id=?", task.key.id));
  }

  Result<bool> Cancel(const Task& task, TaskState after) {
    if (after == TaskState::Running) {
      return Changed(
          db_.Run("UPDATE " + table_ + " SET cancel=1, updated_at=? WHERE id=?", now_text_, task.key.id));
    }
    const bool failed = task.state == TaskState::Failed;
    const std::string pool = PoolTable(table_, failed ? Pool::Failed : Pool::Tasks);
    const std::string columns = std::string(kKept) + ", run_at, failures, crashes, claimed_by, claimed_at";
    BOOST_OUTCOME_TRYV(db_.Run("INSERT INTO " + table_ + "_done (state, finished_at, " + columns +
                                   ") SELECT ?, ?, " + columns + " FROM " + pool + " WHERE id=?",
                               static_cast<int>(after), now_text_, task.key.id));
    CounterDelta& delta = sums_.Of(table_, task.handler, task.batch);
    delta.cancelled += 1;
    delta.failed -= failed;
    const KeyFate fate = failed ? KeyFate::Retain : KeyFate::Free;
    BOOST_OUTCOME_TRYV(SetKeyFate(db_, task.handler, task.biz_key, task.key, fate, now_));
    return Changed(db_.Run("DELETE FROM " + pool + " WHERE id=?", task.key.id));
  }

  Result<bool> SetState(const Task& task, TaskState after) {
    return Changed(db_.Run("UPDATE " + table_ + " SET state=?, updated_at=? WHERE id=?",
                           static_cast<int>(after), now_text_, task.key.id));
  }

  Status Note(TaskAction action, const Task& task) {
    BOOST_OUTCOME_TRYV(db_.Run(
        "INSERT INTO millrace_audit (at, actor, action, subject, detail) VALUES (?,?,?,?,?)", now_text_,
        name_, ToString(action), ToString(task.key), "was " + std::string(ToString(task.state))));
    return {};
  }

  static Result<bool> Changed(Result<std::int64_t> rows) {
    if (!rows) return Fail(rows.error());
    return *rows == 1;
  }

  SqliteConnection& db_;
  const TableName& table_;
  const std::string& name_;
  const WallTime now_;
  const std::string now_text_;
  CounterSums sums_;
};

}  // namespace

Result<std::vector<std::uint64_t>> ApplyAction(SqliteConnection& db, TaskAction action,
                                               const TableName& table, std::span<const std::uint64_t> ids,
                                               const std::string& actor) {
  Actor person(db, table, actor);
  std::vector<std::uint64_t> changed;
  for (const std::uint64_t id : ids) {
    BOOST_OUTCOME_TRY(done, person.Act(action, id));
    if (done) changed.push_back(id);
  }
  BOOST_OUTCOME_TRYV(person.WriteCounters());
  return changed;
}

}  // namespace millrace::engine
