#include "coordinator/app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <functional>

#include "coordinator/app/command_parts.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/terminal.h"
#include "framework/base/log.h"
#include "framework/base/suggest.h"

namespace millrace {
namespace {

void AddMill(CLI::App& app, MillFlags& flags) {
  AddCommon(app, flags.common, true);
  AddFolders(app, flags.common);
  app.add_option("--concurrency", flags.concurrency,
                 "threads of every handler, instead of the configuration's")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  app.add_flag("--until-idle", flags.until_idle, "end once nothing runs and nothing is due");
}

void AddRun(CLI::App& root, Chosen& chosen, MillFlags& flags) {
  CLI::App* app = AddCommand(root, "run", "Run tasks on an SQLite file, in this one process",
                             "  millrace run --store sqlite:points.db --until-idle");
  AddMill(*app, flags);
  Choose(app, chosen, flags.common, true, [&flags] { return RunRun(flags); });
}

void AddWorker(CLI::App& root, Chosen& chosen, MillFlags& flags) {
  CLI::App* app =
      AddCommand(root, "worker", "Run tasks on a server's store, beside other workers",
                 "  MILLRACE_PASSWORD_FILE=~/.millrace-password \\\n"
                 "    millrace worker --store mysql://millrace@db1:3306/work --load-balance 0-31,40\n"
                 "  millrace worker --zk zk1:2181,zk2:2181,zk3:2181/jobs --id w1");
  AddMill(*app, flags);
  app->add_option("--id", flags.id, "name of this worker (default: the host and the lowest free number)")
      ->type_name("ID");
  app->add_option("--load-balance", flags.load_balance,
                  "own these load-balance numbers alone, such as 0-31,40")
      ->type_name("LIST");
  app->add_option("--wait", flags.wait, "how long to wait for a server that is away at the start")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--session-timeout", flags.session_timeout, "after which a cluster calls this worker gone")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--weight", flags.weight, "its part of the slices, beside workers of weight 1")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  app->add_option("--handlers", flags.handlers, "run these task types alone")
      ->type_name("A,B")
      ->delimiter(',');
  app->add_option("--shards", flags.shards, "work on these shards alone")->type_name("A,B")->delimiter(',');
  app->add_option("--tables", flags.tables, "work on these tables alone; table or shard/table")
      ->type_name("A,B")
      ->delimiter(',');
  app->add_flag("--no-coordinate", flags.no_coordinate, "never lead the cluster");
  Choose(app, chosen, flags.common, true, [&flags] { return RunWorker(flags); });
}

void AddCoordinator(CLI::App& root, Chosen& chosen, CoordinatorOptions& o) {
  CLI::App* app = AddCommand(root, "coordinator", "Stand for the leader of a cluster, and run no tasks",
                             "  millrace coordinator --zk zk1:2181,zk2:2181,zk3:2181/jobs");
  AddCommon(*app, o.common, true);
  app->add_option("--id", o.id, "name of this candidate (default: the host and the process)")
      ->type_name("ID");
  app->add_option("--session-timeout", o.session_timeout, "after which another candidate takes over")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--wait", o.wait, "how long to wait for ZooKeeper at the start")
      ->type_name("TIME")
      ->capture_default_str();
  Choose(app, chosen, o.common, true, [&o] { return RunCoordinator(o); });
}

void AddSubmit(CLI::App& root, Chosen& chosen, SubmitOptions& o) {
  CLI::App* app = AddCommand(
      root, "submit", "Add tasks",
      "  millrace submit --handler award_points --params '{\"customer_id\":1,\"amount\":2.99}' --key p-1\n"
      "  millrace submit --handler award_points --from payments.csv --key-column payment_id\n"
      "  millrace submit --handler send_mail --from-query 'SELECT id, email FROM customers' --key-column id");
  AddCommon(*app, o.common, true);
  AddFolders(*app, o.common);
  app->add_option("--shard", o.shard, "which shard, where there are several")->type_name("NAME");
  app->add_option("--table", o.table, "which task table, where there are several")->type_name("NAME");
  app->add_option("--handler", o.handler, "the task type")->type_name("NAME");
  app->add_option("--params", o.params, "JSON for the handler, up to 64 KiB")->type_name("JSON");
  app->add_option("--key", o.key, "of all tasks of a handler with one key only one takes effect")
      ->type_name("KEY");
  app->add_option("--at", o.at, "when it is due, such as 2026-11-20T18:00:00Z")->type_name("TIME");
  app->add_option("--in", o.in, "or how long from now, such as 1h30m")->type_name("TIME");
  app->add_option("--priority", o.priority, "0 (most urgent) to 9; default 5")
      ->type_name("N")
      ->check(CLI::Range(0, 9));
  app->add_option("--batch", o.batch, "name under which progress is counted")->type_name("NAME");
  app->add_option("--count", o.count, "so many of the same")->type_name("N");
  app->add_flag("--held", o.held, "hold it until it is released");
  app->add_option("--from", o.from,
                  "a task for each row of a .csv or .jsonl file; - is JSONL from standard input")
      ->type_name("FILE");
  app->add_option("--from-query", o.from_query, "a task for each row of a query on the store's own database")
      ->type_name("SQL");
  app->add_option("--key-column", o.key_column, "the column with the key: the same row is never added twice")
      ->type_name("COLUMN");
  app->add_flag("--all-or-nothing", o.all_or_nothing,
                "all rows in one transaction; with a bad row none goes in");
  app->add_flag("--force", o.force, "also for a handler that no plugin here has");
  Choose(app, chosen, o.common, false, [&o] { return RunSubmit(o); });
}

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

void AddTaskReads(CLI::App& task, Chosen& chosen, TaskListOptions& list, TaskChoice& show, TaskChoice& why) {
  CLI::App* app =
      AddCommand(task, "list", "List tasks", "  millrace task list --state failed --handler award_points");
  AddChoice(*app, list.choice, true);
  app->add_option("--limit", list.limit, "at most so many")->type_name("N")->capture_default_str();
  app->add_option("--after", list.after, "go on where an earlier list ended")->type_name("MARK");
  Choose(app, chosen, list.choice.common, false, [&list] { return RunTaskList(list); });

  app = AddCommand(task, "show", "Show everything about a task", "  millrace task show main/tasks/17");
  AddChoice(*app, show, false);
  app->add_option("task", show.names, "shard/table/id, or the id alone")->type_name("NAME");
  Choose(app, chosen, show.common, false, [&show] { return RunTaskShow(show); });

  app = AddCommand(task, "why", "Say why a task is not running", "  millrace task why 17");
  AddChoice(*app, why, false);
  AddFolders(*app, why.common);
  app->add_option("task", why.names, "shard/table/id, or the id alone")->type_name("NAME");
  Choose(app, chosen, why.common, false, [&why] { return RunTaskWhy(why); });
}

void AddTaskAction(CLI::App& task, Chosen& chosen, TaskActionOptions& o, TaskAction action, const char* name,
                   const char* what, const char* example) {
  CLI::App* app = AddCommand(task, name, what, example);
  o.action = action;
  AddChoice(*app, o.choice, true);
  app->add_option("task", o.choice.names, "shard/table/id, or the id alone")->type_name("NAME");
  app->add_flag("--all-matching", o.all_matching, "all tasks that the filters choose: shows them and asks");
  app->add_flag("-y,--yes", o.yes, "do not ask");
  Choose(app, chosen, o.choice.common, false, [&o] { return RunTaskAction(o); });
}

// Where every command's flags live while it runs.
struct Flags {
  MillFlags run, worker;
  CoordinatorOptions coordinator;
  SubmitOptions submit;
  TaskListOptions list;
  TaskChoice show, why;
  TaskActionOptions retry, cancel, hold, release;
  SchemaOptions print, apply, resize, upgrade, check;
  CommonFlags handler_list;
  HandlerRunOptions handler_run;
};

void AddTask(CLI::App& root, Chosen& chosen, Flags& f) {
  CLI::App* task =
      AddCommand(root, "task", "Look at tasks and change them", "  millrace task list --state failed");
  task->require_subcommand(1);
  AddTaskReads(*task, chosen, f.list, f.show, f.why);
  AddTaskAction(*task, chosen, f.retry, TaskAction::Retry, "retry",
                "Run failed tasks again, from the ladder's start",
                "  millrace task retry 17\n  millrace task retry --state failed --all-matching");
  AddTaskAction(*task, chosen, f.cancel, TaskAction::Cancel, "cancel",
                "Cancel tasks; a running one is asked to stop",
                "  millrace task cancel --batch june --all-matching");
  AddTaskAction(*task, chosen, f.hold, TaskAction::Hold, "hold",
                "Hold waiting tasks back until they are released", "  millrace task hold 17 18");
  AddTaskAction(*task, chosen, f.release, TaskAction::Release, "release", "Let held tasks go",
                "  millrace task release --handler send_mail --state held --all-matching");
}

void AddSchemaCommand(CLI::App& schema, Chosen& chosen, SchemaOptions& o, const char* name, const char* what,
                      const char* example, bool spec, Result<ExitCode> (*run)(const SchemaOptions&)) {
  CLI::App* app = AddCommand(schema, name, what, example);
  AddCommon(*app, o.common, !spec);
  app->add_option("--shard", o.shard, "this shard alone")->type_name("NAME");
  if (spec) {
    app->add_option("--tables", o.tables, "task tables")->type_name("N")->capture_default_str();
    app->add_option("--slices", o.slices, "load-balance numbers a table; 64 for new ones")->type_name("N");
  }
  Choose(app, chosen, o.common, false, [&o, run] { return run(o); });
}

void AddSchema(CLI::App& root, Chosen& chosen, Flags& f) {
  CLI::App* schema = AddCommand(root, "schema", "Make and check the task tables",
                                "  millrace schema apply --store mysql://millrace@db1/work");
  schema->require_subcommand(1);
  AddSchemaCommand(*schema, chosen, f.print, "print", "Print the DDL",
                   "  millrace schema print --store mysql://u@h/d > schema.sql", true, RunSchemaPrint);
  AddSchemaCommand(*schema, chosen, f.apply, "apply", "Make what is missing",
                   "  millrace schema apply --store mysql://millrace@db1/work --slices 64", true,
                   RunSchemaApply);
  AddSchemaCommand(*schema, chosen, f.resize, "resize",
                   "Change the number of slices a table under load; a cluster's leader sees to the rows",
                   "  millrace schema resize --slices 96", true, RunSchemaResize);
  schema->get_subcommand("resize")->remove_option(schema->get_subcommand("resize")->get_option("--tables"));
  schema->get_subcommand("resize")
      ->add_option("--table", f.resize.table, "this table alone")
      ->type_name("NAME");
  AddSchemaCommand(*schema, chosen, f.upgrade, "upgrade", "Bring older tables to this version",
                   "  millrace schema upgrade", false, RunSchemaUpgrade);
  AddSchemaCommand(*schema, chosen, f.check, "check",
                   "Compare the live tables and the plans of the hot statements",
                   "  millrace schema check --json", false, RunSchemaCheck);
}

void AddHandler(CLI::App& root, Chosen& chosen, Flags& f) {
  CLI::App* handler = AddCommand(root, "handler", "Look at handlers and try them", "  millrace handler list");
  handler->require_subcommand(1);
  CLI::App* app = AddCommand(*handler, "list", "List the handlers of the plugins at hand",
                             "  millrace handler list --plugins ./build/plugins");
  AddCommon(*app, f.handler_list, true);
  AddFolders(*app, f.handler_list);
  Choose(app, chosen, f.handler_list, false, [&f] { return RunHandlerList(f.handler_list); });

  HandlerRunOptions& o = f.handler_run;
  app =
      AddCommand(*handler, "run", "Run one handler here and now, without a task",
                 "  millrace handler run award_points --params '{\"customer_id\":1,\"amount\":2.99}' --store "
                 "sqlite:points.db");
  AddCommon(*app, o.common, true);
  AddFolders(*app, o.common);
  app->add_option("handler,--handler", o.handler, "the task type")->type_name("NAME")->required();
  app->add_option("--params", o.params, "JSON for the handler")->type_name("JSON");
  app->add_option("--shard", o.shard, "which shard, where there are several")->type_name("NAME");
  app->add_flag("--commit", o.commit, "keep what it writes; otherwise it is rolled back");
  Choose(app, chosen, o.common, false, [&o] { return RunHandlerRun(o); });
}

// The order in which a newcomer meets them.
void GroupCommands(CLI::App& root) {
  const std::pair<const char*, std::vector<const char*>> kGroups[] = {
      {"Run tasks", {"run", "worker", "coordinator"}},
      {"Add tasks", {"submit"}},
      {"Look after them", {"task", "cluster", "config", "schema", "handler"}}};
  for (const auto& [group, names] : kGroups) {
    for (const char* name : names) root.get_subcommand(name)->group(group);
  }
}

int Numeric(ExitCode code) { return static_cast<int>(code); }

// The deepest command that was named: its help is the one to point to.
std::string HelpOf(const CLI::App& root) {
  std::string path = "millrace";
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path + " --help";
}

// A word where a command belongs is what most usage errors are: the parser only says that a command is
// missing.
std::string WrongCommand(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::vector<std::string> words = root.remaining(true);
  if (known.empty() || words.empty() || words.front().starts_with('-')) return "";
  return "there is no command '" + words.front() + "'" + DidYouMean(words.front(), known);
}

// The first option that the command does not have; empty where there is none.
std::string WrongOption(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& word : root.remaining(true)) {
    if (!word.starts_with('-') || word.size() == 1) continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), name) != known.end())
      return "the option '" + name + "' goes after the command";
    return "there is no option '" + name + "'" + DidYouMean(name, known);
  }
  return "";
}

int PrintUsageError(const CLI::App& root, const CLI::ParseError& error) {
  std::string wrong = WrongCommand(root);
  if (wrong.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) wrong = WrongOption(root);
  PrintError((wrong.empty() ? error.what() : wrong) + "; see " + HelpOf(root));
  return Numeric(ExitCode::Usage);
}

int Carry(const Chosen& chosen) {
  const bool quiet = !chosen.common->verbose && (!chosen.works || ErrorIsTerminal());
  StartLogging("millrace", quiet ? LogLevel::Warning : LogLevel::Info);
  std::signal(SIGPIPE, SIG_IGN);
  const auto code = chosen.action();
  if (code) return Numeric(*code);
  PrintError(code.error().message);
  return Numeric(ExitCodeOf(code.error().code));
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  CLI::App root("Millrace runs background tasks that live in database tables, each at least once.",
                "millrace");
  root.footer(
      "Example:\n"
      "  millrace submit --handler noop --count 1000\n"
      "  millrace run --until-idle\n"
      "Exit status: 0 done, 1 something failed, 2 usage or invalid input, 3 a server cannot be reached, 4 "
      "refused.");
  root.require_subcommand(1);
  root.set_version_flag("--version", "millrace " MILLRACE_VERSION);
  Flags flags;
  Chosen chosen;
  AddRun(root, chosen, flags.run);
  AddWorker(root, chosen, flags.worker);
  AddCoordinator(root, chosen, flags.coordinator);
  AddSubmit(root, chosen, flags.submit);
  AddTask(root, chosen, flags);
  AddSchema(root, chosen, flags);
  AddHandler(root, chosen, flags);
  const ClusterCommands cluster(root, chosen);
  GroupCommands(root);
  if (argc <= 1) {
    PrintNote(root.help());
    return Numeric(ExitCode::Usage);
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help) {
    root.exit(help);
    return Numeric(ExitCode::Done);
  } catch (const CLI::ParseError& error) {
    return PrintUsageError(root, error);
  }
  return Carry(chosen);
}

}  // namespace millrace
