#include "coordinator/app/command_line.h"

#include <CLI/CLI.hpp>
#include <csignal>

#include "coordinator/app/command_parts.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/usage_error.h"
#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr const char* kFooter =
    "Example:\n"
    "  millrace submit --handler noop --count 1000\n"
    "  millrace run --until-idle\n"
    "Exit status: 0 done, 1 something failed, 2 usage or invalid input, 3 a server cannot be reached, 4 "
    "refused.";

void AddEveryCommand(CLI::App& root, Chosen& chosen) {
  AddMillCommands(root, chosen);
  AddSubmitCommand(root, chosen);
  AddTaskCommands(root, chosen);
  AddClusterCommands(root, chosen);
  AddConfigCommands(root, chosen);
  AddSchemaCommands(root, chosen);
  AddHandlerCommands(root, chosen);
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
  root.footer(kFooter);
  root.require_subcommand(1);
  root.set_version_flag("--version", "millrace " MILLRACE_VERSION);
  Chosen chosen;
  AddEveryCommand(root, chosen);
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
    PrintError(UsageErrorText(root, error));
    return Numeric(ExitCode::Usage);
  }
  if (const std::string wrong = EmptyOptionText(root); !wrong.empty()) {
    PrintError(wrong);
    return Numeric(ExitCode::Usage);
  }
  return Carry(chosen);
}

}  // namespace millrace::engine
