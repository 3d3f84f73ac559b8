#include "framework/store/sqlite/submit.h"

#include "framework/store/sqlite/key_ledger.h"
#include "framework/store/sqlite/rows.h"

namespace millrace::engine {
namespace {

Status CheckTask(const NewTask& task) {
  BOOST_OUTCOME_TRYV(Validate(task));
  if (IsUtf8(task.params) && IsUtf8(task.biz_key) && IsUtf8(task.batch)) return {};
  return Fail(ErrorCode::Invalid, "the params, key and batch of a task must be UTF-8");
}

// The database's word for a refused row says which constraint it was; people know the rule by another name.
Error Explain(Error error) {
  if (error.message.find("json_valid") != std::string::npos) error.message = "the params are not valid JSON";
  return error;
}

Result<std::uint64_t> InsertOne(SqliteConnection& db, const TableName& table, const NewTask& task,
                                WallTime now) {
  const std::string due = TimeText(task.run_at ? *task.run_at : now + task.delay.value_or(Micros(0)));
  auto added =
      db.Run("INSERT INTO " + table +
                 " (handler, params, biz_key, batch, priority, run_at, state, created_at, updated_at)"
                 " VALUES (?,?,?,?,?,?,?,?,?)",
             task.handler, task.params, SqlBind::OrNull(task.biz_key), SqlBind::OrNull(task.batch),
             task.priority.value_or(5), due, task.held ? 3 : 0, TimeText(now), TimeText(now));
  if (!added) return Fail(Explain(added.error()));
  return db.LastId();
}

}  // namespace

Result<SubmitReport> SubmitBatch(SqliteConnection& db, const TableName& table,
                                 std::span<const NewTask> tasks) {
  const WallTime now = StoreNow();
  const std::string now_text = TimeText(now);
  SubmitReport report;
  report.ids.resize(tasks.size(), 0);
  report.duplicates.resize(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const NewTask& task = tasks[i];
    const auto in_batch = [&](Error error) {
      if (tasks.size() > 1)
        error.message = "task " + std::to_string(i + 1) + " of the batch: " + error.message;
      return Fail(std::move(error));
    };
    if (Status valid = CheckTask(task); !valid) return in_batch(valid.error());
    if (!task.biz_key.empty()) {
      auto holder = KeyHolder(db, task.handler, task.biz_key, now_text);
      if (!holder) return in_batch(holder.error());
      report.duplicates[i] = *holder;
      if (!holder->empty()) continue;
    }
    auto id = InsertOne(db, table, task, now);
    if (!id) return in_batch(id.error());
    report.ids[i] = *id;
    ++report.added;
    if (task.biz_key.empty()) continue;
    auto taken = TakeKey(db, task.handler, task.biz_key, {table, *id}, now_text);
    if (!taken) return in_batch(taken.error());
  }
  return report;
}

}  // namespace millrace::engine
