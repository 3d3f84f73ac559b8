#include "coordinator/app/usage_error.h"

#include <algorithm>
#include <vector>

#include "framework/base/suggest.h"

namespace millrace::engine {
namespace {

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

}  // namespace

std::string UsageErrorText(const CLI::App& root, const CLI::ParseError& error) {
  std::string wrong = WrongCommand(root);
  if (wrong.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) wrong = WrongOption(root);
  return (wrong.empty() ? error.what() : wrong) + "; see " + HelpOf(root);
}

std::string EmptyOptionText(const CLI::App& root) {
  for (const CLI::Option* option : Named(root).get_options()) {
    const std::vector<std::string>& given = option->results();
    if (option->get_lnames().empty() || std::find(given.begin(), given.end(), "") == given.end()) continue;
    return option->get_name() + " has an empty value; give it one, or leave it out; see " + HelpOf(root);
  }
  return "";
}

}  // namespace millrace::engine
