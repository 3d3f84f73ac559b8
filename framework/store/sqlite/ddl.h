// The DDL of an SQLite shard, as texts that the sqlite3 command runs too. Pure.
#pragma once

#include <string>
#include <vector>

#include "framework/store/schema_store.h"

namespace millrace::engine::sqlite {

// An object of the schema and the statement that makes it.
struct SchemaObject {
  std::string kind;  // table, index, view
  std::string name;
  std::string create;
};

std::vector<SchemaObject> ShardObjects();
std::vector<SchemaObject> TaskTableObjects(const TableName& table, std::uint32_t slices);
// A task table's statement for one that takes the rows of an older table, whose params may be any JSON.
std::string WithAnyJson(std::string create);
// What a task table's checks say beyond those of its first versions, which older tables go on with; and a
// statement without it, for a table that takes the rows of an older one.
std::vector<std::string> AddedToChecks();
std::string WithFirstChecks(std::string create);
// The names of the columns in a table's statement.
std::vector<std::string> ColumnsOf(const std::string& create);
inline constexpr char kNeverClaimed[] = "1970-01-01 00:00:00.000000";
// Version 4's column, the last of its table: as ALTER TABLE adds it, so that an upgraded table reads like a
// new one.
std::string ExpiryColumn(bool hot);
// The default of the column `slice`.
std::string SliceDefault(std::uint32_t slices);
// The row of millrace_schema for a task table, nullopt for the schema's version, as an INSERT that leaves an
// existing row alone.
std::string SchemaRow(const std::optional<TableName>& table, std::uint32_t slices);

}  // namespace millrace::engine::sqlite
