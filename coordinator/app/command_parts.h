// How the commands are declared: each leaves its action where it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "coordinator/app/exit_code.h"
#include "coordinator/app/settings.h"

namespace millrace {

struct Chosen {
  std::function<Result<ExitCode>()> action;
  CommonFlags* common = nullptr;
  bool works = false;  // it runs tasks, so its log is of interest
};

// `reads`: it takes --json.
void AddCommon(CLI::App& app, CommonFlags& flags, bool reads);
// --zk and its like alone: for commands that touch no store.
void AddClusterAddress(CLI::App& app, CommonFlags& flags);
void AddFolders(CLI::App& app, CommonFlags& flags);
CLI::App* AddCommand(CLI::App& parent, const char* name, const char* what, const std::string& examples);
void Choose(CLI::App* app, Chosen& chosen, CommonFlags& common, bool works,
            std::function<Result<ExitCode>()> action);

// The commands `cluster` and `config`, whose flags live as long as the returned value.
class ClusterCommands {
 public:
  ClusterCommands(CLI::App& root, Chosen& chosen);
  ~ClusterCommands();

 private:
  struct Flags;
  std::unique_ptr<Flags> flags_;
};

}  // namespace millrace
