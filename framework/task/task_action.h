// What people do with tasks: which action fits which state, and what comes of it. The commands, the stores
// and their tests read this one table. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/task/task.h"

namespace millrace::engine {

enum class TaskAction {
  Retry,    // back to waiting, due now, failures and crashes 0
  Cancel,   // to the finished pool; a running task is asked to stop
  Hold,     // not to be processed until released
  Release,  // of a held task
  Edit,     // what a TaskEdit says; its state stays
};

// What an edit sets; absent members stay as they are.
struct TaskEdit {
  std::optional<std::uint32_t> priority;
  std::optional<WallTime> run_at;
  std::optional<Micros> delay;  // instead of run_at: after the database's now
  std::optional<std::string> params;
  // Not to be started from then on; at most one of the two.
  std::optional<WallTime> expires_at = {};
  std::optional<Micros> expires_in = {};  // after the database's now
  bool SetsDueTime() const { return run_at || delay; }
  bool SetsExpiry() const { return expires_at || expires_in; }
  bool SetsTimes() const { return SetsDueTime() || SetsExpiry(); }
};
// Invalid, with the reason, for an edit of nothing and for what no new task could have either (see Validate).
// That the params are well formed the store's constraint or the caller checks.
Status Validate(const TaskEdit& edit);

// As the command is called, and as millrace_audit says it.
const char* ToString(TaskAction action);

// The state of a task afterwards; nullopt: the action leaves it alone. `edit` is that of TaskAction::Edit:
// one that sets times leaves a failed task alone, which is due when it is retried.
std::optional<TaskState> StateAfter(TaskAction action, TaskState before, const TaskEdit& edit = {});
// The states of tasks that it changes.
std::vector<TaskState> StatesFor(TaskAction action, const TaskEdit& edit = {});
// Why it leaves a task of this state alone, for whoever asked for it.
const char* Refusal(TaskAction action, TaskState before);

}  // namespace millrace::engine
