#include "framework/store/mysql/ddl.h"
#include "framework/store/mysql/mysql_schema.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

Status Validate(const SchemaSpec& spec) {
  if (spec.tables >= 1 && spec.tables <= 1000) return CheckSlices(spec.slices);
  return Fail(ErrorCode::Invalid, std::to_string(spec.tables) + " task tables; a shard takes 1 to 1000");
}

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
  BOOST_OUTCOME_TRYV(Validate(spec));
  auto present = ReadTables();
  if (!present && present.error().code != ErrorCode::NotFound) return Fail(present.error());
  for (const TableName& table : TableNames(spec)) {
    if (!present) break;
    for (const TableInfo& info : *present) {
      if (info.table != table || info.slices == spec.slices) continue;
      return Fail(ErrorCode::Conflict, session_.where() + ": the table " + table + " has " +
                                           std::to_string(info.slices) + " slices, not " +
                                           std::to_string(spec.slices) +
                                           "; leave --slices out, or use another database");
    }
  }
  for (const std::string& sql : Statements(spec)) {
    BOOST_OUTCOME_TRYV(session_.Write(sql));
  }
  return {};
}

Error NoTableName(const Session& session, const std::string& name) {
  return {ErrorCode::Invalid, session.where() + ": millrace_schema names a table '" + Shorten(name, 60) +
                                  "', which can't be one of tasks: remove its row"};
}

Result<std::vector<TableInfo>> MysqlSchemaStore::ReadTables() {
  std::vector<TableInfo> tables;
  std::optional<Error> forged;
  std::uint32_t version = 0;
  Status read = session_.Query("SELECT task_table,slices,version FROM millrace_schema ORDER BY task_table",
                               [&](const Row& row) {
                                 const std::string name = row.Text(1);
                                 if (name.empty()) {
                                   version = static_cast<std::uint32_t>(row.Number(3));
                                 } else if (const auto table = ParseTableName(name)) {
                                   tables.push_back({*table, static_cast<std::uint32_t>(row.Number(2))});
                                 } else if (!forged) {
                                   forged = NoTableName(session_, name);
                                 }
                               });
  if (!read && session_.last_code() != kNoSuchTable) return Fail(read.error());
  if (forged) return Fail(*forged);
  if (tables.empty()) {
    return Fail(ErrorCode::NotFound,
                session_.where() + ": there are no task tables: run `millrace schema apply`");
  }
  BOOST_OUTCOME_TRYV(CheckVersion(version, session_.where()));
  return tables;
}

Result<std::vector<TableInfo>> MysqlSchemaStore::Tables() {
  BOOST_OUTCOME_TRY(tables, ReadTables());
  BOOST_OUTCOME_TRYV(ReadBeyond(tables));
  return tables;
}

std::unique_ptr<SchemaStore> OpenSchema(const Endpoint& endpoint) {
  return std::make_unique<MysqlSchemaStore>(endpoint);
}

}  // namespace millrace::engine::mysql
