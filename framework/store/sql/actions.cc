#include <algorithm>
#include <map>

#include "framework/store/sql/acts.h"
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
  std::string values;  // of what an edit sets, as they are
};

// Of the params the audit keeps the beginning.
constexpr std::size_t kParamsNoted = 500;
constexpr std::size_t kParamsNotedOfMany = 100;

constexpr const char* kShared =
    "id,slice,handler,priority,params,biz_key,batch,attempt,progress,created_at,last_error";

// Whoever has a task run again wants it to: what has expired, or might by its handler's configuration, does
// so no more. An expiry to come stays.
std::string ExpiryAgain() {
  return std::string("CASE WHEN expires_at>$now THEN expires_at ELSE '") + kNeverText + "' END";
}

// What an edit makes of a column with a time: the column itself, or what is set, whose value it keeps.
struct NewTime {
  NewTime(const char* column, const std::optional<WallTime>& at, const std::optional<Micros>& after)
      : is_set(at || after),
        text(at      ? "?"
             : after ? "$after(?)"
                     : column),
        time(at ? TimeText(*at) : ""),
        value(at || !after ? Value(time) : Value(static_cast<std::int64_t>(after->count()))) {}
  NewTime(const NewTime&) = delete;
  const bool is_set;
  const std::string text;
  const std::string time;
  const Value value;
};

// One action on the rows of one table, within one transaction.
class Action {
 public:
  // `edit` is that of TaskAction::Edit.
  Action(Connection& db, TaskAction action, const TableName& table, std::span<const std::uint64_t> ids,
         const Author& author, const TaskEdit& edit)
      : db_(db),
        action_(action),
        table_(table),
        ids_(List(Sorted(ids))),
        edit_(edit),
        many_(!author.act.empty()) {
    for (const TaskState state : StatesFor(action, edit)) {
      if (author.state && state != *author.state) continue;
      states_ += (states_.empty() ? "" : ",") + std::to_string(static_cast<int>(state));
    }
  }

  Status Do() {
    if (states_.empty()) return {};
    const bool only_switches = action_ == TaskAction::Hold || action_ == TaskAction::Release;
    if (action_ == TaskAction::Edit) return Edit();
    BOOST_OUTCOME_TRYV(only_switches ? Switch() : action_ == TaskAction::Retry ? Retry() : Cancel());
    return counts_.Write(db_, "");
  }
  // The tasks that were changed, and what they were.
  const std::map<std::uint64_t, TaskBefore>& changed() const { return changed_; }

 private:
  // The rows of the pool that it fits, and of which `further` holds.
  Result<std::vector<Locked>> Lock(const std::string& pool, const std::string& further = {},
                                   Connection::Values values = {});
  Status Switch();
  Status Retry();
  Status Cancel();
  Status Edit();
  Status EditIn(const std::string& pool);
  std::string EditedColumns() const;
  std::string ValuesOf(const Row& row) const;
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
      changed_[row.id] = {row.state, row.values};
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
  const TaskEdit& edit_;
  const bool many_;
  std::string states_;
  std::map<std::uint64_t, TaskBefore> changed_;
  CounterSums counts_;
};

Result<std::vector<Locked>> Action::Lock(const std::string& pool, const std::string& further,
                                         Connection::Values values) {
  std::vector<Locked> rows;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,state,handler,biz_key,batch" + EditedColumns() + " FROM " + table_ +
                                   pool + "$primary WHERE id IN (" + ids_ + ") AND state IN (" + states_ +
                                   ")" + further + " ORDER BY id$lock",
                               values, [&](const Row& row) {
                                 rows.push_back({row.Number(1), static_cast<TaskState>(row.Signed(2)),
                                                 row.Text(3), row.Text(4), row.Text(5), ValuesOf(row)});
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
    BOOST_OUTCOME_TRYV(SetFate(db_, KeysOf(still), KeyFate::Cancel));
  }
  BOOST_OUTCOME_TRY(failed, Lock("_failed"));
  if (failed.empty()) return {};
  BOOST_OUTCOME_TRYV(EndIn("_failed", failed));
  return SetFate(db_, KeysOf(failed), KeyFate::Keep);
}

// What the audit shows of a row before an edit, in the order of the edit's members.
std::string Action::EditedColumns() const {
  if (action_ != TaskAction::Edit) return "";
  return ",priority,run_at,expires_at" + std::string(edit_.params ? ",SUBSTR(params,1,500)" : "");
}

std::string Action::ValuesOf(const Row& row) const {
  if (action_ != TaskAction::Edit) return "";
  std::string text;
  const auto add = [&](const std::string& value) { text += (text.empty() ? "" : ", ") + value; };
  if (edit_.priority) add("priority " + row.Text(6));
  // Of many, each may be due at a time of its own: their day says enough.
  if (edit_.SetsDueTime()) add("due " + row.Text(7).substr(0, many_ ? 10 : std::string::npos));
  if (edit_.SetsExpiry()) {
    const std::string expires = row.Text(8);
    add(expires.empty() ? "without expiry" : "expires " + expires.substr(0, many_ ? 10 : std::string::npos));
  }
  if (edit_.params) add("params " + Shorten(row.Text(9), many_ ? kParamsNotedOfMany : kParamsNoted));
  return text;
}

Status Action::Edit() {
  BOOST_OUTCOME_TRYV(EditIn(""));
  if (!StateAfter(action_, TaskState::Failed, edit_)) return {};
  return EditIn("_failed");
}

Status Action::EditIn(const std::string& pool) {
  const NewTime due("run_at", edit_.run_at, edit_.delay);
  const NewTime expiry("expires_at", edit_.expires_at, edit_.expires_in);
  std::vector<Value> times;
  for (const NewTime* time : {&expiry, &due}) {
    if (time->is_set) times.push_back(time->value);
  }
  const bool guarded = due.is_set || expiry.is_set;
  // A row that would expire before it is due is left as it is.
  BOOST_OUTCOME_TRY(
      rows, Lock(pool, guarded ? " AND COALESCE(" + expiry.text + ">" + due.text + ",1)" : "", times));
  // One that has the priority already, and is given nothing else, is not changed.
  if (edit_.priority && !guarded && !edit_.params) {
    const std::string same = "priority " + std::to_string(*edit_.priority);
    std::erase_if(rows, [&](const Locked& row) { return row.values == same; });
  }
  if (rows.empty()) return {};
  std::string set;
  std::vector<Value> values;
  const auto add = [&](const std::string& text, Value value) {
    set += (set.empty() ? "" : ", ") + text;
    values.push_back(value);
  };
  if (edit_.priority) add("priority=?", *edit_.priority);
  if (due.is_set) add("run_at=" + due.text, due.value);
  if (expiry.is_set) add("expires_at=" + expiry.text, expiry.value);
  if (edit_.params) add("params=?", *edit_.params);
  // A waiting row's claim looks at the time of its last change: what was read before is not claimed.
  if (pool.empty()) set += ", updated_at=$now";
  BOOST_OUTCOME_TRYV(db_.Write(
      "UPDATE " + table_ + pool + "$primary SET " + set + In(rows) + " AND state IN (" + states_ + ")",
      Connection::Values(values)));
  return {};
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

// What an edit sets, for the audit.
std::string ChangeText(const TaskEdit& edit) {
  std::string text;
  const auto add = [&](const std::string& value) { text += (text.empty() ? "" : ", ") + value; };
  if (edit.priority) add("priority " + std::to_string(*edit.priority));
  if (edit.run_at) add("due " + TimeText(*edit.run_at));
  if (!edit.run_at && edit.delay) add("due " + std::to_string(edit.delay->count() / 1'000'000) + " s later");
  if (edit.expires_at) add("expires " + TimeText(*edit.expires_at));
  if (!edit.expires_at && edit.expires_in)
    add("expires " + std::to_string(edit.expires_in->count() / 1'000'000) + " s later");
  if (edit.params) add("params " + Shorten(*edit.params, kParamsNoted));
  return text;
}

Result<std::vector<ChangedTask>> Act(Connection& db, TaskAction action, const TaskEdit& edit,
                                     const TableName& table, std::span<const std::uint64_t> ids,
                                     const Author& author) {
  std::vector<ChangedTask> changed;
  if (action == TaskAction::Edit) {
    BOOST_OUTCOME_TRYV(Validate(edit));
  }
  if (ids.empty()) return changed;
  BOOST_OUTCOME_TRYV(CheckBatch(ids.size()));
  Transaction transaction(db);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  Action run(db, action, table, ids, author, edit);
  BOOST_OUTCOME_TRYV(run.Do());
  if (run.changed().empty()) return changed;
  for (const auto& [id, before] : run.changed()) changed.push_back({id, before.state});
  BOOST_OUTCOME_TRYV(NoteAct(db, author, action, table, run.changed(), ChangeText(edit)));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return changed;
}

}  // namespace

Result<std::vector<ChangedTask>> SqlTaskOperations::Apply(TaskAction action, const TableName& table,
                                                          std::span<const std::uint64_t> ids,
                                                          const Author& author) {
  return Act(db_, action, {}, table, ids, author);
}

Result<std::vector<ChangedTask>> SqlTaskOperations::Edit(const TaskEdit& edit, const TableName& table,
                                                         std::span<const std::uint64_t> ids,
                                                         const Author& author) {
  return Act(db_, TaskAction::Edit, edit, table, ids, author);
}

}  // namespace millrace::engine::sql
