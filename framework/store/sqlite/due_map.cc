#include "framework/store/sqlite/due_map.h"

#include "framework/store/sqlite/rows.h"

namespace millrace {
namespace {

constexpr char kOrder[] = " ORDER BY slice, handler, urgency, run_at LIMIT 1";

std::string Select(const std::string& table) {
  return "SELECT slice, handler, urgency, run_at FROM " + table + " INDEXED BY " + table +
         "_due WHERE urgency IS NOT NULL AND ";
}

// The group that the walk reaches next from `place`; nullopt: the end of the index.
Result<std::optional<DueGroup>> Step(SqliteRows rows, const std::string& table) {
  std::optional<DueGroup> group;
  if (rows.Next())
    group = DueGroup{table, rows.Number(0), rows.Text(1), rows.Number(2), TimeOf(rows.Text(3))};
  if (rows.error()) return Fail(*rows.error());
  return group;
}

// Walks from the first group of slice `first` on while `wanted` says so.
template <class Wanted>
Status Walk(SqliteConnection& db, const std::string& table, std::uint32_t first, Wanted wanted,
            std::vector<DueGroup>& groups) {
  auto group = Step(db.Select(FirstGroupSql(table), first), table);
  while (group && *group && wanted((*group)->slice)) {
    groups.push_back(std::move(**group));
    const DueGroup& last = groups.back();
    // SQLite seeks a row value by >= and then walks the whole group that it names; three plain > do not.
    group = Step(db.Select(NextUrgencySql(table), last.slice, last.handler, last.urgency), table);
    if (group && !*group) group = Step(db.Select(NextHandlerSql(table), last.slice, last.handler), table);
    if (group && !*group) group = Step(db.Select(FirstGroupSql(table), last.slice + 1), table);
  }
  if (!group) return Fail(group.error());
  return {};
}

}  // namespace

std::string FirstGroupSql(const std::string& table) { return Select(table) + "slice >= ?" + kOrder; }
std::string NextUrgencySql(const std::string& table) {
  return Select(table) + "slice = ? AND handler = ? AND urgency > ?" + kOrder;
}
std::string NextHandlerSql(const std::string& table) {
  return Select(table) + "slice = ? AND handler > ?" + kOrder;
}

Status ReadDueGroups(SqliteConnection& db, const TableSlices& slices, std::vector<DueGroup>& groups) {
  if (Status named = CheckTable(slices.table); !named) return named;
  if (slices.all) {
    return Walk(
        db, slices.table, 0, [](std::uint32_t) { return true; }, groups);
  }
  for (const std::uint32_t slice : slices.slices) {
    const auto same = [slice](std::uint32_t found) { return found == slice; };
    if (Status walked = Walk(db, slices.table, slice, same, groups); !walked) return walked;
  }
  return {};
}

}  // namespace millrace
