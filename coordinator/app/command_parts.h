// How the commands are declared: each area in a file of its own, each command leaving its action where it
// was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/app/exit_code.h"
#include "coordinator/app/settings.h"

namespace millrace::engine {

struct Chosen {
  std::function<Result<ExitCode>()> action;
  const CommonFlags* common = nullptr;
  bool works = false;  // it runs tasks, so its log is of interest
};

// Every command there is.
void AddMillCommands(CLI::App& root, Chosen& chosen);  // run, worker, coordinator
void AddSubmitCommand(CLI::App& root, Chosen& chosen);
void AddTaskCommands(CLI::App& root, Chosen& chosen);
void AddClusterCommands(CLI::App& root, Chosen& chosen);
void AddConfigCommands(CLI::App& root, Chosen& chosen);
void AddSchemaCommands(CLI::App& root, Chosen& chosen);
void AddHandlerCommands(CLI::App& root, Chosen& chosen);

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

}  // namespace millrace::engine
