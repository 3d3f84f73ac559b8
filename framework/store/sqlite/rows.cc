#include "framework/store/sqlite/rows.h"

namespace millrace::engine::sqlite {
namespace {

int NumberAt(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  for (std::size_t i = at; i < at + digits && i < text.size(); ++i) value = value * 10 + (text[i] - '0');
  return value;
}

}  // namespace

WallTime TimeOf(std::string_view text) {
  const std::chrono::year_month_day date{std::chrono::year(NumberAt(text, 0, 4)),
                                         std::chrono::month(static_cast<unsigned>(NumberAt(text, 5, 2))),
                                         std::chrono::day(static_cast<unsigned>(NumberAt(text, 8, 2)))};
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(NumberAt(text, 11, 2)) +
         std::chrono::minutes(NumberAt(text, 14, 2)) + std::chrono::seconds(NumberAt(text, 17, 2)) +
         Micros(NumberAt(text, 20, 6));
}

std::optional<WallTime> TimeOrNone(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return TimeOf(text);
}

WallTime StoreNow() { return SystemClock().WallNow(); }

Task ReadTask(const Rows& row, const TableName& table) {
  Task task;
  task.key = {table, row.Id(0)};
  task.slice = row.Number(1);
  task.state = static_cast<TaskState>(row.Integer(2));
  task.handler = row.Text(3);
  task.priority = row.Number(4);
  task.run_at = TimeOf(row.Text(5));
  task.params = row.Text(6);
  task.biz_key = row.Text(7);
  task.batch = row.Text(8);
  task.failures = row.Number(9);
  task.attempt = row.Number(10);
  task.crashes = row.Number(11);
  task.cancel = row.Integer(12) != 0;
  task.claimed_by = row.Text(13);
  task.claimed_at = TimeOrNone(row.Text(14));
  task.last_error = row.Text(15);
  task.progress = row.Text(16);
  task.created_at = TimeOf(row.Text(17));
  return task;
}

}  // namespace millrace::engine::sqlite
