#include "coordinator/app/help/help_tree.h"

#include <algorithm>
#include <fstream>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"

namespace millrace::engine {
namespace {

HelpOption ReadOption(const CLI::Option& option) {
  HelpOption read;
  read.positional = option.get_positional() && option.get_lnames().empty();
  if (read.positional) {
    read.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) read.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) read.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) read.value = option.get_type_name();
  read.what = option.get_description();
  read.preset = option.get_default_str();
  read.required = option.get_required();
  read.many = option.get_expected_max() > 1;
  return read;
}

void AddHelpPages(const CLI::App& command, std::vector<std::string> path, std::vector<HelpPage>& pages) {
  path.push_back(command.get_name());
  const std::size_t at = pages.size();
  pages.push_back({path, command.get_description(), command.get_footer(), {}, {}});
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty()) pages[at].options.push_back(ReadOption(*option));
  }
  for (const CLI::App* below :
       command.get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); })) {
    pages[at].commands.push_back(below->get_name());
    AddHelpPages(*below, path, pages);
  }
}

struct PagesOptions {
  CommonFlags common;
  std::string folder;
  std::string shell;
  const CLI::App* root = nullptr;
};

Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return Fail(ErrorCode::Invalid, path + " can't be written: name a folder that exists");
}

Result<ExitCode> RunPages(const PagesOptions& options) {
  const std::vector<HelpPage> pages = HelpPages(*options.root);
  for (const HelpPage& page : pages) {
    BOOST_OUTCOME_TRYV(WriteFile(options.folder + "/" + PathText(page, '-') + ".1", ManPage(page, pages)));
  }
  BOOST_OUTCOME_TRYV(WriteFile(options.folder + "/millrace.bash", BashCompletion(pages)));
  BOOST_OUTCOME_TRYV(WriteFile(options.folder + "/_millrace", ZshCompletion(pages)));
  BOOST_OUTCOME_TRYV(WriteFile(options.folder + "/millrace.fish", FishCompletion(pages)));
  return ExitCode::Done;
}

Result<ExitCode> RunCompletion(const PagesOptions& options) {
  const std::vector<HelpPage> pages = HelpPages(*options.root);
  if (options.shell == "bash") PrintLine(BashCompletion(pages));
  if (options.shell == "zsh") PrintLine(ZshCompletion(pages));
  if (options.shell == "fish") PrintLine(FishCompletion(pages));
  return ExitCode::Done;
}

}  // namespace

std::vector<HelpPage> HelpPages(const CLI::App& root) {
  std::vector<HelpPage> pages;
  AddHelpPages(root, {}, pages);
  return pages;
}

const HelpPage* PageBelow(const HelpPage& page, const std::string& name, const std::vector<HelpPage>& pages) {
  std::vector<std::string> path = page.path;
  path.push_back(name);
  const auto found =
      std::find_if(pages.begin(), pages.end(), [&](const HelpPage& at) { return at.path == path; });
  return found == pages.end() ? nullptr : &*found;
}

std::string PathText(const HelpPage& page, char between) {
  return Joined(page.path, std::string(1, between));
}

// They need no store and no cluster, so that they have no flags but their own.
void AddPages(CLI::App& root, Chosen& chosen) {
  const auto add = [&](const char* name, const char* what, Result<ExitCode> (*run)(const PagesOptions&)) {
    const Command<PagesOptions> command{root.add_subcommand(name, what), std::make_shared<PagesOptions>()};
    command->root = &root;
    command.app->callback([&chosen, options = command.options, run] {
      chosen = {[options, run] { return run(*options); }, &options->common, false};
    });
    return command;
  };
  const auto completion =
      add("completion", "Print what a shell needs to complete commands and options", RunCompletion);
  completion.app->footer(
      "Example:\n  source <(millrace completion bash)\n"
      "  millrace completion fish > ~/.config/fish/completions/millrace.fish");
  completion.Add("shell", completion->shell, "bash, zsh or fish", "SHELL")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion.app->group("Look after them");
  const auto pages =
      add("pages", "Write the manual and the completion of all shells into a folder", RunPages);
  pages.app->group("");
  pages.Add("folder", pages->folder, "it exists", "DIR")->required();
}

}  // namespace millrace::engine
