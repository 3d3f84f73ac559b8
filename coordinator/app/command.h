// How a command is declared: each family in a file of its own, each command leaving its action where it was
// chosen. An error is printed by main, and its code decides the exit status; ExitCode::SomethingFailed
// without an error was reported by the command itself.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/settings.h"

namespace millrace::engine {

struct Chosen {
  std::function<Result<ExitCode>()> action;
  const CommonFlags* common = nullptr;
  bool works = false;  // it runs tasks, so its log is of interest
};

// Every command there is: flags, options and action stand in the file of the same name.
void AddWorkerCommands(CLI::App& root, Chosen& chosen);  // run, worker, coordinator; worker_flags.cc
void AddSubmit(CLI::App& root, Chosen& chosen);
void AddTaskReads(CLI::App& task, Chosen& chosen);  // list, show; task.cc
void AddTaskWhy(CLI::App& task, Chosen& chosen);
void AddTaskActions(CLI::App& task, Chosen& chosen);      // retry, cancel, hold, release
void AddClusterReads(CLI::App& cluster, Chosen& chosen);  // status, slices; cluster.cc
void AddClusterPlan(CLI::App& cluster, Chosen& chosen);
void AddClusterRestarts(CLI::App& cluster, Chosen& chosen);  // drain … proceed; cluster_control.cc
void AddClusterPauses(CLI::App& cluster, Chosen& chosen);
void AddClusterLimits(CLI::App& cluster, Chosen& chosen);  // limit, protect; cluster_control.cc
void AddConfigCommands(CLI::App& config, Chosen& chosen);
void AddSchemaCommands(CLI::App& schema, Chosen& chosen);
void AddHandlerCommands(CLI::App& handler, Chosen& chosen);

// What several of them have.
CLI::App* AddCommand(CLI::App& parent, const char* name, const char* what, const std::string& examples);
// A command that is only the home of others.
CLI::App* AddFamily(CLI::App& parent, const char* name, const char* what, const std::string& examples);
// `reads`: it takes --json.
void AddCommon(CLI::App& app, CommonFlags& flags, bool reads);
void AddFolders(CLI::App& app, CommonFlags& flags);
void AddList(CLI::App& app, const char* name, std::vector<std::string>& values, const char* what);

template <class Options>
const CommonFlags& CommonOf(const Options& options) {
  if constexpr (requires { options.choice; }) {
    return options.choice.common;
  } else {
    return options.common;
  }
}
inline const CommonFlags& CommonOf(const CommonFlags& flags) { return flags; }

// `options` live as long as the command; the parser writes into them.
template <class Options>
void Choose(CLI::App* app, Chosen& chosen, const std::shared_ptr<Options>& options,
            Result<ExitCode> (*run)(const Options&), bool works = false) {
  app->callback([&chosen, options, run, works] {
    chosen = {[options, run] { return run(*options); }, &CommonOf(*options), works};
  });
}

// One line of JSON.
void PrintJson(const nlohmann::ordered_json& json);
// --json or a text.
void PrintAnswer(const CommonFlags& flags, const nlohmann::ordered_json& json, const std::string& text);

}  // namespace millrace::engine
