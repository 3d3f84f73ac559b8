// The changes of rows that more than one session of the memory store makes, and those of people.
#pragma once

#include <span>
#include <string>

#include "framework/store/task_store.h"
#include "framework/testing/memory_state.h"

namespace millrace::engine {

// All or none.
Result<SubmitReport> SubmitTo(MemoryState& state, const TableName& table, std::span<const NewTask> tasks,
                              WallTime now);

SettleReport SettleIn(MemoryState& state, const std::string& incarnation, std::span<const Settlement> batch,
                      WallTime now);

// Whether the task was there in a state that the action changes.
bool ActOn(MemoryState& state, TaskAction action, const TaskKey& key, WallTime now);

}  // namespace millrace::engine
