// The DDL: one text for MySQL 8.0.16+ and MariaDB 10.6+. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/schema_store.h"

namespace millrace::engine::mysql {

struct Ddl {
  std::string name;  // the table or view
  std::string sql;   // CREATE … IF NOT EXISTS, or CREATE OR REPLACE VIEW
};

// The three pools of a task table and the view over them.
std::vector<Ddl> TaskTables(const TableName& table, std::uint32_t slices);
// A scratch table with the CHECKs of a task table in the forms that were made before. A check of the schema
// takes them for good: they let a little more through, and no table is altered for it.
Ddl FormerChecks(const TableName& name);
// The tables of the shard. `prefix` stands before each name: empty but for the scratch copies of a check.
std::vector<Ddl> ShardTables(const std::string& prefix);
// What notes in millrace_schema that a task table exists; nullopt notes the schema's version.
std::string NoteTable(const std::optional<TableName>& table, std::uint32_t slices);

}  // namespace millrace::engine::mysql
