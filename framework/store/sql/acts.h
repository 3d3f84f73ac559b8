// What people did, as millrace_audit has it: one row for a task, or one for all tasks of a step of an act of
// many, with their ids, so that a million tasks are a thousand rows and each can be asked who did it.
#pragma once

#include <map>
#include <span>
#include <string>

#include "framework/store/sql/connection.h"
#include "framework/store/task_operations.h"

namespace millrace::engine::sql {

struct TaskBefore {
  TaskState state = TaskState::Waiting;
  std::string values = {};  // of what an edit sets; empty: nothing
};

// 1-3,7: of sorted ids.
std::string IdRanges(std::span<const std::uint64_t> ids);

// `tasks` as they were, at least one; `change`: what an edit set. Within the transaction of the act.
Status NoteAct(Connection& db, const Author& author, TaskAction action, const TableName& table,
               const std::map<std::uint64_t, TaskBefore>& tasks, const std::string& change = {});

}  // namespace millrace::engine::sql
