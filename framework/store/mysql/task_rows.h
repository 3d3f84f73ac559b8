// Reading whole tasks from a pool.
#pragma once

#include <string>

#include "framework/store/mysql/session.h"
#include "framework/task/task.h"

namespace millrace::engine::mysql {

// The columns that ReadTask expects, in its order; all pools have them (but for `cancel`).
std::string TaskColumns(bool hot);
inline constexpr unsigned kTaskColumns = 18;
Task ReadTask(const TableName& table, const Row& row);

}  // namespace millrace::engine::mysql
