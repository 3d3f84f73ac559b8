#include "framework/store/mysql/ddl.h"

#include "framework/store/mysql/sql_text.h"
#include "framework/task/task.h"

namespace millrace::engine::mysql {
namespace {

constexpr const char* kEngine = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";
// Names compare by their bytes. VARBINARY for keys, since even utf8mb4_bin takes 'a' and 'a ' for equal.
constexpr const char* kName = " CHARACTER SET ascii COLLATE ascii_bin";

// Before a check of a text: MariaDB evaluates all checks of a row that is written, and a claim changes no
// text. MySQL, for which this is a comment, evaluates those whose columns are written; it must not find
// `state` there.
constexpr const char* kNotOfClaims = "/*M! state=2 OR */ ";
// Not one pattern with a `$` at its end, which both servers also find before a last newline.
constexpr const char* kHandlerCheck = "(handler REGEXP '^[a-z]' AND handler NOT REGEXP '[^a-z0-9_.]')";

std::string Varchar(const std::string& name, int length, const std::string& rest) {
  return "  " + name + " VARCHAR(" + std::to_string(length) + ")" + kName + " " + rest + ",\n";
}

// The columns that a task keeps for life; `claim` are those that a claim writes.
std::string Kept(std::uint32_t slices, const std::string& id, const std::string& claim) {
  const std::string count = std::to_string(slices);
  return "  id BIGINT UNSIGNED NOT NULL" + id +
         ",\n  slice SMALLINT UNSIGNED NOT NULL DEFAULT (FLOOR(RAND()*" + count +
         ")),\n  state TINYINT NOT NULL DEFAULT 0,\n" + Varchar("handler", 64, "NOT NULL") +
         "  priority TINYINT UNSIGNED NOT NULL DEFAULT 5,\n"
         "  run_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n"
         "  params MEDIUMTEXT NOT NULL DEFAULT ('{}'),\n"
         "  biz_key VARBINARY(190) NULL,\n"
         "  batch VARCHAR(64) NULL,\n"
         "  failures INT UNSIGNED NOT NULL DEFAULT 0,\n"
         "  attempt INT UNSIGNED NOT NULL DEFAULT 0,\n"
         "  crashes INT UNSIGNED NOT NULL DEFAULT 0,\n" +
         claim +
         "  last_error TEXT NULL,\n"
         "  progress TEXT NULL,\n"
         "  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n";
}

std::string Constraint(const TableName& table, const std::string& name, const std::string& check) {
  return "  CONSTRAINT " + table + "_" + name + " CHECK (" + check + ")";
}

// Whether rows have to pass kParamsObject: those of an older table may not.
enum class Params { Objects, AnyJson };

// Of fixed width and never NULL: see README.md.
std::string HotTable(const std::string& name, const TableName& table, std::uint32_t slices, Params params) {
  const std::string count = std::to_string(kMaxCount);
  const std::string claim = std::string("  claimed_by BIGINT UNSIGNED NOT NULL DEFAULT 0,\n") +
                            "  claimed_at DATETIME(6) NOT NULL DEFAULT '" + kNeverClaimed + "',\n";
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n" + Kept(slices, " AUTO_INCREMENT", claim) +
         "  cancel TINYINT NOT NULL DEFAULT 0,\n"
         "  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) ON UPDATE CURRENT_TIMESTAMP(6),\n"
         // The inner LEAST: a priority of 99 is refused by its own name, and not as an urgency of 990.
         "  urgency TINYINT UNSIGNED GENERATED ALWAYS AS (IF(state=3, NULL, LEAST(priority,9)*10 + "
         "LEAST(failures,9))) STORED,\n  " +
         kExpiresAt +
         ",\n"
         "  PRIMARY KEY (id),\n"
         "  KEY due (slice,handler,urgency,run_at),\n" +
         Constraint(table, "slice_range", "slice < " + std::to_string(kMaxSlices)) + ",\n" +
         Constraint(table, "state_known", "state IN (0,2,3)") + ",\n" +
         Constraint(table, "claimer_set", "state <> 2 OR claimed_by <> 0") + ",\n" +
         Constraint(table, "handler_name", std::string(kNotOfClaims) + kHandlerCheck) + ",\n" +
         Constraint(table, "priority_range", "priority <= 9") + ",\n" +
         Constraint(table, "params_json", std::string(kNotOfClaims) + "JSON_VALID(params)") + ",\n" +
         (params == Params::Objects
              ? Constraint(table, kParamsObject, std::string(kNotOfClaims) + "JSON_TYPE(params)='OBJECT'") +
                    ",\n"
              : std::string()) +
         Constraint(table, "params_size", std::string(kNotOfClaims) + "LENGTH(params) <= 65536") + ",\n" +
         Constraint(table, "count_range",
                    "attempt <= " + count + " AND failures <= " + count + " AND crashes <= " + count) +
         "\n" + kEngine;
}

std::string EndedTable(const std::string& name, std::uint32_t slices, const std::string& own) {
  const std::string claim = Varchar("claimed_by", 64, "NULL") + "  claimed_at DATETIME(6) NULL,\n";
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n" + Kept(slices, "", claim) + own +
         "  finished_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n  " + kExpiresAt +
         ",\n  PRIMARY KEY (id)\n" + kEngine;
}

// One pool's part of the view; `claim` says who claimed the task, and when.
std::string ViewOf(const std::string& pool, const std::string& claim, const std::string& rest) {
  return "SELECT id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes," +
         claim + ",last_error,progress,created_at," + rest + ",expires_at FROM " + pool;
}

std::string View(const TableName& table) {
  const std::string claim =
      "CASE WHEN claimed_by=0 THEN NULL ELSE COALESCE((SELECT i.id FROM millrace_incarnations i WHERE "
      "i.number=claimed_by),CONCAT('#',claimed_by)) END AS claimed_by,"
      "CASE WHEN claimed_by=0 THEN NULL ELSE claimed_at END AS claimed_at";
  const std::string ended = "claimed_by,claimed_at";
  return "CREATE OR REPLACE VIEW " + table + "_all AS\n  " +
         ViewOf(std::string(table.text()), claim, "NULL AS result,NULL AS error_class,NULL AS finished_at") +
         "\n  UNION ALL " + ViewOf(table + "_done", ended, "result,NULL,finished_at") + "\n  UNION ALL " +
         ViewOf(table + "_failed", ended, "NULL,error_class,finished_at");
}

std::string Attempts(const std::string& name) {
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n" + Varchar("task_table", 48, "NOT NULL") +
         "  task_id BIGINT UNSIGNED NOT NULL,\n  attempt INT UNSIGNED NOT NULL,\n"
         "  at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n" +
         Varchar("incarnation", 64, "NOT NULL DEFAULT ''") + Varchar("kind", 16, "NOT NULL") +
         "  error_class VARCHAR(64) NOT NULL DEFAULT '',\n  message TEXT NULL,\n"
         "  PRIMARY KEY (task_table,task_id,attempt)\n" +
         kEngine;
}

std::string Keys(const std::string& name) {
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n" + Varchar("handler", 64, "NOT NULL") +
         "  biz_key VARBINARY(190) NOT NULL,\n" + Varchar("task_table", 48, "NOT NULL") +
         "  task_id BIGINT UNSIGNED NOT NULL,\n  entered_at DATETIME(6) NOT NULL DEFAULT "
         "(UTC_TIMESTAMP(6)),\n"
         "  ended_at DATETIME(6) NULL,\n  keep_until DATETIME(6) NULL,\n  PRIMARY KEY (handler,biz_key),\n"
         "  KEY by_key (biz_key)\n" +
         kEngine;
}

std::string Counters(const std::string& name) {
  std::string sums;
  for (const char* column : {"succeeded", "cancelled", "failed", "attempts_failed"}) {
    sums += std::string("  ") + column + " BIGINT NOT NULL DEFAULT 0,\n";
  }
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n" + Varchar("task_table", 48, "NOT NULL") +
         Varchar("handler", 64, "NOT NULL") + "  batch VARCHAR(64) NOT NULL DEFAULT '',\n" +
         Varchar("incarnation", 64, "NOT NULL DEFAULT ''") + sums +
         "  PRIMARY KEY (task_table,handler,batch,incarnation)\n" + kEngine;
}

std::string Batches(const std::string& name) {
  std::string counts;
  for (const char* column : {"added", "succeeded", "cancelled", "failed"})
    counts += std::string("  ") + column + " BIGINT NOT NULL DEFAULT 0,\n";
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n  name VARCHAR(64) NOT NULL PRIMARY KEY,\n" +
         Varchar("state", 8, "NOT NULL DEFAULT 'open'") +
         "  stays_open TINYINT NOT NULL DEFAULT 0,\n  parts MEDIUMTEXT NOT NULL,\n" +
         Varchar("callback_table", 48, "NOT NULL") +
         "  on_success MEDIUMTEXT NULL,\n  on_end MEDIUMTEXT NULL,\n  made_by VARCHAR(190) NOT NULL,\n"
         "  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n  closed_at DATETIME(6) NULL,\n"
         "  ended_at DATETIME(6) NULL,\n" +
         Varchar("outcome", 16, "NOT NULL DEFAULT ''") +
         "  success_task VARCHAR(80) NOT NULL DEFAULT '',\n  end_task VARCHAR(80) NOT NULL DEFAULT '',\n" +
         counts + "  KEY by_state (state,name)\n" + kEngine;
}

}  // namespace

std::vector<Ddl> TaskTables(const TableName& table, std::uint32_t slices) {
  return {{std::string(table.text()), HotTable(std::string(table.text()), table, slices, Params::Objects)},
          {table + "_done", EndedTable(table + "_done", slices, "  result TEXT NULL,\n")},
          {table + "_failed",
           EndedTable(table + "_failed", slices, "  error_class VARCHAR(64) NOT NULL DEFAULT '',\n")},
          {table + "_all", View(table)}};
}

std::vector<Ddl> ShardTables(const std::string& prefix) {
  const auto make = [&](const std::string& name, const std::string& columns) {
    return Ddl{prefix + name, "CREATE TABLE IF NOT EXISTS " + prefix + name + " (\n" + columns + kEngine};
  };
  return {
      make("millrace_schema", Varchar("task_table", 48, "NOT NULL PRIMARY KEY") +
                                  "  slices INT UNSIGNED NOT NULL,\n  version INT UNSIGNED NOT NULL,\n"
                                  "  applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n"
                                  "  readable_by INT UNSIGNED NOT NULL DEFAULT 0\n"),
      make("millrace_incarnations",
           Varchar("id", 64, "NOT NULL PRIMARY KEY") +
               "  number BIGINT UNSIGNED NOT NULL,\n"
               "  worker VARCHAR(190) NOT NULL,\n  host VARCHAR(255) NOT NULL,\n  pid BIGINT NOT NULL,\n"
               "  lease_us BIGINT NOT NULL,\n  slices TEXT NOT NULL,\n"
               "  started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n  dead TINYINT NOT NULL "
               "DEFAULT 0,\n  UNIQUE KEY number (number)\n"),
      make("millrace_beats",
           Varchar("id", 64, "NOT NULL PRIMARY KEY") + "  beat BIGINT UNSIGNED NOT NULL DEFAULT 0\n"),
      {prefix + "tasks_keys", Keys(prefix + "tasks_keys")},
      {prefix + "millrace_attempts", Attempts(prefix + "millrace_attempts")},
      {prefix + "millrace_counters", Counters(prefix + "millrace_counters")},
      make("millrace_audit",
           "  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,\n"
           "  at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n  actor VARCHAR(190) NOT NULL,\n"
           "  action VARCHAR(32) NOT NULL,\n  subject VARCHAR(190) NOT NULL,\n  detail MEDIUMTEXT NULL\n"),
      make("millrace_pauses",
           "  what VARCHAR(190) NOT NULL PRIMARY KEY,\n  actor VARCHAR(190) NOT NULL,\n"
           "  since DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))\n"),
      make("millrace_schedules",
           Varchar("name", 64, "NOT NULL PRIMARY KEY") + Varchar("rhythm", 400, "NOT NULL") +
               "  anchor DATETIME(6) NOT NULL,\n  next_at DATETIME(6) NULL,\n  last_at DATETIME(6) NULL,\n"
               "  paused TINYINT NOT NULL DEFAULT 0,\n  config BIGINT UNSIGNED NOT NULL DEFAULT 0,\n" +
               Varchar("task_table", 48, "NOT NULL DEFAULT ''") +
               "  task_id BIGINT UNSIGNED NOT NULL DEFAULT 0,\n  fired BIGINT UNSIGNED NOT NULL DEFAULT 0,\n"
               "  lapsed BIGINT UNSIGNED NOT NULL DEFAULT 0,\n"
               "  moved_to VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''\n"),
      make("millrace_fan_outs",
           Varchar("schedule", 64, "NOT NULL") + "  firing DATETIME(6) NOT NULL,\n" +
               Varchar("handler", 64, "NOT NULL") + Varchar("task_table", 48, "NOT NULL") +
               "  from_query MEDIUMTEXT NOT NULL,\n  key_template VARCHAR(256) NOT NULL,\n" +
               Varchar("zone", 64, "NOT NULL") +
               "  place MEDIUMTEXT NULL,\n  submitted BIGINT UNSIGNED NOT NULL,\n"
               "  refused BIGINT UNSIGNED NOT NULL,\n"
               "  started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n"
               "  PRIMARY KEY (schedule,firing)\n"),
      {prefix + "millrace_batches", Batches(prefix + "millrace_batches")},
      make("millrace_permits", Varchar("handler", 64, "NOT NULL") +
                                   "  number INT UNSIGNED NOT NULL,\n"
                                   "  turn BIGINT UNSIGNED NOT NULL DEFAULT 0,\n"
                                   "  incarnation BIGINT UNSIGNED NOT NULL DEFAULT 0,\n"
                                   "  task VARCHAR(190) NOT NULL DEFAULT '',\n"
                                   "  attempt INT UNSIGNED NOT NULL DEFAULT 0,\n"
                                   "  taken_at DATETIME(6) NOT NULL DEFAULT '1970-01-01',\n"
                                   "  PRIMARY KEY (handler,number)\n"),
  };
}

std::string NoteTable(const std::optional<TableName>& table, std::uint32_t slices) {
  return "INSERT INTO millrace_schema (task_table,slices,version,readable_by) VALUES (" +
         (table ? Quote(*table) : Quote("")) + "," + std::to_string(slices) + "," +
         std::to_string(kSchemaVersion) + "," + std::to_string(kReadableBy) +
         ") ON DUPLICATE KEY UPDATE task_table=VALUES(task_table)";
}

std::string SuccessorTable(const std::string& name, const TableName& table, std::uint32_t slices) {
  return HotTable(name, table, slices, Params::AnyJson);
}

}  // namespace millrace::engine::mysql
