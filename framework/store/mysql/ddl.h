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
// The hot table that is to take the place of an older `table`, under another name for as long as both are
// there. It lacks the constraint kParamsObject.
inline constexpr char kParamsObject[] = "params_object";
std::string SuccessorTable(const std::string& name, const TableName& table, std::uint32_t slices);
inline constexpr char kNeverClaimed[] = "1970-01-01 00:00:00.000000";
// Version 4's column, last in each of the three pools: where old servers add one without touching a row.
inline constexpr char kExpiresAt[] = "expires_at DATETIME(6) NULL";
// The tables of the shard. `prefix` stands before each name: empty but for the scratch copies of a check.
std::vector<Ddl> ShardTables(const std::string& prefix);
// What notes in millrace_schema that a task table exists; nullopt notes the schema's version.
std::string NoteTable(const std::optional<TableName>& table, std::uint32_t slices);

}  // namespace millrace::engine::mysql
