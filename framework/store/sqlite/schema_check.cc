#include "framework/store/sqlite/schema_check.h"

#include <algorithm>
#include <set>

#include "framework/store/sqlite/ddl.h"
#include "framework/store/sqlite/due_text.h"
#include "framework/store/sqlite/task_store.h"

namespace millrace::engine::sqlite {
namespace {

constexpr TableName kScratch = "millrace_scratch";

// The text of a statement without what people may write differently: spaces and quotes.
std::string Squeezed(const std::string& sql) {
  std::string text;
  for (const char c : sql) {
    if (c != ' ' && c != '\n' && c != '\t' && c != '"' && c != '`') text += c;
  }
  return text;
}

Result<std::string> LiveText(Session& db, const SchemaObject& object) {
  auto rows = db.Select("SELECT sql FROM sqlite_master WHERE type=? AND name=?", object.kind, object.name);
  std::string text;
  if (rows.Next()) text = rows.Text(0);
  if (rows.error()) return Fail(*rows.error());
  return text;
}

Result<std::set<std::string>> Columns(Session& db, const std::string& table) {
  auto rows = db.Select("SELECT name FROM pragma_table_xinfo(?)", table);
  std::set<std::string> names;
  while (rows.Next()) names.insert(rows.Text(0));
  if (rows.error()) return Fail(*rows.error());
  return names;
}

// The same, without what was added to the checks since.
std::string Comparable(const std::string& sql) {
  std::string text = Squeezed(sql);
  for (const std::string& one : AddedToChecks()) {
    const std::string added = Squeezed(one);
    const std::size_t at = text.find(added);
    if (at != std::string::npos) text.erase(at, added.size());
  }
  return text;
}

bool HasAllChecks(const std::string& live) {
  const std::string text = Squeezed(live);
  const auto added = AddedToChecks();
  return std::all_of(added.begin(), added.end(),
                     [&](const std::string& one) { return text.find(Squeezed(one)) != std::string::npos; });
}

Status CompareObject(Session& db, const SchemaObject& object, std::vector<SchemaFinding>& findings) {
  BOOST_OUTCOME_TRY(live, LiveText(db, object));
  const std::string what = object.kind + " " + object.name;
  if (live.empty()) {
    findings.push_back({what, "it is missing", "run `millrace schema apply`"});
    return {};
  }
  for (const std::string& good : {object.create, WithAnyJson(object.create)}) {
    if (Comparable(live) == Comparable(good)) return {};
  }
  if (object.kind != "table") {
    findings.push_back({what, "it is not as expected: " + live,
                        "drop it and run `millrace schema apply`, which makes it anew"});
    return {};
  }
  BOOST_OUTCOME_TRY(columns, Columns(db, object.name));
  bool complete = true;
  for (const std::string& column : ColumnsOf(object.create)) {
    if (columns.contains(column)) continue;
    complete = false;
    findings.push_back(
        {"column " + object.name + "." + column, "it is missing", "compare with `millrace schema print`"});
  }
  if (complete) {
    findings.push_back({what, "its definition differs from the expected one",
                        "compare `.schema " + object.name + "` with `millrace schema print`"});
  }
  return {};
}

// Older checks let values through that compare with what a statement asks for, and never equal it.
Status FindLostRows(Session& db, const TableName& table, std::vector<SchemaFinding>& findings) {
  const std::string lost =
      "typeof(slice)<>'integer' OR typeof(handler)<>'text' OR typeof(run_at)<>'text' OR typeof(urgency) NOT "
      "IN ('integer','null')";
  auto rows = db.Select("SELECT id FROM " + table + " WHERE " + lost + " LIMIT 1");
  if (rows.Next()) {
    findings.push_back(
        {"task " + table + "/" + std::to_string(rows.Id(0)),
         "no worker finds it: its slice, handler, run_at or failures is of another type than "
         "its column",
         "SELECT * FROM " + table + " WHERE " + lost + "; and give them whole numbers and texts"});
  }
  return rows.error() ? Status(Fail(*rows.error())) : Status();
}

std::vector<HotStatement> HotStatements(const TableName& table) {
  const std::string group = "slice=? AND handler=? AND urgency=?";
  return {{"due map, first group", FirstGroupSql(table), 1, "slice>?"},
          {"due map, next urgency", NextUrgencySql(table), 3, "slice=? AND handler=? AND urgency>?"},
          {"due map, next handler", NextHandlerSql(table), 2, "slice=? AND handler>?"},
          {"scan", ScanSql(table), 6, group + " AND run_at>? AND run_at<?"},
          {"scan, within a tie", ScanTieSql(table), 6, group + " AND run_at=? AND rowid>?"},
          {"claim", ClaimSql(table), 6, "rowid=?"},
          {"settle, copy", CopySql(table, Settlement::To::Succeeded), 10, "rowid=?"},
          {"settle, copy of a failed one", CopySql(table, Settlement::To::Failed), 10, "rowid=?"},
          {"settle, delete", DeleteSql(table), 3, "rowid=?"},
          {"settle, waiting", WaitSql(table), 9, "rowid=?"}};
}

// Rows enough that a plan which sorts or scans would be chosen if it could be.
Status SeedScratch(Session& db) {
  for (const SchemaObject& object : TaskTableObjects(kScratch, 4)) {
    BOOST_OUTCOME_TRYV(db.Script(object.create));
  }
  BOOST_OUTCOME_TRYV(
      db.Run(std::string("INSERT INTO ") + kScratch +
             " (handler, params) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<500)"
             " SELECT 'scratch', '{}' FROM n"));
  return db.Script(std::string("ANALYZE ") + kScratch);
}

void ExplainAll(Session& db, std::vector<SchemaFinding>& findings) {
  for (const HotStatement& hot : HotStatements(kScratch)) {
    const auto fault = PlanFault(db, hot);
    if (!fault) continue;
    findings.push_back({"statement " + hot.name, *fault,
                        "run `millrace schema apply`, and compare the index with `millrace schema print`"});
  }
}

std::optional<std::string> StepFault(const std::string& step, const std::string& bounds) {
  if (step.find("TEMP B-TREE") != std::string::npos) return "it sorts: " + step;
  if (step.starts_with("SCAN")) return "it scans: " + step;
  if (!step.ends_with("(" + bounds + ")")) return "it does not search by " + bounds + ": " + step;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> PlanFault(Session& db, const HotStatement& hot) {
  const std::vector<sql::Value> values(hot.values, sql::Value(nullptr));
  auto rows = db.Start("EXPLAIN QUERY PLAN " + hot.sql, values.data(), values.size());
  std::optional<std::string> fault;
  while (rows.Next() && !fault) fault = StepFault(rows.Text(3), hot.bounds);
  // A plan that the forced index can't serve is refused when it is prepared.
  if (rows.error()) return rows.error()->message;
  return fault;
}

Result<std::vector<SchemaFinding>> CheckSchema(Session& db, const std::vector<TableInfo>& tables) {
  std::vector<SchemaFinding> findings;
  std::vector<SchemaObject> expected = ShardObjects();
  for (const TableInfo& table : tables) {
    const auto objects = TaskTableObjects(table.table, table.slices);
    expected.insert(expected.end(), objects.begin(), objects.end());
  }
  for (const SchemaObject& object : expected) {
    BOOST_OUTCOME_TRYV(CompareObject(db, object, findings));
  }
  for (const TableInfo& table : tables) {
    BOOST_OUTCOME_TRY(live, LiveText(db, TaskTableObjects(table.table, table.slices).front()));
    if (live.empty() || HasAllChecks(live)) continue;
    BOOST_OUTCOME_TRYV(FindLostRows(db, table.table, findings));
  }
  // The scratch table lives in a transaction that is rolled back.
  BOOST_OUTCOME_TRYV(db.Begin());
  const Status explained = SeedScratch(db);
  if (explained) ExplainAll(db, findings);
  db.Rollback();
  if (!explained) return Fail(explained.error());
  return findings;
}

}  // namespace millrace::engine::sqlite
