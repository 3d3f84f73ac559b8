#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {
namespace {

// The database's word for a refused row says which constraint it was; people know the rule by another name.
Error Explain(Error error, std::size_t place, std::size_t count) {
  if (error.message.find("json_valid") != std::string::npos) error.message = "the params are not valid JSON";
  if (count > 1) error.message = "task " + std::to_string(place) + " of those that are new: " + error.message;
  return error;
}

}  // namespace

Result<std::vector<std::uint64_t>> Session::Add(const TableName& table,
                                                std::span<const NewTask* const> tasks) {
  const WallTime now = Now();
  const std::string now_text = TimeText(now);
  const std::string sql =
      "INSERT INTO " + table +
      " (handler, params, biz_key, batch, priority, run_at, state, created_at, updated_at)"
      " VALUES (?,?,?,?,?,?,?,?,?)";
  std::vector<std::uint64_t> ids;
  for (const NewTask* task : tasks) {
    const std::string due = TimeText(task->run_at ? *task->run_at : now + task->delay.value_or(Micros(0)));
    auto added = Run(sql, task->handler, task->params, sql::Value::OrNull(task->biz_key),
                     sql::Value::OrNull(task->batch), task->priority.value_or(5), due, task->held ? 3 : 0,
                     now_text, now_text);
    if (!added) return Fail(Explain(added.error(), ids.size() + 1, tasks.size()));
    ids.push_back(LastId());
  }
  return ids;
}

}  // namespace millrace::engine::sqlite
