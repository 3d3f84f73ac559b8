// From the arguments of the process to a command and its exit status.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <vector>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/help/help_tree.h"
#include "framework/base/log.h"
#include "framework/base/log_line.h"
#include "framework/base/suggest.h"

namespace millrace::engine {
namespace {

constexpr const char* kFooter =
    "Example:\n"
    "  millrace submit --handler noop --count 1000\n"
    "  millrace run --until-idle\n"
    "Exit status: 0 done, 1 something failed, 2 usage or invalid input, 3 a server cannot be reached, 4 "
    "refused.";

// In the order, and the groups, in which a newcomer meets them.
void AddEveryCommand(CLI::App& root, Chosen& chosen) {
  AddWorkerCommands(root, chosen);
  AddSubmit(root, chosen);
  AddStatus(root, chosen);
  CLI::App* task =
      AddFamily(root, "task", "Look at tasks and change them", "  millrace task list --state failed");
  AddTaskReads(*task, chosen);
  AddTaskCount(*task, chosen);
  AddTaskWhy(*task, chosen);
  AddTaskActions(*task, chosen);
  CLI::App* batch =
      AddFamily(root, "batch", "Look at batches, close and cancel them", "  millrace batch watch june");
  AddBatchReads(*batch, chosen);
  AddBatchActions(*batch, chosen);
  CLI::App* cluster = AddFamily(root, "cluster", "Look at the cluster and steer it",
                                "  millrace cluster status --zk zk1:2181");
  AddClusterReads(*cluster, chosen);
  AddClusterPlan(*cluster, chosen);
  AddClusterRestarts(*cluster, chosen);
  AddClusterPauses(*cluster, chosen);
  AddClusterLimits(*cluster, chosen);
  AddClusterProtect(*cluster, chosen);
  CLI::App* config = AddFamily(root, "config", "Look at the cluster's configuration and change it live",
                               "  millrace config set handlers.award_points.concurrency 8");
  AddConfigCommands(*config, chosen);
  CLI::App* schema = AddFamily(root, "schema", "Make and check the task tables",
                               "  millrace schema apply --store mysql://millrace@db1/work");
  AddSchemaCommands(*schema, chosen);
  CLI::App* handler = AddFamily(root, "handler", "Look at handlers and try them", "  millrace handler list");
  AddHandlerCommands(*handler, chosen);
  CLI::App* schedule = AddFamily(root, "schedule", "What is done when: look at schedules, and change them",
                                 "  millrace schedule show nightly --next 10");
  AddScheduleCommands(*schedule, chosen);
  CLI::App* alerts = AddFamily(root, "alerts", "Look at alerts and try them", "  millrace alerts list");
  AddAlertCommands(*alerts, chosen);
  AddHealth(root, chosen);
  root.get_subcommand("health")->group("Look after them");
  AddDoctor(root, chosen);
  root.get_subcommand("doctor")->group("Look after them");
  AddPages(root, chosen);
  for (const char* name : {"run", "worker", "coordinator"}) root.get_subcommand(name)->group("Run tasks");
  root.get_subcommand("submit")->group("Add tasks");
  root.get_subcommand("status")->group("Look after them");
  for (CLI::App* family : {task, batch, cluster, config, schedule, schema, handler, alerts})
    family->group("Look after them");
}

int Numeric(ExitCode code) { return static_cast<int>(code); }

// Who asked for output and did not get it has to know; a reader that has seen enough has gone by itself.
ExitCode AfterOutput(ExitCode code) {
  const int error = OutputError();
  if (error == 0) return code;
  if (error != EPIPE) PrintError(std::string("standard output can't be written: ") + std::strerror(error));
  return code == ExitCode::Done ? ExitCode::SomethingFailed : code;
}

int Carry(const Chosen& chosen) {
  const bool quiet = !chosen.common->verbose && (!chosen.works || ErrorIsTerminal());
  if (chosen.common->log == "json") SetLogFormat(LogFormat::Json);
  StartLogging("millrace", quiet ? LogLevel::Warning : LogLevel::Info);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // it is inherited; where it is ignored nobody learns how a child ended
  const auto code = chosen.action();
  if (code) {
    const ExitCode told = AfterOutput(*code);
    return Numeric(chosen.works ? *code : told);  // how a worker ends tells of its work alone
  }
  // Stopped before it had begun.
  if (chosen.works && code.error().code == ErrorCode::Cancelled && StopSignalsSeen() > 0) {
    PrintNote(code.error().message);
    return Numeric(ExitCode::Done);
  }
  PrintError(code.error());
  return Numeric(ExitCodeOf(code.error().code));
}

// The deepest command that was named.
const CLI::App& Named(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

// Its help is the one to point to.
std::string HelpOf(const CLI::App& root) {
  std::string path = "millrace";
  for (const CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path + " --help";
}

// A word where a command belongs is what most usage errors are: the parser only says that a command is
// missing.
std::string WrongCommand(const CLI::App& root) {
  std::vector<std::string> known;
  for (const CLI::App* command : Named(root).get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::vector<std::string> words = root.remaining(true);
  if (known.empty() || words.empty() || words.front().starts_with('-')) return "";
  return "there is no command '" + words.front() + "'" + DidYouMean(words.front(), known);
}

// The first option that the command does not have; empty where there is none.
std::string WrongOption(const CLI::App& root) {
  std::vector<std::string> known;
  for (const CLI::Option* option : Named(root).get_options()) {
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

// What is wrong, with the nearest command or option that there is, and whose help to look at.
std::string UsageErrorText(const CLI::App& root, const CLI::ParseError& error) {
  std::string wrong = WrongCommand(root);
  if (wrong.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) wrong = WrongOption(root);
  return (wrong.empty() ? error.what() : wrong) + "; see " + HelpOf(root);
}

// An option that was given an empty value, such as that of a variable that is not set: leaving it out means
// something else, most often everything. Empty text where there is none.
std::string EmptyOptionText(const CLI::App& root) {
  for (const CLI::Option* option : Named(root).get_options()) {
    const std::vector<std::string>& given = option->results();
    if (option->get_lnames().empty() || std::find(given.begin(), given.end(), "") == given.end()) continue;
    return option->get_name() + " has an empty value; give it one, or leave it out; see " + HelpOf(root);
  }
  return "";
}

std::string WithoutLineEnd(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

int RunCommandLine(int argc, char** argv) {
  CLI::App root("Millrace runs background tasks that live in database tables, each at least once.",
                "millrace");
  root.footer(kFooter);
  root.require_subcommand(1);
  root.set_version_flag("--version", "millrace " MILLRACE_VERSION);
  Chosen chosen;
  AddEveryCommand(root, chosen);
  if (argc <= 1) {
    PrintNote(root.help());
    return Numeric(ExitCode::Usage);
  }
  const auto is_json = [](std::string_view word) { return word == "--json"; };
  if (std::any_of(argv + 1, argv + argc, is_json)) PrintErrorsAsJson();  // of the parser, too
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    root.exit(help, text, text);
    PrintLine(WithoutLineEnd(text.str()));
    return Numeric(AfterOutput(ExitCode::Done));
  } catch (const CLI::ParseError& error) {
    PrintError({ErrorCode::Invalid, UsageErrorText(root, error)});
    return Numeric(ExitCode::Usage);
  }
  if (const std::string wrong = EmptyOptionText(root); !wrong.empty()) {
    PrintError({ErrorCode::Invalid, wrong});
    return Numeric(ExitCode::Usage);
  }
  return Carry(chosen);
}

}  // namespace
}  // namespace millrace::engine

int main(int argc, char** argv) {
  return millrace::engine::ReportExceptions([&] { return millrace::engine::RunCommandLine(argc, argv); });
}
