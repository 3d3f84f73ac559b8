// How a command is declared: each family in a file of its own, each command leaving its action where it was
// chosen. An error is printed by main, and its code decides the exit status; ExitCode::SomethingFailed
// without an error was reported by the command itself.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/cli/text_table.h"
#include "coordinator/app/command/settings.h"

namespace millrace::engine {

struct Chosen {
  std::function<Result<ExitCode>()> action;
  const CommonFlags* common = nullptr;
  bool works = false;  // it runs tasks, so its log is of interest
};

// Every command there is: flags, options and action stand in the file of the same name.
void AddWorkerCommands(CLI::App& root, Chosen& chosen);  // run, worker, coordinator; worker_flags.cc
void AddSubmit(CLI::App& root, Chosen& chosen);
void AddStatus(CLI::App& root, Chosen& chosen);
void AddTaskReads(CLI::App& task, Chosen& chosen);  // list, show; task.cc
void AddTaskCount(CLI::App& task, Chosen& chosen);
void AddTaskWhy(CLI::App& task, Chosen& chosen);
void AddTaskActions(CLI::App& task, Chosen& chosen);      // retry, cancel, hold, release
void AddBatchReads(CLI::App& batch, Chosen& chosen);      // list, show; batch.cc
void AddBatchActions(CLI::App& batch, Chosen& chosen);    // watch, close, cancel
void AddClusterReads(CLI::App& cluster, Chosen& chosen);  // status, slices; cluster.cc
void AddClusterPlan(CLI::App& cluster, Chosen& chosen);
void AddClusterRestarts(CLI::App& cluster, Chosen& chosen);  // drain … proceed; cluster_control.cc
void AddClusterPauses(CLI::App& cluster, Chosen& chosen);
void AddHandlerBreaker(CLI::App& handler, Chosen& chosen);
void AddClusterLimits(CLI::App& cluster, Chosen& chosen);      // limit; cluster_limit.cc
void AddClusterProtect(CLI::App& cluster, Chosen& chosen);     // cluster_control.cc
void AddConfigCommands(CLI::App& config, Chosen& chosen);      // get, validate …; config.cc
void AddConfigChanges(CLI::App& config, Chosen& chosen);       // set, unset, edit, rollback; config_set.cc
void AddScheduleCommands(CLI::App& schedule, Chosen& chosen);  // list, show, run
void AddScheduleChanges(CLI::App& schedule, Chosen& chosen);   // add, pause, resume, remove; schedule_set.cc
void AddSchemaCommands(CLI::App& schema, Chosen& chosen);
void AddAlertCommands(CLI::App& alerts, Chosen& chosen);  // list, test
void AddDoctor(CLI::App& root, Chosen& chosen);
void AddHandlerCommands(CLI::App& handler, Chosen& chosen);
void AddHealth(CLI::App& root, Chosen& chosen);

// The flags that all commands have; `json`: --json among them.
void AddCommon(CLI::App& app, CommonFlags& flags, bool json);
void AddFolders(CLI::App& app, CommonFlags& flags);
void AddList(CLI::App& app, const char* name, std::vector<std::string>& values, const char* what);
// -y, --yes: of every command that may ask.
void AddYes(CLI::App& app, bool& yes, const char* what = "do not ask");

// A command that is only the home of others.
CLI::App* AddFamily(CLI::App& parent, const char* name, const char* what, const char* examples);

template <class Options>
CommonFlags& CommonOf(Options& options) {
  if constexpr (requires { options.choice; }) {
    return options.choice.common;
  } else if constexpr (requires { options.common; }) {
    return options.common;
  } else {
    return options;
  }
}

// What is wrong with the text of a whole number; empty: nothing. The parser would take 010 for eight, and
// 0x10 for sixteen.
std::string DecimalTrouble(const std::string& text);

template <class Value>
inline constexpr bool kIsWholeNumber = std::is_integral_v<Value> && !std::is_same_v<Value, bool>;
template <class Value>
inline constexpr bool kIsWholeNumber<std::optional<Value>> = kIsWholeNumber<Value>;

// A command that was declared; the parser writes into its options, which live as long as it does.
template <class Options>
struct Command {
  CLI::App* app;
  std::shared_ptr<Options> options;
  Options* operator->() const { return options.get(); }
  // `type` names the value in the help.
  template <class Value>
  CLI::Option* Add(const char* name, Value& value, const char* what, const char* type) const {
    CLI::Option* option = app->add_option(name, value, what)->type_name(type);
    return kIsWholeNumber<Value> ? option->check(DecimalTrouble) : option;
  }
};

struct CommandKind {
  bool json = true;    // it takes --json
  bool works = false;  // see Chosen
};

// A command with the common flags; `run` carries it out.
template <class Options>
Command<Options> AddCommand(CLI::App& parent, Chosen& chosen, const char* name, const char* what,
                            const char* examples, Result<ExitCode> (*run)(const Options&),
                            CommandKind kind = {}) {
  Command<Options> command{parent.add_subcommand(name, what), std::make_shared<Options>()};
  command.app->footer(std::string("Example:\n") + examples);
  AddCommon(*command.app, CommonOf(*command.options), kind.json);
  command.app->callback([&chosen, options = command.options, run, works = kind.works] {
    chosen = {[options, run] { return run(*options); }, &CommonOf(*options), works};
  });
  return command;
}

// What a command that reads has found is an object with a named list: {"tasks":[…]}. Without `indent` (see
// JsonText) it is one line for programs, and lines that a person can read on a terminal.
void PrintJson(const nlohmann::ordered_json& json, std::optional<int> indent = {});
// The `away` of such an object: why which shard can't be read.
nlohmann::ordered_json AwayJson(const std::map<std::string, Error>& away);
// A line of errors for each of them: `before`, the shard, `after`, and why; and the exit status of the first.
ExitCode TellAway(const std::map<std::string, Error>& away, const char* before, const char* after);
// --json or a text.
void PrintAnswer(const CommonFlags& flags, const nlohmann::ordered_json& json, const std::string& text);
// --json or a table; where that has no rows, `none`.
void PrintAnswer(const CommonFlags& flags, const nlohmann::ordered_json& json, const TextTable& table,
                 const std::string& none);

}  // namespace millrace::engine
