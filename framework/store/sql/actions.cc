#include <algorithm>
#include <map>

#include "framework/store/sql/counters.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/text.h"
#include "framework/task/expiry.h"

namespace millrace::engine::sql {
namespace {

struct Locked {
  std::uint64_t id = 0;
  TaskState state = TaskState::Waiting;
  std::string handler;
  std::string biz_key;
  std::string batch;
};

constexpr const char* kShared =
    "id,slice,handler,priority,params,biz_key,batch,attempt,progress,created_at,last_error";

// Whoever has a task run again wants it to: what has expired, or might by its handler's configuration, does
// so no more. An expiry to come stays.
std::string ExpiryAgain() {
  return std::string("CASE WHEN expires_at>$now THEN expires_at ELSE '") + kNeverText + "' END";
}

// One action on the rows of one table, within one transaction.
class Action {
 public:
  Action(Connection& db, TaskAction action, const TableName& table, std::span<const std::uint64_t> ids)
      : db_(db), action_(action), table_(table), ids_(List(Sorted(ids))) {
    for (const TaskState state : StatesFor(action))
      states_ += (states_.empty() ? "" : ",") + std::to_string(static_cast<int>(state));
  }

  Status Do() {
    const bool only_switches = action_ == TaskAction::Hold || action_ == TaskAction::Release;
    BOOST_OUTCOME_TRYV(only_switches ? Switch() : action_ == TaskAction::Retry ? Retry() : Cancel());
    return counts_.Write(db_, "");
  }
  // The tasks that were changed, and what they were.
  const std::map<std::uint64_t, TaskState>& changed() const { return changed_; }

 private:
  // The rows of the pool that it fits.
  Result<std::vector<Locked>> Lock(const std::string& pool);
  Status Switch();
  Status Retry();
  Status Cancel();
  Status EndIn(const std::string& pool, const std::vector<Locked>& rows);
  KeyEntries KeysOf(const std::vector<Locked>& rows) const;
  Status Run(const std::string& text) {
    BOOST_OUTCOME_TRYV(db_.Write(text));
    return {};
  }
  std::string In(const std::vector<Locked>& rows) {
    std::vector<std::uint64_t> ids;
    for (const Locked& row : rows) {
      ids.push_back(row.id);
      changed_[row.id] = row.state;
    }
    return " WHERE id IN (" + List(ids) + ")";
  }
  Status Set(const std::vector<Locked>& rows, const std::string& values) {
    return Run("UPDATE " + table_ + "$primary SET " + values + ", updated_at=$now" + In(rows));
  }

  Connection& db_;
  const TaskAction action_;
  const TableName& table_;
  const std::string ids_;
  std::string states_;
  std::map<std::uint64_t, TaskState> changed_;
  CounterSums counts_;
};

Result<std::vector<Locked>> Action::Lock(const std::string& pool) {
  std::vector<Locked> rows;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,state,handler,biz_key,batch FROM " + table_ + pool +
                                   "$primary WHERE id IN (" + ids_ + ") AND state IN (" + states_ +
                                   ") ORDER BY id$lock",
                               {}, [&](const Row& row) {
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

// One that is due already keeps its place in the order.
Status Action::Retry() {
  BOOST_OUTCOME_TRY(waiting, Lock(""));
  if (!waiting.empty()) {
    BOOST_OUTCOME_TRYV(Set(waiting,
                           "run_at=CASE WHEN run_at>$now THEN $now ELSE run_at END, failures=0, crashes=0, "
                           "cancel=0, expires_at=" +
                               ExpiryAgain()));
  }
  BOOST_OUTCOME_TRY(rows, Lock("_failed"));
  if (rows.empty()) return {};
  const std::string in = In(rows);
  BOOST_OUTCOME_TRYV(Run("INSERT INTO " + table_ + " (" + kShared +
                         ",state,run_at,failures,crashes,expires_at) SELECT " + kShared + ",0,$now,0,0," +
                         ExpiryAgain() + " FROM " + table_ + "_failed$primary" + in));
  BOOST_OUTCOME_TRYV(Run("$remove(" + table_ + "_failed)" + in));
  for (const Locked& row : rows) counts_.Of(table_, row.handler, row.batch).failed -= 1;
  return SetFate(db_, KeysOf(rows), KeyFate::Reopen);
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
    BOOST_OUTCOME_TRYV(EndIn("", still));
    BOOST_OUTCOME_TRYV(SetFate(db_, KeysOf(still), KeyFate::KeepStarted));
    BOOST_OUTCOME_TRYV(SetFate(db_, KeysOf(still), KeyFate::FreeUnstarted));
  }
  BOOST_OUTCOME_TRY(failed, Lock("_failed"));
  if (failed.empty()) return {};
  BOOST_OUTCOME_TRYV(EndIn("_failed", failed));
  return SetFate(db_, KeysOf(failed), KeyFate::Keep);
}

// Moves the rows from this pool to the finished one.
Status Action::EndIn(const std::string& pool, const std::vector<Locked>& rows) {
  const std::string in = In(rows);
  // A row that waits or is held is nobody's.
  const std::string kept = std::string(kShared) + ",run_at,failures,crashes,expires_at" +
                           (pool.empty() ? "" : ",claimed_by,claimed_at");
  BOOST_OUTCOME_TRYV(Run("INSERT INTO " + table_ + "_done (" + kept + ",state,result,finished_at) SELECT " +
                         kept + ",4,'',$now FROM " + table_ + pool + "$primary" + in));
  for (const Locked& row : rows) {
    CounterDelta& delta = counts_.Of(table_, row.handler, row.batch);
    delta.cancelled += 1;
    delta.failed -= row.state == TaskState::Failed;
  }
  return Run("$remove(" + table_ + pool + ")" + in);
}

KeyEntries Action::KeysOf(const std::vector<Locked>& rows) const {
  KeyEntries entries;
  for (const Locked& row : rows) {
    if (!row.biz_key.empty()) entries.push_back({row.handler, row.biz_key, {table_, row.id}});
  }
  return entries;
}

}  // namespace

Result<std::vector<std::uint64_t>> SqlTaskOperations::Apply(TaskAction action, const TableName& table,
                                                            std::span<const std::uint64_t> ids,
                                                            const std::string& actor) {
  std::vector<std::uint64_t> changed;
  if (ids.empty()) return changed;
  BOOST_OUTCOME_TRYV(CheckBatch(ids.size()));
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  Action run(db_, action, table, ids);
  BOOST_OUTCOME_TRYV(run.Do());
  if (run.changed().empty()) return changed;
  const std::string who = ActorText(actor);
  std::vector<std::string> subjects;
  std::vector<std::string> details;
  for (const auto& [id, before] : run.changed()) {
    changed.push_back(id);
    subjects.push_back(ToString(TaskKey{table, id}));
    details.push_back(std::string("was ") + ToString(before));
  }
  std::vector<Value> values;
  for (std::size_t i = 0; i < changed.size(); ++i)
    values.insert(values.end(), {who, ToString(action), subjects[i], details[i]});
  BOOST_OUTCOME_TRYV(db_.Write("INSERT INTO millrace_audit (at,actor,action,subject,detail) VALUES " +
                                   Repeat("($now,?,?,?,?)", changed.size()),
                               Connection::Values(values)));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return changed;
}

}  // namespace millrace::engine::sql
