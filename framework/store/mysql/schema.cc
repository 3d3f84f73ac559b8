#include <algorithm>

#include "framework/store/mysql/ddl.h"
#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/schema.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

std::vector<std::string> Statements(const SchemaSpec& spec) {
  std::vector<std::string> statements;
  for (const Ddl& ddl : ShardTables("")) statements.push_back(ddl.sql);
  for (const TableName& table : TableNames(spec)) {
    for (const Ddl& ddl : TaskTables(table, spec.slices)) statements.push_back(ddl.sql);
  }
  statements.push_back(NoteTable(std::nullopt, 0));
  for (const TableName& table : TableNames(spec)) statements.push_back(NoteTable(table, spec.slices));
  return statements;
}

}  // namespace

std::string MysqlSchemaStore::Print(const SchemaSpec& spec) const {
  std::string text = "-- Millrace, schema version " + std::to_string(kSchemaVersion) +
                     ", for MySQL 8.0.16+ and MariaDB 10.6+\n";
  for (const std::string& sql : Statements(spec)) text += sql + ";\n\n";
  return text;
}

Status MysqlSchemaStore::Apply(const SchemaSpec& spec) {
  BOOST_OUTCOME_TRYV(CheckSpec(spec));
  BOOST_OUTCOME_TRYV(CheckApply(spec));
  // Others may be making the same tables at this moment.
  BOOST_OUTCOME_TRYV(session_.Write("SET SESSION lock_wait_timeout=10"));
  for (const std::string& sql : Statements(spec)) {
    BOOST_OUTCOME_TRYV(session_.Write(sql));
  }
  return {};
}

// One jump over the index for each slice beyond.
Status MysqlSchemaStore::ReadBeyond(std::vector<TableInfo>& tables) {
  for (std::size_t at = 0; at < tables.size(); at += kTablesPerQuery) {
    const std::size_t end = std::min(at + kTablesPerQuery, tables.size());
    std::string sql;
    for (std::size_t i = at; i < end; ++i) {
      sql += (sql.empty() ? "SELECT " : " UNION ALL SELECT ") + std::to_string(i) + ",MAX(slice) FROM " +
             tables[i].table + " FORCE INDEX (due)";
    }
    std::vector<std::size_t> longer;
    BOOST_OUTCOME_TRYV(session_.Query(sql, [&](const Row& row) {
      const auto i = static_cast<std::size_t>(row.Number(1));
      if (!row.Null(2) && row.Number(2) >= tables[i].slices) longer.push_back(i);
    }));
    for (const std::size_t i : longer) {
      TableInfo& info = tables[i];
      BOOST_OUTCOME_TRYV(session_.Query(
          "SELECT DISTINCT slice FROM " + info.table +
              " FORCE INDEX (due) WHERE slice>=" + std::to_string(info.slices) + " ORDER BY slice",
          [&](const Row& row) { info.beyond.push_back(static_cast<std::uint32_t>(row.Number(1))); }));
    }
  }
  return {};
}

Result<std::vector<std::uint64_t>> MysqlSchemaStore::Strays(const TableName& table, std::uint32_t slices,
                                                            std::size_t limit) {
  std::vector<std::uint64_t> ids;
  BOOST_OUTCOME_TRYV(session_.Query("SELECT id FROM " + table +
                                        " FORCE INDEX (due) WHERE slice>=" + std::to_string(slices) +
                                        " AND state IN (0,3) LIMIT " + std::to_string(limit),
                                    [&](const Row& row) { ids.push_back(row.Number(1)); }));
  return ids;
}

Status MysqlSchemaStore::SetDefault(const TableName& table, std::uint32_t slices) {
  for (const char* pool : {"", "_done", "_failed"}) {
    BOOST_OUTCOME_TRYV(session_.Write("ALTER TABLE " + table + pool +
                                      " ALTER COLUMN slice SET DEFAULT (FLOOR(RAND()*" +
                                      std::to_string(slices) + "))"));
  }
  return {};
}

Status MysqlSchemaStore::Resize(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(CheckSlices(slices));
  BOOST_OUTCOME_TRY(present, SlicesOf(table));
  // Whoever waits for a table that others have open holds up all who come later: a moment, then try again.
  BOOST_OUTCOME_TRYV(session_.Write("SET SESSION lock_wait_timeout=1"));
  // A plan covers the wider of the two at every moment.
  if (slices >= present) {
    BOOST_OUTCOME_TRYV(SetNumber(table, slices));
    return SetDefault(table, slices);
  }
  BOOST_OUTCOME_TRYV(SetDefault(table, slices));
  return SetNumber(table, slices);
}

std::unique_ptr<SchemaStore> OpenSchema(const Endpoint& endpoint) {
  return std::make_unique<MysqlSchemaStore>(endpoint);
}

}  // namespace millrace::engine::mysql
