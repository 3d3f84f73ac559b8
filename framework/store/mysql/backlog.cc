#include <algorithm>
#include <boost/algorithm/string/join.hpp>
#include <map>
#include <set>

#include "framework/store/mysql/group_plan.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/sql/operations.h"

namespace millrace::engine::mysql {
namespace {

class MysqlTaskOperations final : public sql::SqlTaskOperations {
 public:
  MysqlTaskOperations(const Endpoint& endpoint, ConnectionPool& pool)
      : SqlTaskOperations(session_), session_(endpoint, endpoint.options.lease, &pool) {}

  Result<std::vector<GroupBacklog>> Backlog(const TableName& table) override;

 private:
  Session session_;
  GroupPlan plan_;
};

// What the index's skips tell of one handler.
struct HandlerGroups {
  GroupBacklog backlog;
  std::set<std::string> slices;
  std::set<std::string> urgencies;
};

// As many ranges as the servers' optimizers still plan as such.
constexpr std::size_t kRanges = 1000;

// Counts by ranges of the index, which hold this handler's rows alone, until there are enough.
Status CountWaiting(Session& session, const HandlerGroups& groups, GroupBacklog& backlog) {
  const std::string urgencies = boost::algorithm::join(groups.urgencies, ",");
  const std::size_t step = std::max<std::size_t>(1, kRanges / groups.urgencies.size());
  for (auto from = groups.slices.begin(); from != groups.slices.end() && backlog.waiting < kExactBacklog;) {
    auto to = from;
    for (std::size_t i = 0; i < step && to != groups.slices.end(); ++i) ++to;
    BOOST_OUTCOME_TRYV(session.Query(
        "SELECT COUNT(*) FROM (SELECT 1 FROM " + backlog.table + " FORCE INDEX (due) WHERE slice IN (" +
            boost::algorithm::join(boost::make_iterator_range(from, to), ",") +
            ") AND handler=" + Quote(backlog.handler) + " AND urgency IN (" + urgencies + ") LIMIT " +
            std::to_string(kExactBacklog - backlog.waiting) + ") AS counted",
        [&](const Row& row) { backlog.waiting += row.Number(1); }));
    from = to;
  }
  backlog.more = backlog.waiting >= kExactBacklog;
  return {};
}

Result<std::vector<GroupBacklog>> MysqlTaskOperations::Backlog(const TableName& table) {
  std::map<std::string, HandlerGroups> handlers;
  const BootTime start = BootClock::now();
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT slice,handler,urgency,MIN(run_at) FROM " + table +
                         " FORCE INDEX (due) WHERE urgency IS NOT NULL GROUP BY slice,handler,urgency",
                     [&](const Row& row) {
                       const auto [at, is_new] = handlers.try_emplace(
                           row.Text(2), HandlerGroups{{.table = table, .handler = row.Text(2)}, {}, {}});
                       HandlerGroups& groups = at->second;
                       groups.slices.insert(row.Text(1));
                       groups.urgencies.insert(row.Text(3));
                       const auto due = row.Time(4);
                       auto& oldest = groups.backlog.oldest_due;
                       if (!oldest || due < oldest) oldest = due;
                     }));
  plan_.Mend(session_, table, BootClock::now() - start);
  std::vector<GroupBacklog> backlog;
  for (auto& [handler, groups] : handlers) {
    BOOST_OUTCOME_TRYV(CountWaiting(session_, groups, groups.backlog));
    backlog.push_back(std::move(groups.backlog));
  }
  return backlog;
}

}  // namespace

std::unique_ptr<TaskOperations> OpenOperations(const Endpoint& endpoint, ConnectionPool& pool) {
  return std::make_unique<MysqlTaskOperations>(endpoint, pool);
}

}  // namespace millrace::engine::mysql
