// What people do to tasks: retry, cancel, hold, release. Runs inside a transaction that the caller has open.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/store/sqlite/connection.h"
#include "framework/store/task_desk.h"

namespace millrace::engine {

// Returns the ids that were changed; each has its row in millrace_audit.
Result<std::vector<std::uint64_t>> ApplyAction(SqliteConnection& db, TaskAction action,
                                               const TableName& table, std::span<const std::uint64_t> ids,
                                               const std::string& actor);

}  // namespace millrace::engine
