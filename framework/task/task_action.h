// What people do with tasks: which action fits which state, and what comes of it. The commands, the stores
// and their tests read this one table. Pure.
#pragma once

#include <optional>
#include <vector>

#include "framework/task/task.h"

namespace millrace::engine {

enum class TaskAction {
  Retry,    // back to waiting, due now, failures and crashes 0
  Cancel,   // to the finished pool; a running task is asked to stop
  Hold,     // not to be processed until released
  Release,  // of a held task
};
// As the command is called, and as millrace_audit says it.
const char* ToString(TaskAction action);

// The state of a task afterwards; nullopt: the action leaves it alone.
std::optional<TaskState> StateAfter(TaskAction action, TaskState before);
// The states of tasks that it changes.
std::vector<TaskState> StatesFor(TaskAction action);
// Why it left a task alone, for whoever asked for it.
const char* Refusal(TaskAction action);

}  // namespace millrace::engine
