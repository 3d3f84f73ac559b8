#include "framework/store/sql/overview.h"

#include <algorithm>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/group_plan.h"
#include "framework/store/mysql/sessions.h"

namespace millrace::engine::mysql {
namespace {

class MysqlOverviewStore final : public sql::SqlOverviewStore {
 public:
  MysqlOverviewStore(const Endpoint& endpoint, ConnectionPool& pool)
      : SqlOverviewStore(session_), session_(endpoint, endpoint.options.lease, &pool) {}

 private:
  Status ReadGroups(std::span<const TableName> tables, sql::TableGroups& groups) override;

  Session session_;
  GroupPlan plan_;
};

// A full table has many groups: with 64 in each these are some 20 ms.
constexpr std::size_t kTablesTogether = 32;
// What one table may cost without being suspected; see due.cc.
constexpr Micros kForATable = std::chrono::milliseconds(1);

// Held rows stand in the index too, under no urgency.
Status MysqlOverviewStore::ReadGroups(std::span<const TableName> tables, sql::TableGroups& groups) {
  for (std::size_t from = 0; from < tables.size(); from += kTablesTogether) {
    const auto part = tables.subspan(from, std::min(kTablesTogether, tables.size() - from));
    std::string sql;
    for (std::size_t i = 0; i < part.size(); ++i)
      sql += (i == 0 ? "(" : " UNION ALL (") + GroupsText(part[i], i) + ")";
    std::vector<std::map<std::string, sql::HandlerGroups*>> known(part.size());
    const BootTime start = BootClock::now();
    BOOST_OUTCOME_TRYV(session_.Query(sql, [&](const Row& row) {
      const auto i = static_cast<std::size_t>(row.Number(1));
      const std::string handler = row.Text(3);
      sql::HandlerGroups*& found = known[i][handler];
      if (found == nullptr) found = &groups[{part[i], handler}];
      const auto slice = static_cast<std::uint32_t>(row.Number(2));
      if (row.Null(4)) {
        found->held_in.insert(slice);
      } else {
        found->due.push_back({part[i], slice, handler, static_cast<std::uint32_t>(row.Number(4)),
                              row.Time(5).value_or(WallTime{})});
      }
    }));
    const Micros beyond = BootClock::now() - start - kForATable * static_cast<int>(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!known[i].empty()) plan_.Mend(session_, part[i], beyond);
    }
  }
  return {};
}

}  // namespace

std::string GroupsText(const TableName& table, std::size_t place) {
  return "SELECT " + std::to_string(place) + ",slice,handler,urgency,MIN(run_at) FROM " + table +
         " FORCE INDEX (due) GROUP BY slice,handler,urgency";
}

std::unique_ptr<OverviewStore> OpenOverview(const Endpoint& endpoint, ConnectionPool& pool) {
  return std::make_unique<MysqlOverviewStore>(endpoint, pool);
}

}  // namespace millrace::engine::mysql
