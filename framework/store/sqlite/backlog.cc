#include <algorithm>
#include <map>

#include "framework/store/sql/operations.h"
#include "framework/store/sqlite/due_text.h"
#include "framework/store/sqlite/sessions.h"

namespace millrace::engine::sqlite {
namespace {

class SqliteTaskOperations final : public sql::SqlTaskOperations {
 public:
  explicit SqliteTaskOperations(File& file) : SqlTaskOperations(db_), db_(file) {}

  Result<std::vector<GroupBacklog>> Backlog(const TableName& table) override;

 private:
  Session db_;
};

Result<std::uint64_t> CountGroup(Session& db, const DueGroup& group, std::uint64_t limit) {
  auto rows = db.Select("SELECT count(*) FROM (SELECT 1 FROM " + group.table + " INDEXED BY " + group.table +
                            "_due WHERE slice=? AND handler=? AND urgency=? AND urgency IS NOT NULL LIMIT ?)",
                        group.slice, group.handler, group.urgency, limit);
  std::uint64_t count = 0;
  if (rows.Next()) count = rows.Id(0);
  if (rows.error()) return Fail(*rows.error());
  return count;
}

Result<std::vector<GroupBacklog>> SqliteTaskOperations::Backlog(const TableName& table) {
  return db_.Read([&]() -> Result<std::vector<GroupBacklog>> {
    std::vector<DueGroup> groups;
    BOOST_OUTCOME_TRYV(ReadDueGroups(db_, {{.table = table}}, groups));
    std::map<std::string, GroupBacklog> by_handler;
    for (const DueGroup& group : groups) {
      GroupBacklog& backlog =
          by_handler.try_emplace(group.handler, GroupBacklog{.table = table, .handler = group.handler})
              .first->second;
      backlog.oldest_due = std::min(backlog.oldest_due.value_or(group.first_run_at), group.first_run_at);
      if (backlog.more) continue;
      BOOST_OUTCOME_TRY(count, CountGroup(db_, group, kExactBacklog - backlog.waiting));
      backlog.waiting += count;
      backlog.more = backlog.waiting >= kExactBacklog;
    }
    std::vector<GroupBacklog> result;
    for (auto& [handler, backlog] : by_handler) result.push_back(std::move(backlog));
    return result;
  });
}

}  // namespace

std::unique_ptr<TaskOperations> OpenOperations(File& file) {
  return std::make_unique<SqliteTaskOperations>(file);
}

}  // namespace millrace::engine::sqlite
