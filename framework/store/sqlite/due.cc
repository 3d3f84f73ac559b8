#include "framework/store/sqlite/due_text.h"
#include "framework/store/sqlite/task_store.h"

namespace millrace::engine::sqlite {
namespace {

constexpr char kOrder[] = " ORDER BY slice, handler, urgency, run_at LIMIT 1";

// Of values that are of another type than their column there is no group that a scan could ask for: older
// checks let them through, and a walk that read 3.7 as 3 would never come past it.
constexpr char kOfItsTypes[] =
    "typeof(slice)='integer' AND typeof(handler)='text' AND typeof(urgency)='integer' AND "
    "typeof(run_at)='text' AND ";

std::string Select(const TableName& table) {
  return "SELECT slice, handler, urgency, run_at FROM " + table + " INDEXED BY " + table +
         "_due WHERE urgency IS NOT NULL AND " + kOfItsTypes;
}

// The first time whose text does not come before this one: from then on a scan finds the row, and right
// before it is its head. The row's own time, but for 30 February and 24 o'clock, which older checks let
// through: they are read as a later time, and stand before the month or day that follows.
WallTime TimeInOrder(const std::string& text) {
  const WallTime time = TimeOf(text);
  if (text.size() == 26 && text.compare(8, 2, "28") <= 0 && text.compare(11, 2, "23") <= 0) return time;
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const WallTime month = std::chrono::sys_days(date.year() / date.month() / 1);
  for (const WallTime first : {month, WallTime(day), time}) {
    if (TimeText(first) >= text) return first;
  }
  return time + Micros(1);  // it has something behind it
}

// The group that the walk reaches next from `place`; nullopt: the end of the index.
Result<std::optional<DueGroup>> Step(Rows rows, const TableName& table) {
  std::optional<DueGroup> group;
  if (rows.Next())
    group = DueGroup{table, rows.Number(0), rows.Text(1), rows.Number(2), TimeInOrder(rows.Text(3))};
  if (rows.error()) return Fail(*rows.error());
  return group;
}

// Walks from the first group of slice `first` to the last of slice `last`.
Status Walk(Session& db, const DueScope& scope, std::uint32_t first, std::uint32_t last,
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

// What the walk does not tell: whether something of a group is due later, and the greatest id.
Status BeginParts(Session& db, const TableName& table, WallTime now, std::vector<DueGroup>& groups,
                  DueMap& map) {
  for (DueGroup& group : groups) {
    auto later = db.Select(DueAfterSql(table), group.slice, group.handler, group.urgency, TimeText(now));
    group.later = later.Next();
    BOOST_OUTCOME_TRYV(later.Finish());
  }
  auto greatest = db.Select("SELECT ifnull(MAX(id), 0) FROM " + table);
  map.greatest[table] = greatest.Next() ? greatest.Id(0) : 0;
  return greatest.Finish();
}

Status ReadNewRows(Session& db, const DueScope& scope, std::uint64_t id, DueMap& map) {
  const TableName& table = scope.whole.table;
  const std::string now = TimeText(map.now);
  auto rows = db.Select(NewRowsSql(table), now, now, id);
  while (rows.Next()) {
    std::uint64_t& greatest = map.greatest[table];
    greatest = std::max(greatest, rows.Id(6));
    if (rows.IsNull(3)) continue;
    DueGroup group{table,
                   rows.Number(0),
                   rows.Text(1),
                   rows.Number(2),
                   TimeInOrder(rows.Text(3)),
                   rows.Number(4) != 0,
                   rows.Number(5)};
    if (scope.Covers(group)) map.groups.push_back(std::move(group));
  }
  return rows.Finish();
}

Status ReadPart(Session& db, const DueScope& scope, const DueWanted& wanted, DueMap& map) {
  const TableName& table = scope.whole.table;
  const auto newer = wanted.newer.find(table);
  if (newer != wanted.newer.end()) {
    BOOST_OUTCOME_TRYV(ReadNewRows(db, scope, newer->second, map));
  }
  for (DueGroup group : wanted.after) {
    if (group.table != table) continue;
    const std::string after = TimeText(group.first_run_at);
    auto rows = db.Select(DueAfterSql(table), group.slice, group.handler, group.urgency, after);
    if (rows.Next()) {
      group.first_run_at = TimeInOrder(rows.Text(0));
      map.after.push_back(std::move(group));
    }
    BOOST_OUTCOME_TRYV(rows.Finish());
  }
  return {};
}

// Of a text, not the characters, as length() counts them.
std::string BytesOf(const std::string& column) { return "ifnull(length(CAST(" + column + " AS BLOB)), 0)"; }

std::string ScanGroup(const TableName& table, ScanColumns columns) {
  const std::string bytes =
      columns.bytes ? BytesOf("params") + " + " + BytesOf("last_error") + " + " + BytesOf("progress") : "0";
  return "SELECT id, run_at, state, attempt, crashes, claimed_by, " + bytes +
         (columns.created ? ", created_at" : "") + " FROM " + table + " INDEXED BY " + table +
         "_due WHERE slice=? AND handler=? AND urgency=? AND urgency IS NOT NULL AND ";
}

Status TakeScanRows(Rows rows, ScanColumns columns, std::vector<ScanRow>& found,
                    std::vector<std::uint64_t>& claimers) {
  while (rows.Next()) {
    found.push_back({rows.Id(0), TimeInOrder(rows.Text(1)), static_cast<TaskState>(rows.Integer(2)),
                     rows.Number(3), rows.Number(4), "", static_cast<std::size_t>(rows.Integer(6))});
    if (columns.created) found.back().created_at = TimeOf(rows.Text(7));
    claimers.push_back(rows.Id(5));
  }
  return rows.Finish();
}

}  // namespace

std::string FirstGroupSql(const TableName& table) { return Select(table) + "slice >= ?" + kOrder; }
std::string NextUrgencySql(const TableName& table) {
  return Select(table) + "slice = ? AND handler = ? AND urgency > ?" + kOrder;
}
std::string NextHandlerSql(const TableName& table) {
  return Select(table) + "slice = ? AND handler > ?" + kOrder;
}

std::string DueAfterSql(const TableName& table) {
  return "SELECT run_at FROM " + table + " INDEXED BY " + table + "_due WHERE " + kOfItsTypes +
         "slice=? AND handler=? AND urgency=? AND urgency IS NOT NULL AND run_at>? ORDER BY run_at LIMIT 1";
}

std::string NewRowsSql(const TableName& table) {
  const std::string waits = "CASE WHEN state=0 AND " + std::string(kOfItsTypes) + "1 THEN run_at END";
  return "SELECT slice, handler, urgency, MIN(" + waits + "), MAX(" + waits + ")>?, COUNT(CASE WHEN " +
         waits + "<=? THEN 1 END), MAX(id) FROM (SELECT id, slice, handler, urgency, state, run_at FROM " +
         table + " NOT INDEXED WHERE id>? ORDER BY id LIMIT " + std::to_string(kMostNewRows) +
         ") GROUP BY slice, handler, urgency ORDER BY slice, handler, urgency";
}

std::string ScanSql(const TableName& table, ScanColumns columns) {
  return ScanGroup(table, columns) + "run_at>? AND run_at<=? ORDER BY run_at, id LIMIT ?";
}
std::string ScanTieSql(const TableName& table, ScanColumns columns) {
  return ScanGroup(table, columns) + "run_at=? AND id>? ORDER BY id LIMIT ?";
}

Status ReadDueGroups(Session& db, const DueScope& scope, std::vector<DueGroup>& groups) {
  for (const auto& [first, last] : scope.whole.Ranges()) {
    BOOST_OUTCOME_TRYV(Walk(db, scope, first, last, groups));
  }
  return {};
}

Result<DueMap> SqliteTaskStore::Due(std::span<const TableSlices> tables, const DueWanted& wanted) {
  return db_.Read([&]() -> Result<DueMap> {
    DueMap map;
    map.now = db_.Now();
    for (const DueScope& scope : ScopesOf(tables)) {
      if (wanted.IsPart()) {
        BOOST_OUTCOME_TRYV(ReadPart(db_, scope, wanted, map));
        continue;
      }
      std::vector<DueGroup> groups;
      BOOST_OUTCOME_TRYV(ReadDueGroups(db_, scope, groups));
      if (wanted.begins_parts) {
        BOOST_OUTCOME_TRYV(BeginParts(db_, scope.whole.table, map.now, groups, map));
      }
      std::move(groups.begin(), groups.end(), std::back_inserter(map.groups));
    }
    auto paused = db_.Select("SELECT what FROM millrace_pauses ORDER BY what");
    while (paused.Next()) map.pauses.push_back(paused.Text(0));
    if (paused.error()) return Fail(*paused.error());
    return map;
  });
}

Result<std::vector<ScanRow>> SqliteTaskStore::Scan(const ScanRequest& request) {
  const DueGroup& group = request.group;
  const WallTime now = db_.Now();
  const bool from_start = request.after == ScanPosition{};
  // Before the first row is before every text, also of a year that nobody thought of.
  const std::string after = from_start ? "" : TimeText(request.after.run_at);
  const ScanColumns columns{request.with_bytes, request.with_created};
  return db_.Read([&]() -> Result<std::vector<ScanRow>> {
    std::vector<ScanRow> found;
    std::vector<std::uint64_t> claimers;
    if (!from_start && request.after.run_at <= now) {
      auto tie = db_.Select(ScanTieSql(group.table, columns), group.slice, group.handler, group.urgency,
                            after, request.after.id, static_cast<std::uint64_t>(request.limit));
      BOOST_OUTCOME_TRYV(TakeScanRows(std::move(tie), columns, found, claimers));
    }
    if (found.size() < request.limit) {
      auto rest = db_.Select(ScanSql(group.table, columns), group.slice, group.handler, group.urgency, after,
                             TimeText(now), static_cast<std::uint64_t>(request.limit - found.size()));
      BOOST_OUTCOME_TRYV(TakeScanRows(std::move(rest), columns, found, claimers));
    }
    BOOST_OUTCOME_TRYV(NameClaimers(claimers, found));
    if (request.running_only)
      std::erase_if(found, [](const ScanRow& row) { return row.state != TaskState::Running; });
    return found;
  });
}

}  // namespace millrace::engine::sqlite
