#include "framework/store/sql/task_rows.h"

#include <algorithm>

namespace millrace::engine::sql {
namespace {

// Numbers beyond are taken for the nearest that fits.
std::uint32_t Count(const Row& row, unsigned column) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(row.Signed(column), 0, 0xFFFF'FFFF));
}

}  // namespace

std::string TaskColumns(bool hot) {
  return std::string(
             "id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,"
             "claimed_by,claimed_at,last_error,progress,created_at,") +
         (hot ? "cancel" : "0");
}

Task ReadTask(const TableName& table, const Row& row) {
  Task task;
  task.key = {table, row.Number(1)};
  task.slice = Count(row, 2);
  task.state = static_cast<TaskState>(row.Signed(3));
  task.handler = row.Text(4);
  task.priority = Count(row, 5);
  task.run_at = row.Time(6).value_or(WallTime{});
  task.params = row.Text(7);
  task.biz_key = row.Text(8);
  task.batch = row.Text(9);
  task.failures = Count(row, 10);
  task.attempt = Count(row, 11);
  task.crashes = Count(row, 12);
  task.claimed_by = row.Text(13);
  task.claimed_at = row.Time(14);
  task.last_error = row.Text(15);
  task.progress = row.Text(16);
  task.created_at = row.Time(17).value_or(WallTime{});
  task.cancel = row.Number(18) != 0;
  return task;
}

}  // namespace millrace::engine::sql
