#include "framework/task/task_action.h"

namespace millrace::engine {
namespace {

struct Transition {
  TaskAction action;
  TaskState before;
  TaskState after;
};

// Everything else is left alone: what has ended well stays so, and a row that runs is its worker's.
constexpr Transition kTransitions[] = {
    {TaskAction::Retry, TaskState::Failed, TaskState::Waiting},
    {TaskAction::Retry, TaskState::Waiting, TaskState::Waiting},
    {TaskAction::Cancel, TaskState::Waiting, TaskState::Cancelled},
    {TaskAction::Cancel, TaskState::Held, TaskState::Cancelled},
    {TaskAction::Cancel, TaskState::Failed, TaskState::Cancelled},
    {TaskAction::Cancel, TaskState::Running, TaskState::Running},
    {TaskAction::Hold, TaskState::Waiting, TaskState::Held},
    {TaskAction::Release, TaskState::Held, TaskState::Waiting},
    {TaskAction::Edit, TaskState::Waiting, TaskState::Waiting},
    {TaskAction::Edit, TaskState::Held, TaskState::Held},
    {TaskAction::Edit, TaskState::Failed, TaskState::Failed},
};

std::optional<TaskState> Find(TaskAction action, TaskState before) {
  for (const Transition& transition : kTransitions) {
    if (transition.action == action && transition.before == before) return transition.after;
  }
  return std::nullopt;
}

struct Words {
  const char* name;
  const char* refusal;
};

constexpr Words kWords[] = {{"retry", "a failed or waiting task can be retried"},  // in the enum's order
                            {"cancel", "it has ended already"},
                            {"hold", "a waiting task can be held"},
                            {"release", "a held task can be released"},
                            {"edit", "a waiting, held or failed task can be edited"}};

}  // namespace

Status Validate(const TaskEdit& edit) {
  if (!edit.priority && !edit.params && !edit.SetsTimes())
    return Fail(ErrorCode::Invalid,
                "an edit that sets neither priority, due time, params nor expiry changes nothing");
  NewTask task{.handler = "any", .priority = edit.priority};
  if (edit.params) task.params = *edit.params;
  return Validate(task);
}

const char* ToString(TaskAction action) { return kWords[static_cast<int>(action)].name; }

std::optional<TaskState> StateAfter(TaskAction action, TaskState before, const TaskEdit& edit) {
  if (action == TaskAction::Edit && before == TaskState::Failed && edit.SetsTimes()) return std::nullopt;
  return Find(action, before);
}

std::vector<TaskState> StatesFor(TaskAction action, const TaskEdit& edit) {
  std::vector<TaskState> states;
  for (const Transition& transition : kTransitions) {
    if (transition.action == action && StateAfter(action, transition.before, edit))
      states.push_back(transition.before);
  }
  return states;
}

const char* Refusal(TaskAction action, TaskState before) {
  // The action fits its state: only what it sets does not.
  if (Find(action, before)) return "it is due when it is retried; leave its times out";
  return kWords[static_cast<int>(action)].refusal;
}

}  // namespace millrace::engine
