// The commands with their help as plain data, read from the parser's own, and what is made of them: manual
// pages and completion for shells. Pure but for AddPages. A command that the help hides is left out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "coordinator/app/command/command.h"

namespace millrace::engine {

struct HelpOption {
  std::vector<std::string> names;  // `-v`, `--verbose`; of a positional argument its one name
  std::string value;               // what it takes: `FILE`; empty: nothing
  std::string what;
  std::string preset;  // what holds without it, where the parser knows
  bool positional = false;
  bool required = false;
  bool many = false;  // may be given more than once
};

struct HelpPage {
  std::vector<std::string> path;  // millrace, task, list
  std::string what;
  std::string footer;
  std::vector<HelpOption> options;
  std::vector<std::string> commands;  // the names of those below it
};

// In the order of the help, each command before those below it.
std::vector<HelpPage> HelpPages(const CLI::App& root);

// That of a command of this one; nullptr where it has none of this name.
const HelpPage* PageBelow(const HelpPage& page, const std::string& name, const std::vector<HelpPage>& pages);

// `millrace task list`, `millrace-task-list`
std::string PathText(const HelpPage& page, char between = ' ');

// A page of the manual in man(7)'s language; `all`: to say what those below it do.
std::string ManPage(const HelpPage& page, const std::vector<HelpPage>& all);

std::string BashCompletion(const std::vector<HelpPage>& pages);
std::string ZshCompletion(const std::vector<HelpPage>& pages);
std::string FishCompletion(const std::vector<HelpPage>& pages);

// `completion SHELL`, and the hidden `pages FOLDER`, by which the build makes what it installs.
void AddPages(CLI::App& root, Chosen& chosen);

}  // namespace millrace::engine
