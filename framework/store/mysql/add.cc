#include "framework/store/mysql/session.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// Rows of one INSERT; with params at their limit the text stays below the smallest usual max_allowed_packet.
constexpr std::size_t kTextLimit = 2 * 1024 * 1024;

std::string DueAt(const NewTask& task) {
  if (task.run_at) return TimeLiteral(*task.run_at);
  return task.delay ? After(*task.delay) : "UTC_TIMESTAMP(6)";
}

std::string RowText(const NewTask& task) {
  return "(" + Quote(task.handler) + "," + Quote(task.params) + "," + QuoteOrNull(task.biz_key) + "," +
         QuoteOrNull(task.batch) + "," + std::to_string(task.priority.value_or(5)) + "," + DueAt(task) + "," +
         (task.held ? "3" : "0") + ",UTC_TIMESTAMP(6))";
}

}  // namespace

Result<std::vector<std::uint64_t>> Session::Add(const TableName& table,
                                                std::span<const NewTask* const> tasks) {
  std::vector<std::uint64_t> ids;
  std::string rows;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    rows += (rows.empty() ? "" : ",") + RowText(*tasks[k]);
    if (rows.size() < kTextLimit && k + 1 < tasks.size()) continue;
    BOOST_OUTCOME_TRYV(AddPart(table, tasks.subspan(ids.size(), k + 1 - ids.size()), rows, ids));
    rows.clear();
  }
  return ids;
}

// One INSERT gives its rows ids that rise, but servers may be told to leave gaps, so the ids are read back:
// the rows from the first id on that were made in the same microsecond and have these very contents, in
// order.
Status Session::AddPart(const TableName& table, std::span<const NewTask* const> tasks,
                        const std::string& rows, std::vector<std::uint64_t>& ids) {
  BOOST_OUTCOME_TRYV(Write("INSERT INTO " + table +
                           " (handler,params,biz_key,batch,priority,run_at,state,created_at) VALUES " +
                           rows));
  const std::string first = std::to_string(last_insert_id());
  std::size_t k = 0;
  BOOST_OUTCOME_TRYV(
      Query("SELECT id,handler,biz_key,params FROM " + table + " FORCE INDEX (PRIMARY) WHERE id>=" + first +
                " AND created_at=(SELECT created_at FROM " + table + " WHERE id=" + first +
                ") ORDER BY id LIMIT " + std::to_string(2 * tasks.size()),
            [&](const Row& row) {
              if (k == tasks.size()) return;
              const NewTask& task = *tasks[k];
              if (row.Text(2) != task.handler || row.Text(3) != task.biz_key || row.Text(4) != task.params)
                return;
              ids.push_back(row.Number(1));
              ++k;
            }));
  if (k == tasks.size()) return {};
  return Fail(ErrorCode::Internal, where_ + ": the ids of new tasks can't be read back; nothing was added");
}

}  // namespace millrace::engine::mysql
