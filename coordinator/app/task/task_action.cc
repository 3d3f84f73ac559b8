// millrace task retry, cancel, hold, release and edit: by name, by key, or all that match.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/task/task_bulk.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct TaskActionOptions {
  TaskChoice choice;
  TaskAction action = TaskAction::Retry;
  bool all_matching = false;
  bool yes = false;
  bool dry_run = false;
  std::string rate;
  // Of an edit:
  std::optional<std::uint32_t> priority;
  std::string at;
  std::string in;
  std::string params;
  std::string expires_at;
  std::string expires_in;
};

struct Acted {
  std::uint64_t matched = 0;
  std::uint64_t changed = 0;
  std::uint64_t asked = 0;  // of those changed, that run and were asked to stop
  bool stopped = false;     // by a signal, before the end
};

// `Retry 3 tasks?`
std::string VerbOf(TaskAction action) {
  std::string verb = ToString(action);
  verb[0] = static_cast<char>(verb[0] - 'a' + 'A');
  return verb;
}

// What a bulk action means where --state is left out.
std::optional<TaskState> StateMeant(TaskAction action) {
  if (action == TaskAction::Retry) return TaskState::Failed;
  if (action == TaskAction::Hold) return TaskState::Waiting;
  if (action == TaskAction::Release) return TaskState::Held;
  return std::nullopt;
}

Result<TaskEdit> EditOf(const TaskActionOptions& options) {
  TaskEdit edit;
  if (options.action != TaskAction::Edit) return edit;
  if (!options.at.empty() && !options.in.empty()) return Fail(ErrorCode::Invalid, "give either --at or --in");
  if (!options.expires_at.empty() && !options.expires_in.empty())
    return Fail(ErrorCode::Invalid, "give either --expires-at or --expires-in");
  edit.priority = options.priority;
  BOOST_OUTCOME_TRYV(ReadIfGiven("--at", options.at, ReadTime, edit.run_at));
  BOOST_OUTCOME_TRYV(ReadIfGiven("--in", options.in, ReadDuration, edit.delay));
  BOOST_OUTCOME_TRYV(ReadIfGiven("--expires-at", options.expires_at, ReadTime, edit.expires_at));
  BOOST_OUTCOME_TRYV(ReadIfGiven("--expires-in", options.expires_in, ReadDuration, edit.expires_in));
  if (!options.params.empty()) {
    BOOST_OUTCOME_TRYV(CheckParamsFlag(options.params));
    edit.params = options.params;
  }
  BOOST_OUTCOME_TRYV(Validate(edit));
  return edit;
}

std::string HowMany(const BulkPreview& preview) {
  return preview.more ? "10,000 or more tasks" : Count(preview.count, "task", "tasks");
}

void PrintPreview(const BulkPreview& preview, const BulkAct& act) {
  PrintNote(HowMany(preview) + (preview.count == 1 && !preview.more ? " matches" : " match") + " (" +
            act.filter_text + "):");
  for (const auto& [group, count] : preview.groups)
    PrintNote("  " + WithCommas(count) + (preview.more ? " or more " : " ") + ToString(group.second) +
              " of " + group.first);
  PrintNote("for example");
  for (const std::string& text : preview.example_texts) PrintNote("  " + Fit(text, TerminalWidth() - 3));
}

ordered_json ToJson(const BulkPreview& preview, const BulkAct& act) {
  ordered_json groups = ordered_json::array();
  for (const auto& [group, count] : preview.groups)
    groups.push_back({{"handler", group.first}, {"state", ToString(group.second)}, {"count", count}});
  return {{"matched", preview.count},
          {"more", preview.more},
          {"filter", act.filter_text},
          {"groups", groups},
          {"examples", preview.examples}};
}

void PrintResult(const TaskActionOptions& options, const Acted& acted) {
  std::string text = Count(acted.changed - acted.asked, "task", "tasks") + " " + PastOf(options.action);
  if (acted.asked > 0) {
    text = (acted.asked == acted.changed ? "" : text + "; ") +
           Count(acted.asked, "running task", "running tasks") +
           " asked to stop: the handler is told within 2 s";
  }
  const std::uint64_t left = acted.matched - std::min(acted.matched, acted.changed);
  if (options.all_matching && !acted.stopped && left > 0) {
    text += "; " + WithCommas(left) + " left alone: each had changed since the look, is so already, or " +
            "would expire before it is due";
  }
  if (acted.stopped) text += std::string("; stopped before the end: ") + AgainOf(options.action);
  PrintAnswer(options.choice.common,
              {{"matched", acted.matched},
               {"changed", acted.changed},
               {"asked_to_stop", acted.asked},
               {"stopped", acted.stopped}},
              text);
}

// Tasks that match and are edited still match: of those the order by their ids keeps the place.
Result<ExitCode> ActOnMatching(TaskShards& open, const TaskActionOptions& options, const TaskEdit& edit) {
  BulkAct act{.choice = options.choice, .action = options.action, .edit = edit};
  BOOST_OUTCOME_TRY(filter, FilterOf(options.choice));
  if (!filter.state && filter.error_class.empty()) filter.state = StateMeant(options.action);
  act.filter = std::move(filter);
  act.filter_text = FilterText(options.choice, act.filter);
  if (!options.rate.empty()) {
    auto rate = ParseRate(options.rate);
    if (!rate) return Fail(ErrorCode::Invalid, "--rate: " + rate.error().message);
    act.per_second = *rate;
  }
  BOOST_OUTCOME_TRY(preview, PreviewBulk(open, act));
  if (options.dry_run && options.choice.common.json) {
    PrintJson(ToJson(preview, act));
    return ExitCode::Done;
  }
  if (preview.count == 0) {
    PrintResult(options, {});
    return ExitCode::Done;
  }
  PrintPreview(preview, act);
  if (options.dry_run) return ExitCode::Done;
  const std::string question =
      VerbOf(options.action) + " " + (preview.count == 1 ? "it" : "all of them") + "?";
  BOOST_OUTCOME_TRYV(Confirm(question, options.yes));
  CatchStopSignals();
  BOOST_OUTCOME_TRY(result, RunBulk(open, act, preview));
  PrintResult(options,
              {std::max(preview.count, result.changed), result.changed, result.asked, result.stopped});
  return result.stopped ? ExitCode::SomethingFailed : ExitCode::Done;
}

// It is so already, which is as good: an edit may be given twice.
bool IsSo(const TaskActionOptions& options, const TaskEdit& edit, const Task& task) {
  return options.action == TaskAction::Edit && StateAfter(options.action, task.state) && !edit.SetsTimes() &&
         !edit.params && edit.priority == task.priority;
}

std::string WhyNot(const TaskActionOptions& options, const TaskEdit& edit, TaskState state) {
  if (!StateAfter(options.action, state, edit)) return Refusal(options.action, state);
  return edit.SetsTimes() ? "it would expire before it is due"
                          : "somebody else had it at that moment; give the same again";
}

// nullopt: there is none, and that was said.
Result<std::optional<Task>> TaskThere(TaskShards& open, const TaskName& name) {
  auto record = GetTask(open, name);
  if (record) return std::optional(std::move(record->task));
  if (record.error().code != ErrorCode::NotFound) return Fail(record.error());
  PrintError(record.error());
  return std::optional<Task>();
}

// Counts it, or says why it was left alone.
Status ActOnOne(TaskShards& open, const TaskActionOptions& options, const TaskEdit& edit,
                const TaskName& name, Acted& acted) {
  BOOST_OUTCOME_TRY(before, TaskThere(open, name));
  if (!before) return {};
  const std::vector<std::uint64_t> ids{name.key.id};
  TaskOperations& operations = open.Operations(name.shard);
  BOOST_OUTCOME_TRY(changed, options.action == TaskAction::Edit
                                 ? operations.Edit(edit, name.key.table, ids, Actor())
                                 : operations.Apply(options.action, name.key.table, ids, Actor()));
  if (!changed.empty()) {
    ++acted.changed;
    acted.asked += CountRunning(changed);
    return {};
  }
  // Looked at again: it may have been claimed, or have ended, since the first look.
  BOOST_OUTCOME_TRY(now, TaskThere(open, name));
  if (!now) return {};
  if (IsSo(options, edit, *now)) {
    ++acted.changed;
    return {};
  }
  PrintError(ToString(name) + " is " + ToString(now->state) +
             ", so nothing was changed: " + WhyNot(options, edit, now->state));
  return {};
}

Result<ExitCode> ActOnNamed(TaskShards& open, const TaskActionOptions& options, const TaskEdit& edit) {
  BOOST_OUTCOME_TRY(names, NamedTasks(open, options.choice));
  Acted acted{.matched = names.size()};
  for (const TaskName& name : names) {
    BOOST_OUTCOME_TRYV(ActOnOne(open, options, edit, name, acted));
  }
  PrintResult(options, acted);
  return acted.changed == acted.matched ? ExitCode::Done : ExitCode::SomethingFailed;
}

// A key, and at most the task type that it is a key of.
bool IsOneByKey(const TaskChoice& choice) {
  TaskChoice filters = choice;
  filters.handler.clear();
  return !choice.key.empty() && !HasFilter(filters);
}

Status CheckChoice(const TaskActionOptions& options) {
  const TaskChoice& choice = options.choice;
  if (options.all_matching && !choice.names.empty())
    return Fail(ErrorCode::Invalid, "give either names or --all-matching");
  if (!options.all_matching && HasFilter(choice) && !(IsOneByKey(choice) && choice.names.empty())) {
    return Fail(ErrorCode::Invalid,
                choice.names.empty()
                    ? "filters choose many tasks: add --all-matching to mean all of them"
                    : "a filter does not go with names: it would not be looked at; leave one of them out");
  }
  if (options.all_matching && !HasFilter(choice) && choice.key.empty()) {
    return Fail(
        ErrorCode::Invalid,
        "--all-matching needs a filter: --state, --handler, --batch, --class, --slice, a priority or a "
        "time");
  }
  if (!options.all_matching && (options.dry_run || !options.rate.empty()))
    return Fail(ErrorCode::Invalid, "--dry-run and --rate go with --all-matching");
  return {};
}

Result<ExitCode> RunTaskAction(const TaskActionOptions& options) {
  BOOST_OUTCOME_TRYV(CheckChoice(options));
  BOOST_OUTCOME_TRY(edit, EditOf(options));
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.choice.common, options.choice.shard));
  if (!options.all_matching) return ActOnNamed(open, options, edit);
  BOOST_OUTCOME_TRYV(CheckAllThere(open));
  return ActOnMatching(open, options, edit);
}

Command<TaskActionOptions> AddAction(CLI::App& task, Chosen& chosen, TaskAction action, const char* what,
                                     const char* example) {
  const auto command = AddCommand(task, chosen, ToString(action), what, example, RunTaskAction);
  command->action = action;
  AddNames(*command.app, command->choice);
  AddChoice(*command.app, command->choice);
  AddFilters(*command.app, command->choice, action == TaskAction::Edit ? "--with-priority" : "--priority");
  command.app->add_flag("--all-matching", command->all_matching,
                        "all tasks that the filters choose: shows them and asks");
  AddYes(*command.app, command->yes);
  command.app->add_flag("--dry-run", command->dry_run, "with --all-matching: only show what it would change");
  command.Add("--rate", command->rate, "with --all-matching: at most so many tasks, 500/s or 30/m (5000/s)",
              "RATE");
  return command;
}

}  // namespace

void AddTaskActions(CLI::App& task, Chosen& chosen) {
  AddAction(task, chosen, TaskAction::Retry, "Run failed tasks again, from the ladder's start",
            "  millrace task retry 17\n  millrace task retry --state failed --all-matching --rate 50/s");
  AddAction(task, chosen, TaskAction::Cancel, "Cancel tasks; a running one is asked to stop",
            "  millrace task cancel --batch june --all-matching");
  AddAction(task, chosen, TaskAction::Hold, "Hold waiting tasks back until they are released",
            "  millrace task hold 17 18");
  AddAction(task, chosen, TaskAction::Release, "Let held tasks go",
            "  millrace task release --handler send_mail --state held --all-matching");
  const auto edit = AddAction(
      task, chosen, TaskAction::Edit, "Change priority, due time or params of tasks that do not run",
      "  millrace task edit 17 --priority 0 --in 0s\n"
      "  millrace task edit --handler send_mail --state waiting --all-matching --in 2h");
  edit.Add("--priority", edit->priority, "0 (most urgent) to 9", "N")->check(CLI::Range(0, 9));
  edit.Add("--at", edit->at, "due at this time", "TIME");
  edit.Add("--in", edit->in, "due after this time from now", "DURATION");
  edit.Add("--expires-at", edit->expires_at, "not to be started from then on", "TIME");
  edit.Add("--expires-in", edit->expires_in, "the same after this time from now", "DURATION");
  edit.Add("--params", edit->params, "one JSON object in place of the params", "JSON");
}

}  // namespace millrace::engine
