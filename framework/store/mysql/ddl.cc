#include "framework/store/mysql/ddl.h"

#include "framework/store/mysql/sql_text.h"
#include "framework/task/task.h"

namespace millrace::engine::mysql {
namespace {

constexpr const char* kEngine = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";
// Names compare by their bytes. VARBINARY for keys, since even utf8mb4_bin takes 'a' and 'a ' for equal.
constexpr const char* kName = " CHARACTER SET ascii COLLATE ascii_bin";

// Not one pattern with a `$` at its end, which both servers also find before a last newline.
constexpr const char* kHandlerCheck = "handler REGEXP '^[a-z]' AND handler NOT REGEXP '[^a-z0-9_.]'";
constexpr const char* kFormerHandlerCheck = "handler REGEXP '^[a-z][a-z0-9_.]*$'";

std::string Varchar(const std::string& name, int length, const std::string& rest) {
  return "  " + name + " VARCHAR(" + std::to_string(length) + ")" + kName + " " + rest + ",\n";
}

// The columns that a task keeps for life.
std::string Kept(std::uint32_t slices, const std::string& id) {
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
         Varchar("claimed_by", 64, "NULL") +
         "  claimed_at DATETIME(6) NULL,\n"
         "  last_error TEXT NULL,\n"
         "  progress TEXT NULL,\n"
         "  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n";
}

std::string HotTable(const TableName& table, std::uint32_t slices) {
  const std::string count = std::to_string(kMaxCount);
  return "CREATE TABLE IF NOT EXISTS " + table + " (\n" + Kept(slices, " AUTO_INCREMENT") +
         "  cancel TINYINT NOT NULL DEFAULT 0,\n"
         "  updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n"
         "  urgency TINYINT UNSIGNED GENERATED ALWAYS AS (IF(state=3, NULL, priority*10 + "
         "LEAST(failures,9))) STORED,\n"
         "  PRIMARY KEY (id),\n"
         "  KEY due (slice,handler,urgency,run_at),\n"
         "  CONSTRAINT " +
         table + "_slice CHECK (slice < " + std::to_string(kMaxSlices) +
         "),\n"
         "  CONSTRAINT " +
         table +
         "_state CHECK (state IN (0,2,3)),\n"
         "  CONSTRAINT " +
         table +
         "_claimer CHECK (state <> 2 OR (claimed_by IS NOT NULL AND claimed_by <> '')),\n"
         "  CONSTRAINT " +
         table + "_handler CHECK (" + kHandlerCheck +
         "),\n"
         "  CONSTRAINT " +
         table +
         "_priority CHECK (priority <= 9),\n"
         "  CONSTRAINT " +
         table +
         "_params CHECK (JSON_VALID(params)),\n"
         "  CONSTRAINT " +
         table +
         "_size CHECK (LENGTH(params) <= 65536),\n"
         "  CONSTRAINT " +
         table + "_counts CHECK (attempt <= " + count + " AND failures <= " + count +
         " AND crashes <= " + count + ")\n" + kEngine;
}

std::string EndedTable(const std::string& name, std::uint32_t slices, const std::string& own) {
  return "CREATE TABLE IF NOT EXISTS " + name + " (\n" + Kept(slices, "") + own +
         "  finished_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n  PRIMARY KEY (id)\n" + kEngine;
}

std::string View(const TableName& table) {
  const std::string shared =
      "id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,claimed_by,"
      "claimed_at,"
      "last_error,progress,created_at,";
  return "CREATE OR REPLACE VIEW " + table + "_all AS\n  SELECT " + shared +
         "NULL AS result,NULL AS error_class,NULL AS finished_at FROM " + table + "\n  UNION ALL SELECT " +
         shared + "result,NULL,finished_at FROM " + table + "_done\n  UNION ALL SELECT " + shared +
         "NULL,error_class,finished_at FROM " + table + "_failed";
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

}  // namespace

std::vector<Ddl> TaskTables(const TableName& table, std::uint32_t slices) {
  return {{std::string(table.text()), HotTable(table, slices)},
          {table + "_done", EndedTable(table + "_done", slices, "  result TEXT NULL,\n")},
          {table + "_failed",
           EndedTable(table + "_failed", slices, "  error_class VARCHAR(64) NOT NULL DEFAULT '',\n")},
          {table + "_all", View(table)}};
}

Ddl FormerChecks(const TableName& name) {
  return {std::string(name.text()), "CREATE TABLE IF NOT EXISTS " + name + " (\n" +
                                        Varchar("handler", 64, "NOT NULL") + "  CONSTRAINT " + name +
                                        "_handler CHECK (" + kFormerHandlerCheck + ")\n" + kEngine};
}

std::vector<Ddl> ShardTables(const std::string& prefix) {
  const auto make = [&](const std::string& name, const std::string& columns) {
    return Ddl{prefix + name, "CREATE TABLE IF NOT EXISTS " + prefix + name + " (\n" + columns + kEngine};
  };
  return {
      make("millrace_schema", Varchar("task_table", 48, "NOT NULL PRIMARY KEY") +
                                  "  slices INT UNSIGNED NOT NULL,\n  version INT UNSIGNED NOT NULL,\n"
                                  "  applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))\n"),
      make("millrace_incarnations",
           Varchar("id", 64, "NOT NULL PRIMARY KEY") +
               "  worker VARCHAR(190) NOT NULL,\n  host VARCHAR(255) NOT NULL,\n  pid BIGINT NOT NULL,\n"
               "  lease_us BIGINT NOT NULL,\n  slices TEXT NOT NULL,\n"
               "  started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),\n  dead TINYINT NOT NULL "
               "DEFAULT 0\n"),
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
  };
}

std::string NoteTable(const std::optional<TableName>& table, std::uint32_t slices) {
  return "INSERT INTO millrace_schema (task_table,slices,version) VALUES (" +
         (table ? Quote(*table) : Quote("")) + "," + std::to_string(slices) + "," +
         std::to_string(kSchemaVersion) + ") ON DUPLICATE KEY UPDATE task_table=VALUES(task_table)";
}

}  // namespace millrace::engine::mysql
