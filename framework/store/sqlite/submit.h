// Adding tasks, with their keys. Runs inside a transaction that the caller has open.
#pragma once

#include <span>
#include <string>

#include "framework/store/sqlite/connection.h"
#include "framework/store/task_desk.h"

namespace millrace::engine {

// Invalid, with the place in the batch, for a task that may not be; the caller rolls back.
Result<SubmitReport> SubmitBatch(SqliteConnection& db, const TableName& table,
                                 std::span<const NewTask> tasks);

}  // namespace millrace::engine
