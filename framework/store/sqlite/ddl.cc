#include "framework/store/sqlite/ddl.h"

#include "framework/task/task.h"

namespace millrace::engine::sqlite {
namespace {

// What was added to the checks since their first version: a table without it is one of ours as well. Each
// stands within the brackets of a CHECK, so that it can be left out by itself.

// julianday takes 30 February and 24 o'clock for days and hours. Ordered so that of most times the first
// comparisons say all.
std::string RealTime(const std::string& column) {
  const auto part = [&](int from, int length) {
    return "substr(" + column + "," + std::to_string(from) + "," + std::to_string(length) + ")";
  };
  return " AND typeof(" + column + ") = 'text' AND length(CAST(" + column + " AS BLOB)) = 26 AND " +
         part(12, 2) + " <= '23' AND (" + part(9, 2) + " <= '28' OR " + part(9, 2) +
         " <= substr('312831303130313130313031'," + part(6, 2) + " * 2 - 1,2) OR (" + part(6, 5) +
         " = '02-29' AND " + part(1, 4) + " % 4 = 0 AND (" + part(3, 2) + " <> '00' OR " + part(1, 2) +
         " % 4 = 0)))";
}
// A column's type is a wish: 3.7 stays what it is, compares with whole numbers, and equals none.
std::string WholeNumber(const std::string& column) { return " AND typeof(" + column + ") = 'integer'"; }
constexpr char kHandlerIsText[] = " AND typeof(handler) = 'text'";

// One text form, so that the order of the texts is the order of the times.
std::string TimeForm(const std::string& column) {
  return column +
         " GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
         ".[0-9][0-9][0-9][0-9][0-9][0-9]' AND julianday(" +
         column + ") IS NOT NULL" + RealTime(column);
}
// GLOB and length look at a text up to its first zero byte.
constexpr char kHandlerCheck[] =
    "handler GLOB '[a-z]*' AND handler NOT GLOB '*[^a-z0-9_.]*' AND length(handler) <= 64 "
    "AND length(CAST(handler AS BLOB)) = length(handler)";
// Not of tables that take the rows of an older one.
constexpr char kObjectCheck[] =
    ",\n  CHECK (CASE WHEN json_valid(params) THEN json_type(params) = 'object' ELSE 1 END)";
constexpr char kNow[] = "(strftime('%Y-%m-%d %H:%M:%f','now') || '000')";

std::string CountCheck(const std::string& column) {
  return "CHECK (" + column + " BETWEEN 0 AND " + std::to_string(kMaxCount) + WholeNumber(column) + ")";
}

// SQLite reads a row from its beginning: what the statements look at comes before the texts, of which a long
// one goes on in pages of its own.
std::string Tasks(const TableName& table, std::uint32_t slices) {
  return "CREATE TABLE " + table +
         " (\n"
         "  id         INTEGER PRIMARY KEY AUTOINCREMENT,\n"
         "  slice      INTEGER NOT NULL DEFAULT " +
         SliceDefault(slices) +
         "\n"
         "             CHECK (slice BETWEEN 0 AND " +
         std::to_string(kMaxSlices - 1) + WholeNumber("slice") +
         "),\n"
         "  state      INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0,2,3)),\n"
         "  handler    TEXT NOT NULL\n"
         "             CHECK (" +
         kHandlerCheck + kHandlerIsText +
         "),\n"
         "  priority   INTEGER NOT NULL DEFAULT 5 CHECK (priority IN (0,1,2,3,4,5,6,7,8,9)),\n"
         "  run_at     TEXT NOT NULL DEFAULT " +
         kNow +
         "\n"
         "             CHECK (" +
         TimeForm("run_at") +
         "),\n"
         "  failures   INTEGER NOT NULL DEFAULT 0 " +
         CountCheck("failures") +
         ",\n"
         "  attempt    INTEGER NOT NULL DEFAULT 0 " +
         CountCheck("attempt") +
         ",\n"
         "  crashes    INTEGER NOT NULL DEFAULT 0 " +
         CountCheck("crashes") +
         ",\n"
         "  cancel     INTEGER NOT NULL DEFAULT 0 CHECK (cancel IN (0,1)),\n"
         "  claimed_by INTEGER NOT NULL DEFAULT 0 CHECK (typeof(claimed_by) = 'integer'),\n"
         "  claimed_at TEXT NOT NULL DEFAULT '" +
         kNeverClaimed +
         "',\n"
         "  created_at TEXT NOT NULL DEFAULT " +
         kNow +
         ",\n"
         "  updated_at TEXT NOT NULL DEFAULT " +
         kNow +
         ",\n"
         "  urgency    INTEGER GENERATED ALWAYS AS\n"
         "             (CASE WHEN state = 3 THEN NULL ELSE priority * 10 + min(failures, 9) END) STORED,\n"
         "  biz_key    TEXT CHECK (length(CAST(biz_key AS BLOB)) <= 190),\n"
         "  batch      TEXT CHECK (length(CAST(batch AS BLOB)) <= 64),\n"
         "  last_error TEXT,\n"
         "  progress   TEXT,\n"
         "  params     TEXT NOT NULL CHECK (json_valid(params) AND length(CAST(params AS BLOB)) <= 65536),\n "
         " " +
         ExpiryColumn(true) +
         ",\n"
         "  CHECK (state <> 2 OR claimed_by <> 0)" +
         kObjectCheck +
         "\n"
         ")";
}

std::string EndedPool(const std::string& pool, const std::string& states, const std::string& last) {
  return "CREATE TABLE " + pool +
         " (\n"
         "  id          INTEGER PRIMARY KEY,\n"
         "  slice       INTEGER NOT NULL,\n"
         "  state       INTEGER NOT NULL CHECK (state IN (" +
         states +
         ")),\n"
         "  handler     TEXT NOT NULL,\n"
         "  priority    INTEGER NOT NULL,\n"
         "  run_at      TEXT NOT NULL,\n"
         "  params      TEXT NOT NULL,\n"
         "  biz_key     TEXT,\n"
         "  batch       TEXT,\n"
         "  failures    INTEGER NOT NULL,\n"
         "  attempt     INTEGER NOT NULL,\n"
         "  crashes     INTEGER NOT NULL,\n"
         "  claimed_by  TEXT,\n"
         "  claimed_at  TEXT,\n"
         "  last_error  TEXT,\n"
         "  progress    TEXT,\n"
         "  created_at  TEXT NOT NULL,\n"
         "  " +
         last +
         " TEXT,\n"
         "  finished_at TEXT NOT NULL,\n  " +
         ExpiryColumn(false) +
         "\n"
         ")";
}

// One pool's part of the view; `claim` says who claimed the task, and when.
std::string ViewOf(const std::string& pool, const std::string& claim, const std::string& rest) {
  return "SELECT id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, "
         "crashes, " +
         claim + ", last_error, progress, created_at, " + rest + ", expires_at FROM " + pool;
}

std::string AllPools(const TableName& table) {
  const std::string claim =
      "CASE WHEN claimed_by = 0 THEN NULL ELSE coalesce((SELECT i.id FROM millrace_incarnations i WHERE"
      " i.number = claimed_by), '#' || claimed_by) END AS claimed_by,"
      " CASE WHEN claimed_by = 0 THEN NULL ELSE claimed_at END AS claimed_at";
  const std::string ended = "claimed_by, claimed_at";
  return "CREATE VIEW " + table + "_all AS\n  " +
         ViewOf(std::string(table.text()), claim,
                "NULL AS result, NULL AS error_class, NULL AS finished_at") +
         "\n  UNION ALL " + ViewOf(table + "_done", ended, "result, NULL, finished_at") + "\n  UNION ALL " +
         ViewOf(table + "_failed", ended, "NULL, error_class, finished_at");
}

// Who works, by which version, and on what only a few may.
std::vector<SchemaObject> LifeObjects() {
  return {
      {"table", "millrace_schema",
       "CREATE TABLE millrace_schema (\n"
       "  task_table TEXT PRIMARY KEY,\n"
       "  slices     INTEGER NOT NULL,\n"
       "  version    INTEGER NOT NULL,\n"
       "  applied_at TEXT NOT NULL,\n"
       "  readable_by INTEGER NOT NULL DEFAULT 0\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_incarnations",
       "CREATE TABLE millrace_incarnations (\n"
       "  id         TEXT PRIMARY KEY,\n"
       "  number     INTEGER NOT NULL UNIQUE,\n"
       "  worker     TEXT NOT NULL,\n  host       TEXT NOT NULL,\n  pid        INTEGER NOT NULL,\n"
       "  lease_us   INTEGER NOT NULL,\n"
       "  slices     TEXT NOT NULL,\n"
       "  started_at TEXT NOT NULL,\n"
       "  dead       INTEGER NOT NULL DEFAULT 0\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_beats",
       "CREATE TABLE millrace_beats (\n"
       "  id   TEXT PRIMARY KEY,\n"
       "  beat INTEGER NOT NULL\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_permits",
       "CREATE TABLE millrace_permits (\n"
       "  handler     TEXT NOT NULL,\n"
       "  number      INTEGER NOT NULL,\n"
       "  turn        INTEGER NOT NULL DEFAULT 0,\n"
       "  incarnation INTEGER NOT NULL DEFAULT 0,\n"
       "  task        TEXT NOT NULL DEFAULT '',\n"
       "  attempt     INTEGER NOT NULL DEFAULT 0,\n"
       "  taken_at    TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000000',\n"
       "  PRIMARY KEY (handler, number)\n"
       ") WITHOUT ROWID"},
  };
}

// What was done, what must not be done again, and what is not to be done now.
std::vector<SchemaObject> RecordObjects() {
  return {
      {"table", "tasks_keys",
       "CREATE TABLE tasks_keys (\n"
       "  handler    TEXT NOT NULL,\n"
       "  biz_key    TEXT NOT NULL,\n"
       "  task_table TEXT NOT NULL,\n"
       "  task_id    INTEGER NOT NULL,\n"
       "  entered_at TEXT NOT NULL,\n"
       "  ended_at   TEXT,\n"
       "  keep_until TEXT,\n"
       "  PRIMARY KEY (handler, biz_key)\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_attempts",
       "CREATE TABLE millrace_attempts (\n"
       "  task_table  TEXT NOT NULL,\n"
       "  task_id     INTEGER NOT NULL,\n"
       "  attempt     INTEGER NOT NULL,\n"
       "  at          TEXT NOT NULL,\n"
       "  incarnation TEXT NOT NULL,\n"
       "  kind        TEXT NOT NULL CHECK (kind IN ('failed','crashed','rescued')),\n"
       "  error_class TEXT NOT NULL,\n"
       "  message     TEXT NOT NULL,\n"
       "  PRIMARY KEY (task_table, task_id, attempt)\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_counters",
       "CREATE TABLE millrace_counters (\n"
       "  task_table      TEXT NOT NULL,\n"
       "  handler         TEXT NOT NULL,\n"
       "  batch           TEXT NOT NULL,\n"
       "  incarnation     TEXT NOT NULL,\n"
       "  succeeded       INTEGER NOT NULL,\n"
       "  cancelled       INTEGER NOT NULL,\n"
       "  failed          INTEGER NOT NULL,\n"
       "  attempts_failed INTEGER NOT NULL,\n"
       "  PRIMARY KEY (task_table, handler, batch, incarnation)\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_audit",
       "CREATE TABLE millrace_audit (\n"
       "  id      INTEGER PRIMARY KEY AUTOINCREMENT,\n"
       "  at      TEXT NOT NULL,\n"
       "  actor   TEXT NOT NULL,\n"
       "  action  TEXT NOT NULL,\n"
       "  subject TEXT NOT NULL,\n"
       "  detail  TEXT NOT NULL\n"
       ")"},
      {"table", "millrace_pauses",
       "CREATE TABLE millrace_pauses (\n"
       "  what  TEXT PRIMARY KEY,\n"
       "  actor TEXT NOT NULL,\n"
       "  since TEXT NOT NULL\n"
       ") WITHOUT ROWID"},
  };
}

// What makes tasks, and what is made of many.
std::vector<SchemaObject> PlanObjects() {
  return {
      {"table", "millrace_schedules",
       "CREATE TABLE millrace_schedules (\n"
       "  name       TEXT PRIMARY KEY,\n"
       "  rhythm     TEXT NOT NULL,\n"
       "  anchor     TEXT NOT NULL,\n"
       "  next_at    TEXT,\n"
       "  last_at    TEXT,\n"
       "  paused     INTEGER NOT NULL,\n"
       "  config     INTEGER NOT NULL,\n"
       "  task_table TEXT NOT NULL,\n"
       "  task_id    INTEGER NOT NULL,\n"
       "  fired      INTEGER NOT NULL,\n"
       "  lapsed     INTEGER NOT NULL,\n"
       "  moved_to   TEXT NOT NULL\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_fan_outs",
       "CREATE TABLE millrace_fan_outs (\n"
       "  schedule     TEXT NOT NULL,\n"
       "  firing       TEXT NOT NULL,\n"
       "  handler      TEXT NOT NULL,\n"
       "  task_table   TEXT NOT NULL,\n"
       "  from_query   TEXT NOT NULL,\n"
       "  key_template TEXT NOT NULL,\n"
       "  zone         TEXT NOT NULL,\n"
       "  place        TEXT,\n"
       "  submitted    INTEGER NOT NULL,\n"
       "  refused      INTEGER NOT NULL,\n"
       "  started_at   TEXT NOT NULL,\n"
       "  PRIMARY KEY (schedule, firing)\n"
       ") WITHOUT ROWID"},
      {"table", "millrace_batches",
       "CREATE TABLE millrace_batches (\n"
       "  name           TEXT PRIMARY KEY,\n"
       "  state          TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open','closed','ended')),\n"
       "  stays_open     INTEGER NOT NULL,\n"
       "  parts          TEXT NOT NULL,\n"
       "  callback_table TEXT NOT NULL,\n"
       "  on_success     TEXT,\n"
       "  on_end         TEXT,\n"
       "  made_by        TEXT NOT NULL,\n"
       "  created_at     TEXT NOT NULL,\n"
       "  closed_at      TEXT,\n"
       "  ended_at       TEXT,\n"
       "  outcome        TEXT NOT NULL DEFAULT '',\n"
       "  success_task   TEXT NOT NULL DEFAULT '',\n"
       "  end_task       TEXT NOT NULL DEFAULT '',\n"
       "  added          INTEGER NOT NULL DEFAULT 0,\n"
       "  succeeded      INTEGER NOT NULL DEFAULT 0,\n"
       "  cancelled      INTEGER NOT NULL DEFAULT 0,\n"
       "  failed         INTEGER NOT NULL DEFAULT 0\n"
       ") WITHOUT ROWID"},
      {"index", "millrace_batches_by_state",
       "CREATE INDEX millrace_batches_by_state ON millrace_batches (state, name)"},
  };
}

}  // namespace

std::string ExpiryColumn(bool hot) {
  const std::string column = "expires_at TEXT";
  return hot ? column + " CHECK (expires_at IS NULL OR " + TimeForm("expires_at") + ")" : column;
}

std::string SliceDefault(std::uint32_t slices) {
  return "((random() & 2147483647) % " + std::to_string(slices) + ")";
}

std::vector<SchemaObject> ShardObjects() {
  std::vector<SchemaObject> objects = LifeObjects();
  for (const auto& more : {RecordObjects(), PlanObjects()})
    objects.insert(objects.end(), more.begin(), more.end());
  return objects;
}

std::vector<SchemaObject> TaskTableObjects(const TableName& table, std::uint32_t slices) {
  return {
      {"table", std::string(table.text()), Tasks(table, slices)},
      // Held rows have no urgency and stand in an index of their own; the row's id follows run_at by itself.
      {"index", table + "_due",
       "CREATE INDEX " + table + "_due ON " + table +
           " (slice, handler, urgency, run_at) WHERE urgency IS NOT NULL"},
      {"index", table + "_held",
       "CREATE INDEX " + table + "_held ON " + table + " (slice) WHERE urgency IS NULL"},
      {"index", table + "_by_key",
       "CREATE INDEX " + table + "_by_key ON " + table + " (biz_key, handler) WHERE biz_key IS NOT NULL"},
      {"table", table + "_done", EndedPool(table + "_done", "1,4", "result     ")},
      {"table", table + "_failed", EndedPool(table + "_failed", "-1", "error_class")},
      {"view", table + "_all", AllPools(table)},
  };
}

std::string WithAnyJson(std::string create) {
  const std::size_t at = create.find(kObjectCheck);
  return at == std::string::npos ? create : create.erase(at, sizeof kObjectCheck - 1);
}

std::string WithFirstChecks(std::string create) {
  for (const std::string& added : AddedToChecks()) {
    const std::size_t at = create.find(added);
    if (at != std::string::npos) create.erase(at, added.size());
  }
  return create;
}

std::vector<std::string> AddedToChecks() {
  std::vector<std::string> all{kHandlerIsText};
  for (const char* number : {"slice", "failures", "attempt", "crashes"}) all.push_back(WholeNumber(number));
  for (const char* time : {"run_at", "expires_at"}) all.push_back(RealTime(time));
  return all;
}

// One a line, indented by two spaces.
std::vector<std::string> ColumnsOf(const std::string& create) {
  std::vector<std::string> names;
  for (std::size_t line = create.find("\n  "); line != std::string::npos;
       line = create.find("\n  ", line + 1)) {
    const std::size_t start = line + 3;
    if (create[start] < 'a' || create[start] > 'z') continue;
    names.push_back(create.substr(start, create.find(' ', start) - start));
  }
  return names;
}

std::string SchemaRow(const std::optional<TableName>& table, std::uint32_t slices) {
  return "INSERT OR IGNORE INTO millrace_schema (task_table, slices, version, applied_at, readable_by) "
         "VALUES ('" +
         std::string(table ? table->text() : "") + "', " + std::to_string(slices) + ", " +
         std::to_string(kSchemaVersion) + ", " + kNow + ", " + std::to_string(kReadableBy) + ")";
}

}  // namespace millrace::engine::sqlite
