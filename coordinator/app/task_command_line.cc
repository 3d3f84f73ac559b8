#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"

namespace millrace::engine {
namespace {

void AddChoice(CLI::App& app, TaskChoice& choice, bool filters) {
  AddCommon(app, choice.common, true);
  app.add_option("--shard", choice.shard, "which shard, where there are several")->type_name("NAME");
  app.add_option("--table", choice.table, "which task table, where there are several")->type_name("NAME");
  app.add_option("--key", choice.key, "the task with this key")->type_name("KEY");
  app.add_option("--handler", choice.handler, "of this task type")->type_name("NAME");
  if (!filters) return;
  app.add_option("--state", choice.state, "waiting, running, held, succeeded, cancelled or failed")
      ->type_name("STATE");
  app.add_option("--batch", choice.batch, "of this batch")->type_name("NAME");
  app.add_option("--error-class", choice.error_class, "failed tasks whose last error is of this class")
      ->type_name("CLASS");
  app.add_option("--slice", choice.slice, "of this load-balance number")->type_name("N");
}

void AddNames(CLI::App& app, TaskChoice& choice) {
  app.add_option("task", choice.names, "shard/table/id, or the id alone")->type_name("NAME");
}

void AddListing(CLI::App& task, Chosen& chosen) {
  CLI::App* app =
      AddCommand(task, "list", "List tasks", "  millrace task list --state failed --handler award_points");
  auto o = std::make_shared<TaskListOptions>();
  AddChoice(*app, o->choice, true);
  app->add_option("--limit", o->limit, "at most so many")->type_name("N")->capture_default_str();
  app->add_option("--after", o->after, "go on where an earlier list ended")->type_name("MARK");
  Choose(app, chosen, o, RunTaskList);
}

void AddShowAndWhy(CLI::App& task, Chosen& chosen) {
  CLI::App* app =
      AddCommand(task, "show", "Show everything about a task", "  millrace task show main/tasks/17");
  auto show = std::make_shared<TaskChoice>();
  AddNames(*app, *show);
  AddChoice(*app, *show, false);
  Choose(app, chosen, show, RunTaskShow);

  app = AddCommand(task, "why", "Say why a task is not running", "  millrace task why 17");
  auto why = std::make_shared<TaskChoice>();
  AddNames(*app, *why);
  AddChoice(*app, *why, false);
  AddFolders(*app, why->common);
  Choose(app, chosen, why, RunTaskWhy);
}

void AddAction(CLI::App& task, Chosen& chosen, TaskAction action, const char* what, const char* example) {
  CLI::App* app = AddCommand(task, ToString(action), what, example);
  auto o = std::make_shared<TaskActionOptions>();
  o->action = action;
  AddNames(*app, o->choice);
  AddChoice(*app, o->choice, true);
  app->add_flag("--all-matching", o->all_matching, "all tasks that the filters choose: shows them and asks");
  app->add_flag("-y,--yes", o->yes, "do not ask");
  Choose(app, chosen, o, RunTaskAction);
}

}  // namespace

void AddTaskCommands(CLI::App& root, Chosen& chosen) {
  CLI::App* task =
      AddFamily(root, "task", "Look at tasks and change them", "  millrace task list --state failed");
  AddListing(*task, chosen);
  AddShowAndWhy(*task, chosen);
  AddAction(*task, chosen, TaskAction::Retry, "Run failed tasks again, from the ladder's start",
            "  millrace task retry 17\n  millrace task retry --state failed --all-matching");
  AddAction(*task, chosen, TaskAction::Cancel, "Cancel tasks; a running one is asked to stop",
            "  millrace task cancel --batch june --all-matching");
  AddAction(*task, chosen, TaskAction::Hold, "Hold waiting tasks back until they are released",
            "  millrace task hold 17 18");
  AddAction(*task, chosen, TaskAction::Release, "Let held tasks go",
            "  millrace task release --handler send_mail --state held --all-matching");
}

}  // namespace millrace::engine
