// Reading whole tasks from a pool.
#pragma once

#include <string>

#include "framework/store/sql/connection.h"
#include "framework/task/task.h"

namespace millrace::engine::sql {

// The columns that ReadTask expects, in its order; all pools have them (but for `cancel`).
std::string TaskColumns(bool hot);
inline constexpr unsigned kTaskColumns = 18;
Task ReadTask(const TableName& table, const Row& row);

}  // namespace millrace::engine::sql
