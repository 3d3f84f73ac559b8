// The due map by a loose index scan: one seek for each due group, whatever the number of rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/store/due_scope.h"
#include "framework/store/sqlite/connection.h"

namespace millrace::engine {

// The statements of the walk, for the schema check too.
std::string FirstGroupSql(const TableName& table);
std::string NextUrgencySql(const TableName& table);
std::string NextHandlerSql(const TableName& table);

// Appends the groups of one table, in order. Inside a read transaction where several tables must agree.
Status ReadDueGroups(SqliteConnection& db, const DueScope& scope, std::vector<DueGroup>& groups);

}  // namespace millrace::engine
