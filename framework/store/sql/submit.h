// Adding tasks, within a transaction of the caller's.
#pragma once

#include <span>

#include "framework/store/sql/connection.h"
#include "framework/store/task_operations.h"

namespace millrace::engine::sql {

// Invalid for more than kMaxBatchRows.
Status CheckBatch(std::size_t rows);
// Leaves out the tasks whose key is taken. Invalid, with the place in the batch, for a task that may not be.
// An error leaves only ROLLBACK; Conflict: somebody entered one of the keys at the same moment.
Result<SubmitReport> Submit(Connection& db, const TableName& table, std::span<const NewTask> tasks);

}  // namespace millrace::engine::sql
