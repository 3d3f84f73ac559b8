#include "framework/store/sqlite/due_map.h"

#include "framework/store/sqlite/rows.h"

namespace millrace::engine {
namespace {

constexpr char kOrder[] = " ORDER BY slice, handler, urgency, run_at LIMIT 1";

std::string Select(const TableName& table) {
  return "SELECT slice, handler, urgency, run_at FROM " + table + " INDEXED BY " + table +
         "_due WHERE urgency IS NOT NULL AND ";
}

// The group that the walk reaches next from `place`; nullopt: the end of the index.
Result<std::optional<DueGroup>> Step(SqliteRows rows, const TableName& table) {
  std::optional<DueGroup> group;
  if (rows.Next())
    group = DueGroup{table, rows.Number(0), rows.Text(1), rows.Number(2), TimeOf(rows.Text(3))};
  if (rows.error()) return Fail(*rows.error());
  return group;
}

// Walks from the first group of slice `first` to the last of slice `last`.
Status Walk(SqliteConnection& db, const DueScope& scope, std::uint32_t first, std::uint32_t last,
            std::vector<DueGroup>& groups) {
  const TableName& table = scope.whole.table;
  auto group = Step(db.Select(FirstGroupSql(table), first), table);
  while (group && *group && (*group)->slice <= last) {
    const DueGroup at = std::move(**group);
    group->reset();
    // SQLite seeks a row value by >= and then walks the whole group that it names; three plain > do not.
    if (scope.whole.CoversHandler(at.handler)) {
      group = Step(db.Select(NextUrgencySql(table), at.slice, at.handler, at.urgency), table);
    }
    if (group && !*group) group = Step(db.Select(NextHandlerSql(table), at.slice, at.handler), table);
    if (group && !*group) group = Step(db.Select(FirstGroupSql(table), at.slice + 1), table);
    if (scope.Covers(at)) groups.push_back(at);
  }
  if (!group) return Fail(group.error());
  return {};
}

}  // namespace

std::string FirstGroupSql(const TableName& table) { return Select(table) + "slice >= ?" + kOrder; }
std::string NextUrgencySql(const TableName& table) {
  return Select(table) + "slice = ? AND handler = ? AND urgency > ?" + kOrder;
}
std::string NextHandlerSql(const TableName& table) {
  return Select(table) + "slice = ? AND handler > ?" + kOrder;
}

Status ReadDueGroups(SqliteConnection& db, const DueScope& scope, std::vector<DueGroup>& groups) {
  for (const auto& [first, last] : scope.whole.Ranges()) {
    BOOST_OUTCOME_TRYV(Walk(db, scope, first, last, groups));
  }
  return {};
}

}  // namespace millrace::engine
