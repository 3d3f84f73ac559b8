#include "framework/store/sql/overview.h"

#include "framework/store/sqlite/due_text.h"
#include "framework/store/sqlite/sessions.h"

namespace millrace::engine::sqlite {
namespace {

class SqliteOverviewStore final : public sql::SqlOverviewStore {
 public:
  explicit SqliteOverviewStore(File& file) : SqlOverviewStore(db_), db_(file) {}

 private:
  Status ReadGroups(std::span<const TableName> tables, sql::TableGroups& groups) override;

  Session db_;
};

// Held rows stand in an index of their own, which does not name their handlers.
Status SqliteOverviewStore::ReadGroups(std::span<const TableName> tables, sql::TableGroups& groups) {
  return db_.Read([&]() -> Status {
    for (const TableName& table : tables) {
      std::vector<DueGroup> due;
      BOOST_OUTCOME_TRYV(ReadDueGroups(db_, {{.table = table}}, due));
      for (DueGroup& group : due) groups[{table, group.handler}].due.push_back(group);
      std::uint64_t all = 0;
      std::set<std::string> held;
      auto rows = db_.Select("SELECT handler, count(*) FROM (SELECT handler FROM " + table + " INDEXED BY " +
                                 table + "_held WHERE urgency IS NULL LIMIT ?) GROUP BY handler",
                             kExactBacklog);
      while (rows.Next()) {
        held.insert(rows.Text(0));
        groups[{table, rows.Text(0)}].held = {rows.Id(1), false};
        all += rows.Id(1);
      }
      if (rows.error()) return Fail(*rows.error());
      for (const std::string& handler : held) groups[{table, handler}].held.more = all >= kExactBacklog;
    }
    return {};
  });
}

}  // namespace

std::unique_ptr<OverviewStore> OpenOverview(File& file) {
  return std::make_unique<SqliteOverviewStore>(file);
}

}  // namespace millrace::engine::sqlite
