#include <nlohmann/json.hpp>

#include "framework/base/utf8.h"
#include "framework/testing/memory_changes.h"

namespace millrace::engine {
namespace {

Status Check(const NewTask& task) {
  BOOST_OUTCOME_TRYV(Validate(task));
  if (!IsUtf8(task.params) || !IsUtf8(task.biz_key) || !IsUtf8(task.batch)) {
    return Fail(ErrorCode::Invalid, "the params, key and batch of a task must be UTF-8");
  }
  if (!nlohmann::json::accept(task.params)) return Fail(ErrorCode::Invalid, "the params are not valid JSON");
  return {};
}

Task RowOf(const NewTask& task, std::uint32_t slice, WallTime now) {
  Task row;
  row.slice = slice;
  row.state = task.held ? TaskState::Held : TaskState::Waiting;
  row.handler = task.handler;
  row.params = task.params;
  row.biz_key = task.biz_key;
  row.batch = task.batch;
  row.priority = task.priority.value_or(5);
  constexpr WallTime kLast = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31);
  row.run_at = std::min(kLast, task.run_at.value_or(now + task.delay.value_or(Micros(0))));
  row.created_at = now;
  return row;
}

}  // namespace

Result<SubmitReport> SubmitTo(MemoryState& state, const TableName& table, std::span<const NewTask> tasks,
                              WallTime now) {
  BOOST_OUTCOME_TRY(into, state.Table(table));
  if (tasks.size() > kMaxBatchRows)
    return Fail(ErrorCode::Invalid, "more than 999 tasks were submitted at once");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Status valid = Check(tasks[i]);
    if (valid) continue;
    const std::string which = tasks.size() > 1 ? "task " + std::to_string(i + 1) + " of the batch: " : "";
    return Fail(valid.error().code, which + valid.error().message);
  }
  SubmitReport report;
  report.ids.resize(tasks.size(), 0);
  report.duplicates.resize(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const NewTask& task = tasks[i];
    if (!task.biz_key.empty()) report.duplicates[i] = state.KeyHolder(task.handler, task.biz_key, now);
    if (!report.duplicates[i].empty()) continue;
    const auto slice = static_cast<std::uint32_t>(state.random.Below(into->slices));
    BOOST_OUTCOME_TRY(id, state.Insert(table, RowOf(task, slice, now)));
    report.ids[i] = id;
    ++report.added;
    if (!task.biz_key.empty()) state.TakeKey(task.handler, task.biz_key, {table, id}, now);
  }
  return report;
}

}  // namespace millrace::engine
