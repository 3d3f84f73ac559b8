#include <utility>

#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// What a row was read as: a condition, and its values.
constexpr char kAsSeen[] =
    " WHERE name=? AND next_at $same ? AND last_at $same ? AND rhythm=? AND (paused<>0)=? AND config=? AND "
    "moved_to=?";

// A time or NULL; the text stands beside it while its statement runs.
struct TimeValue {
  explicit TimeValue(const std::optional<WallTime>& time) : text(time ? TimeText(*time) : "") {}
  explicit TimeValue(std::string as_it_stands) : text(std::move(as_it_stands)) {}
  operator Value() const { return Value::OrNull(text); }  // NOLINT
  const std::string text;
};

ScheduleRow ReadRow(const Row& row) {
  ScheduleRow read;
  read.name = row.Text(2);
  read.state.rhythm = row.Text(3);
  read.state.anchor = row.Time(4).value_or(WallTime());
  read.state.next = row.Time(5);
  read.state.last = row.Time(6);
  read.state.paused = row.Number(7) != 0;
  read.config = row.Number(8);
  if (const auto table = ParseTableName(row.Text(9))) read.task = TaskKey{*table, row.Number(10)};
  read.fired = row.Number(11);
  read.lapsed = row.Number(12);
  read.moved_to = row.Text(13);
  return read;
}

class SqlScheduleStore final : public ScheduleStore {
 public:
  explicit SqlScheduleStore(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), db_(*connection_) {}

  Result<ScheduleRows> Rows() override;
  Result<LastTask> Last(const ScheduleRow& row) override;
  Result<bool> Make(const ScheduleRow& row) override;
  Result<ScheduleStepped> Step(const ScheduleRow& seen, const ScheduleStep& step) override;
  Status NoteLapsed(const std::string& name, const std::vector<Lapse>& told) override;
  Result<bool> Move(const ScheduleRow& seen, const std::string& to, std::uint64_t config) override;
  Result<bool> Remove(const ScheduleRow& seen) override;
  Result<TaskKey> RunNow(const std::string& name, const ScheduledFiring& firing,
                         const std::string& actor) override;

 private:
  Status ReadEnd(const TaskKey& task, LastTask& last);
  Result<bool> WriteAsSeen(const std::string& text, std::initializer_list<Value> values,
                           const ScheduleRow& seen);
  Status Insert(const std::string& name, const ScheduledFiring& firing, ScheduleStepped& stepped);
  Status InsertTask(const TableName& table, const NewTask& task, ScheduleStepped& stepped);

  const std::unique_ptr<Connection> connection_;
  Connection& db_;
};

// The clock is read with the rows; a shard without any tells it, too.
Result<ScheduleRows> SqlScheduleStore::Rows() {
  ScheduleRows read;
  const Status answered = db_.Query(
      "SELECT $now,name,rhythm,anchor,next_at,last_at,paused,config,task_table,task_id,fired,lapsed,moved_to "
      "FROM (SELECT 1 AS one) AS clock LEFT JOIN millrace_schedules ON name<>'' ORDER BY name",
      {}, [&](const Row& row) {
        read.now = row.Time(1).value_or(WallTime());
        if (!row.Null(2)) read.rows.push_back(ReadRow(row));
      });
  if (answered) return read;
  if (db_.refusal() != Refusal::NoTable) return Fail(answered.error());
  return Fail(ErrorCode::NotFound,
              db_.where() + ": its schema has no schedules yet: run millrace schema upgrade");
}

Result<LastTask> SqlScheduleStore::Last(const ScheduleRow& row) {
  LastTask last;
  BOOST_OUTCOME_TRY(fanning_out, IsFanningOut(db_, row.name));
  last.in_work = fanning_out;
  if (last.in_work || !row.task) return last;
  const Status read = ReadEnd(*row.task, last);
  if (read) return last;
  // Whose table was dropped is as one that was pruned.
  if (db_.refusal() == Refusal::NoTable) return LastTask();
  return Fail(read.error());
}

Status SqlScheduleStore::ReadEnd(const TaskKey& task, LastTask& last) {
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id FROM " + task.table + "$primary WHERE id=?", {task.id},
                               [&](const Row&) { last.in_work = true; }));
  for (const char* pool : {"_done", "_failed"}) {
    if (last.in_work || last.ended) break;
    BOOST_OUTCOME_TRYV(db_.Query("SELECT finished_at FROM " + task.table + pool + "$primary WHERE id=?",
                                 {task.id}, [&](const Row& ended) { last.ended = ended.Time(1); }));
  }
  return {};
}

Result<bool> SqlScheduleStore::Make(const ScheduleRow& row) {
  const TimeValue anchor(row.state.anchor);
  const TimeValue next(row.state.next);
  const TimeValue last(row.state.last);
  BOOST_OUTCOME_TRY(
      made,
      db_.Write("$enter INTO millrace_schedules (name,rhythm,anchor,next_at,last_at,paused,config,task_table,"
                "task_id,fired,lapsed,moved_to) VALUES (?,?,?,?,?,?,?,?,?,?,?,'')",
                {row.name, row.state.rhythm, anchor, next, last, row.state.paused ? 1 : 0, row.config,
                 row.task ? row.task->table.text() : std::string_view(), row.task ? row.task->id : 0,
                 row.fired, row.lapsed}));
  return made == 1;
}

// `text` up to its condition. An UPDATE by it changes something, so that no database counts it for nothing.
// SQLite keeps a time as a person wrote it, in whatever form: of one that reads as it was seen the row's own
// text is taken.
Result<bool> SqlScheduleStore::WriteAsSeen(const std::string& text, std::initializer_list<Value> values,
                                           const ScheduleRow& seen) {
  const auto write = [&](const TimeValue& next, const TimeValue& last) -> Result<bool> {
    std::vector<Value> all(values);
    all.insert(all.end(), {seen.name, next, last, seen.state.rhythm, seen.state.paused ? 1 : 0, seen.config,
                           seen.moved_to});
    BOOST_OUTCOME_TRY(rows, db_.Write(text + kAsSeen, Connection::Values(all)));
    return rows == 1;
  };
  const TimeValue next(seen.state.next);
  const TimeValue last(seen.state.last);
  BOOST_OUTCOME_TRY(written, write(next, last));
  if (written) return true;
  std::string own_next = next.text;
  std::string own_last = last.text;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT next_at,last_at FROM millrace_schedules WHERE name=?", {seen.name},
                               [&](const Row& row) {
                                 if (row.Time(1) == seen.state.next) own_next = row.Text(1);
                                 if (row.Time(2) == seen.state.last) own_last = row.Text(2);
                               }));
  if (own_next == next.text && own_last == last.text) return false;
  return write(TimeValue(std::move(own_next)), TimeValue(std::move(own_last)));
}

Result<ScheduleStepped> SqlScheduleStore::Step(const ScheduleRow& seen, const ScheduleStep& step) {
  ScheduleStepped stepped;
  const TimeValue anchor(step.to.anchor);
  const TimeValue next(step.to.next);
  const TimeValue last(step.to.last);
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(
      moved,
      WriteAsSeen("UPDATE millrace_schedules SET rhythm=?,anchor=?,next_at=?,last_at=?,paused=?,config=?,"
                  "fired=fired+?,lapsed=lapsed+?",
                  {step.to.rhythm, anchor, next, last, step.to.paused ? 1 : 0, step.config,
                   step.firing ? 1 : 0, std::uint64_t{step.lapsed}},
                  seen));
  if (!moved) return stepped;
  if (step.firing) {
    BOOST_OUTCOME_TRYV(Insert(seen.name, *step.firing, stepped));
  }
  BOOST_OUTCOME_TRYV(NoteLapsed(seen.name, step.told));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  stepped.moved = true;
  return stepped;
}

Status SqlScheduleStore::NoteLapsed(const std::string& name, const std::vector<Lapse>& told) {
  std::vector<EventSubject> events;
  for (const Lapse& lapse : told) events.push_back({name, std::to_string(lapse.firings) + ": " + lapse.why});
  return NoteEvents(db_, kScheduleLapsed, "", events);
}

Status SqlScheduleStore::Insert(const std::string& name, const ScheduledFiring& firing,
                                ScheduleStepped& stepped) {
  if (const auto* fan_out = std::get_if<FanOut>(&firing.work)) {
    BOOST_OUTCOME_TRYV(EnterFanOut(db_, *fan_out));
    BOOST_OUTCOME_TRYV(
        db_.Write("UPDATE millrace_schedules SET task_table='',task_id=0 WHERE name=?", {name}));
    return {};
  }
  BOOST_OUTCOME_TRYV(InsertTask(firing.table, std::get<NewTask>(firing.work), stepped));
  if (!stepped.task) return {};
  BOOST_OUTCOME_TRYV(db_.Write("UPDATE millrace_schedules SET task_table=?,task_id=? WHERE name=?",
                               {stepped.task->table, stepped.task->id, name}));
  return {};
}

Status SqlScheduleStore::InsertTask(const TableName& table, const NewTask& task, ScheduleStepped& stepped) {
  BOOST_OUTCOME_TRY(report, Submit(db_, table, std::span(&task, 1)));
  stepped.taken = report.added == 0;
  if (!stepped.taken) {
    stepped.task = TaskKey{table, report.ids.at(0)};
  } else if (const auto holder = ParseTaskName(report.duplicates.at(0), {.shard = "here", .key = {table}})) {
    stepped.task = holder->key;
  }
  return {};
}

Result<bool> SqlScheduleStore::Move(const ScheduleRow& seen, const std::string& to, std::uint64_t config) {
  return WriteAsSeen("UPDATE millrace_schedules SET moved_to=?,config=?", {to, config}, seen);
}

Result<bool> SqlScheduleStore::Remove(const ScheduleRow& seen) {
  return WriteAsSeen("DELETE FROM millrace_schedules", {}, seen);
}

Result<TaskKey> SqlScheduleStore::RunNow(const std::string& name, const ScheduledFiring& firing,
                                         const std::string& actor) {
  ScheduleStepped stepped;
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRYV(Insert(name, firing, stepped));
  if (std::holds_alternative<FanOut>(firing.work)) stepped.task = TaskKey{firing.table, 0};
  if (!stepped.task) {
    return Fail(ErrorCode::Conflict, db_.where() + ": the key of the task to run now is held already");
  }
  BOOST_OUTCOME_TRYV(NoteEvents(db_, kScheduleRun, ActorText(actor),
                                {{name, stepped.task->id == 0 ? "fan-out" : ToString(*stepped.task)}}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return *stepped.task;
}

}  // namespace

std::unique_ptr<ScheduleStore> OpenSchedules(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlScheduleStore>(std::move(connection));
}

}  // namespace millrace::engine::sql
