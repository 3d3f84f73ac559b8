// Adding tasks, within a transaction of the caller's.
#pragma once

#include <span>
#include <string>

#include "framework/store/mysql/session.h"
#include "framework/store/task_desk.h"

namespace millrace::engine::mysql {

// Leaves out the tasks whose key is taken. An error leaves only ROLLBACK; Conflict: somebody entered one of
// the keys at the same moment.
Result<SubmitReport> RunSubmit(Session& session, const TableName& table, std::span<const NewTask> tasks);

}  // namespace millrace::engine::mysql
