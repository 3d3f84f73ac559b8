// Reading tasks from the three pools of a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/store/sqlite/connection.h"
#include "framework/store/task_desk.h"

namespace millrace::engine {

// In the order of a page: first what runs or waits, then what failed, then what is finished.
enum class Pool { Tasks, Failed, Done };

std::string PoolTable(const TableName& table, Pool pool);
// SELECT with the columns of ReadRecord from `source`, which is the pool or a part of it.
std::string RecordSql(Pool pool, const std::string& source);
TaskRecord ReadRecord(const SqliteRows& row, const TableName& table);

// The task, in whichever pool it stands; nullopt: in none.
Result<std::optional<TaskRecord>> FindRecord(SqliteConnection& db, const TaskKey& key);

// One page behind `after` ("POOL:ID"; empty: from the start). Reads a bounded number of rows, so a page may
// be short, or empty, and still have a next one.
Result<TaskPage> ReadPage(SqliteConnection& db, const TableName& table, const TaskFilter& filter,
                          const std::string& after, std::size_t limit);

}  // namespace millrace::engine
