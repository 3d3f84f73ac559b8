#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command.h"
#include "coordinator/app/task_lookup.h"

namespace millrace::engine {
namespace {

struct TaskActionOptions {
  TaskChoice choice;
  TaskAction action = TaskAction::Retry;
  bool all_matching = false;
  bool yes = false;
};

constexpr std::uint64_t kPreviewBound = 10'000;
constexpr std::size_t kExamples = 3;

struct Words {
  const char* verb;  // `Retry 3 tasks?`
  const char* past;  // `3 tasks retried`
};

Words WordsOf(TaskAction action) {
  switch (action) {
    case TaskAction::Retry:
      return {"Retry", "retried"};
    case TaskAction::Cancel:
      return {"Cancel", "cancelled"};
    case TaskAction::Hold:
      return {"Hold", "held"};
    case TaskAction::Release:
      return {"Release", "released"};
  }
  return {"", ""};
}

// What a bulk action means where --state is left out.
std::optional<TaskState> StateMeant(TaskAction action) {
  if (action == TaskAction::Retry) return TaskState::Failed;
  if (action == TaskAction::Hold) return TaskState::Waiting;
  if (action == TaskAction::Release) return TaskState::Held;
  return std::nullopt;
}

// A page of tasks that the action would change; false ends the walk.
using PageVisitor = std::function<Result<bool>(const std::string& shard, const TableName& table,
                                               const std::vector<TaskRecord>& records)>;

Status Walk(TaskShards& open, const TaskActionOptions& options, const TaskFilter& filter,
            const PageVisitor& visit) {
  BOOST_OUTCOME_TRY(tables, TablesOf(open, options.choice));
  for (const auto& [shard, table] : tables) {
    std::string mark;
    do {
      BOOST_OUTCOME_TRY(page, open.Operations(shard).List(table, filter, mark, kMaxBatchRows));
      const auto ended = [](const TaskRecord& record) {
        return record.task.state == TaskState::Succeeded || record.task.state == TaskState::Cancelled;
      };
      // The finished pool comes last, and no action changes it: with it the table is done.
      const bool last = std::any_of(page.records.begin(), page.records.end(), ended);
      std::erase_if(page.records,
                    [&](const TaskRecord& r) { return !StateAfter(options.action, r.task.state); });
      if (!page.records.empty()) {
        BOOST_OUTCOME_TRY(on, visit(shard, table, page.records));
        if (!on) return {};
      }
      mark = last ? "" : page.next;
    } while (!mark.empty());
  }
  return {};
}

struct Preview {
  std::uint64_t count = 0;
  std::vector<std::string> examples;
};

Result<Preview> MakePreview(TaskShards& open, const TaskActionOptions& options, const TaskFilter& filter) {
  Preview preview;
  BOOST_OUTCOME_TRYV(
      Walk(open, options, filter, [&](const auto& shard, const auto&, const auto& records) -> Result<bool> {
        preview.count += records.size();
        for (const TaskRecord& record : records) {
          if (preview.examples.size() == kExamples) break;
          const Task& task = record.task;
          preview.examples.push_back(ToString(TaskName{shard, task.key}) + "  " + ToString(task.state) +
                                     "  " + task.handler + "  " +
                                     (task.last_error.empty() ? task.params : task.last_error));
        }
        return preview.count < kPreviewBound;
      }));
  return preview;
}

std::string HowMany(std::uint64_t count) {
  return count >= kPreviewBound ? "10,000 or more tasks" : Count(count, "task", "tasks");
}

void PrintPreview(const Preview& preview) {
  PrintNote(HowMany(preview.count) + (preview.count == 1 ? " matches:" : " match, for example:"));
  for (const std::string& example : preview.examples) PrintNote("  " + Fit(example, TerminalWidth() - 3));
}

Result<std::uint64_t> ActOnAll(TaskShards& open, const TaskActionOptions& options, const TaskFilter& filter) {
  std::uint64_t changed = 0;
  ProgressLine line(ErrorIsTerminal() && !options.choice.common.json);
  BOOST_OUTCOME_TRYV(Walk(
      open, options, filter, [&](const auto& shard, const auto& table, const auto& records) -> Result<bool> {
        std::vector<std::uint64_t> ids;
        for (const TaskRecord& record : records) ids.push_back(record.task.key.id);
        auto done = open.Operations(shard).Apply(options.action, table, ids, Actor());
        if (!done)
          return Fail(done.error().code,
                      done.error().message + "; " + HowMany(changed) + " were changed before");
        changed += done->size();
        line.Show(WithCommas(changed) + " " + WordsOf(options.action).past, BootClock::now());
        return true;
      }));
  return changed;
}

void PrintResult(const TaskActionOptions& options, std::uint64_t matched, std::uint64_t changed) {
  PrintAnswer(options.choice.common, {{"matched", matched}, {"changed", changed}},
              Count(changed, "task", "tasks") + " " + WordsOf(options.action).past);
}

Result<ExitCode> ActOnMatching(TaskShards& open, const TaskActionOptions& options) {
  BOOST_OUTCOME_TRY(filter, FilterOf(options.choice));
  if (!filter.state && filter.error_class.empty()) filter.state = StateMeant(options.action);
  BOOST_OUTCOME_TRY(preview, MakePreview(open, options, filter));
  if (preview.count == 0) {
    PrintResult(options, 0, 0);
    return ExitCode::Done;
  }
  PrintPreview(preview);
  const std::string question =
      std::string(WordsOf(options.action).verb) + " " + (preview.count == 1 ? "it" : "all of them") + "?";
  BOOST_OUTCOME_TRYV(Confirm(question, options.yes));
  BOOST_OUTCOME_TRY(changed, ActOnAll(open, options, filter));
  PrintResult(options, std::max(preview.count, changed), changed);
  return ExitCode::Done;
}

// True if it was changed; otherwise says why not.
Result<bool> ActOnOne(TaskShards& open, const TaskActionOptions& options, const TaskName& name) {
  auto record = GetTask(open, name);
  if (!record && record.error().code == ErrorCode::NotFound) {
    PrintError(record.error());
    return false;
  }
  if (!record) return Fail(record.error());
  const std::vector<std::uint64_t> ids{name.key.id};
  BOOST_OUTCOME_TRY(changed, open.Operations(name.shard).Apply(options.action, name.key.table, ids, Actor()));
  if (!changed.empty()) return true;
  PrintError(ToString(name) + " is " + ToString(record->task.state) +
             ", so nothing was changed: " + Refusal(options.action));
  return false;
}

Result<ExitCode> ActOnNamed(TaskShards& open, const TaskActionOptions& options) {
  BOOST_OUTCOME_TRY(names, NamedTasks(open, options.choice));
  std::uint64_t changed = 0;
  for (const TaskName& name : names) {
    BOOST_OUTCOME_TRY(done, ActOnOne(open, options, name));
    changed += done ? 1 : 0;
  }
  PrintResult(options, names.size(), changed);
  return changed == names.size() ? ExitCode::Done : ExitCode::SomethingFailed;
}

// A key, and at most the task type that it is a key of.
bool IsOneByKey(const TaskChoice& choice) {
  TaskChoice filters = choice;
  filters.handler.clear();
  return !choice.key.empty() && !HasFilter(filters);
}

Result<ExitCode> RunTaskAction(const TaskActionOptions& options) {
  const TaskChoice& choice = options.choice;
  if (options.all_matching && !choice.names.empty()) {
    return Fail(ErrorCode::Invalid, "give either names or --all-matching");
  }
  if (!options.all_matching && HasFilter(choice) && !(IsOneByKey(choice) && choice.names.empty())) {
    return Fail(ErrorCode::Invalid,
                choice.names.empty()
                    ? "filters choose many tasks: add --all-matching to mean all of them"
                    : "a filter does not go with names: it would not be looked at; leave one of them out");
  }
  if (options.all_matching && !HasFilter(choice) && choice.key.empty()) {
    return Fail(ErrorCode::Invalid,
                "--all-matching needs a filter: --state, --handler, --batch, --class or "
                "--slice");
  }
  BOOST_OUTCOME_TRY(open, OpenTaskShards(choice.common, choice.shard));
  if (!options.all_matching) return ActOnNamed(open, options);
  BOOST_OUTCOME_TRYV(CheckAllThere(open));
  return ActOnMatching(open, options);
}

void AddAction(CLI::App& task, Chosen& chosen, TaskAction action, const char* what, const char* example) {
  const auto command = AddCommand(task, chosen, ToString(action), what, example, RunTaskAction);
  command->action = action;
  AddNames(*command.app, command->choice);
  AddChoice(*command.app, command->choice);
  AddFilters(*command.app, command->choice);
  command.app->add_flag("--all-matching", command->all_matching,
                        "all tasks that the filters choose: shows them and asks");
  command.app->add_flag("-y,--yes", command->yes, "do not ask");
}

}  // namespace

void AddTaskActions(CLI::App& task, Chosen& chosen) {
  AddAction(task, chosen, TaskAction::Retry, "Run failed tasks again, from the ladder's start",
            "  millrace task retry 17\n  millrace task retry --state failed --all-matching");
  AddAction(task, chosen, TaskAction::Cancel, "Cancel tasks; a running one is asked to stop",
            "  millrace task cancel --batch june --all-matching");
  AddAction(task, chosen, TaskAction::Hold, "Hold waiting tasks back until they are released",
            "  millrace task hold 17 18");
  AddAction(task, chosen, TaskAction::Release, "Let held tasks go",
            "  millrace task release --handler send_mail --state held --all-matching");
}

}  // namespace millrace::engine
