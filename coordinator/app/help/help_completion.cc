// Completion for bash, zsh and fish. All three walk along the words to the command that they name, and then
// offer what is below it and its options; where an option takes a file, files.
#include "coordinator/app/cli/text.h"
#include "coordinator/app/help/help_tree.h"

namespace millrace::engine {
namespace {

enum class Takes { Nothing, Word, File, Folder };

Takes TakesOf(const HelpOption& option) {
  if (option.value.empty()) return Takes::Nothing;
  if (option.value == "DIR") return Takes::Folder;
  return option.value.find("FILE") == std::string::npos ? Takes::Word : Takes::File;
}

std::vector<std::string> NamesTaking(const HelpPage& page, Takes takes) {
  std::vector<std::string> names;
  for (const HelpOption& option : page.options) {
    if (!option.positional && TakesOf(option) == takes)
      names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// In single quotes of a shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}
// In single quotes of fish.
std::string FishQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}
// A name of zsh's _describe ends at the first colon.
std::string Described(const std::string& name, const std::string& what) {
  std::string text = name;
  for (auto at = text.find(':'); at != std::string::npos; at = text.find(':', at + 2))
    text.insert(at, 1, '\\');
  return Quoted(text + ":" + what);
}

// A case of a shell's `case "$1|$2"`; nothing where no option of the page is of that kind.
std::string ValueCase(const HelpPage& page, Takes takes, const char* action) {
  const std::vector<std::string> names = NamesTaking(page, takes);
  if (names.empty()) return "";
  std::string patterns;
  for (const std::string& name : names)
    patterns += (patterns.empty() ? "" : "|") + Quoted(PathText(page) + "|" + name);
  return "    " + patterns + ") " + action + " ;;\n";
}

// The steps down to the command, as a case of a shell's `case "$path $word"`.
std::string KnownPaths(const std::vector<HelpPage>& pages) {
  std::string patterns;
  for (const HelpPage& page : pages) {
    if (page.path.size() > 1) patterns += (patterns.empty() ? "" : "|") + Quoted(PathText(page));
  }
  return patterns;
}

}  // namespace

std::string BashCompletion(const std::vector<HelpPage>& pages) {
  std::string text =
      "# Completion for bash, made by millrace from its own help.\n"
      "_millrace_names() {\n"
      "  compopt -o filenames 2> /dev/null\n"
      "  mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
      "}\n"
      "_millrace() {\n"
      "  local word path=millrace current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path $word\" in\n    " +
      KnownPaths(pages) +
      ") path+=\" $word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$path|$before\" in\n";
  for (const HelpPage& page : pages) {
    text += ValueCase(page, Takes::File, "_millrace_names -f \"$current\"; return");
    text += ValueCase(page, Takes::Folder, "_millrace_names -d \"$current\"; return");
    text += ValueCase(page, Takes::Word, "return");
  }
  text += "  esac\n  case $path in\n";
  for (const HelpPage& page : pages) {
    std::vector<std::string> words = page.commands;
    for (const HelpOption& option : page.options) {
      if (!option.positional) words.insert(words.end(), option.names.begin(), option.names.end());
    }
    text += "    " + Quoted(PathText(page)) + ") mapfile -t COMPREPLY < <(compgen -W " +
            Quoted(Joined(words, " ")) + " -- \"$current\") ;;\n";
  }
  return text + "  esac\n}\ncomplete -F _millrace millrace\n";
}

std::string ZshCompletion(const std::vector<HelpPage>& pages) {
  std::string text =
      "#compdef millrace\n"
      "# Completion for zsh, made by millrace from its own help.\n"
      "_millrace() {\n"
      "  local word at=millrace before=$words[CURRENT-1]\n"
      "  local -a below options\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
      "    case \"$at $word\" in\n      " +
      KnownPaths(pages) +
      ") at+=\" $word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$at|$before\" in\n";
  for (const HelpPage& page : pages) {
    text += ValueCase(page, Takes::File, "_files; return");
    text += ValueCase(page, Takes::Folder, "_files -/; return");
    text += ValueCase(page, Takes::Word, "return");
  }
  text += "  esac\n  case $at in\n";
  for (const HelpPage& page : pages) {
    std::string below;
    for (const std::string& command : page.commands)
      below += " " + Described(command, PageBelow(page, command, pages)->what);
    std::string options;
    for (const HelpOption& option : page.options) {
      if (option.positional) continue;
      for (const std::string& name : option.names) options += " " + Described(name, option.what);
    }
    text += "    " + Quoted(PathText(page)) + ") below=(" + below + " ) options=(" + options + " ) ;;\n";
  }
  return text +
         "  esac\n"
         "  (( $#below )) && _describe command below\n"
         "  (( $#options )) && _describe -o option options\n"
         "}\n"
         // Loaded from a folder of completions it is called; sourced it is registered.
         "if [[ $funcstack[1] = _millrace ]]; then _millrace \"$@\"; else compdef _millrace millrace; fi\n";
}

std::string FishCompletion(const std::vector<HelpPage>& pages) {
  std::string known;
  for (const HelpPage& page : pages) known += " " + FishQuoted(PathText(page));
  std::string text =
      "# Completion for fish, made by millrace from its own help.\n"
      "function __millrace_at\n"
      "  set -l at millrace\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    contains -- \"$at $word\"" +
      known +
      "; and set at \"$at $word\"\n"
      "  end\n"
      "  test \"$at\" = \"$argv\"\n"
      "end\n"
      "complete -c millrace -f\n";
  for (const HelpPage& page : pages) {
    const std::string here = "complete -c millrace -n " + FishQuoted("__millrace_at " + PathText(page));
    for (const std::string& command : page.commands)
      text += here + " -a " + FishQuoted(command) + " -d " +
              FishQuoted(PageBelow(page, command, pages)->what) + "\n";
    for (const HelpOption& option : page.options) {
      if (option.positional) continue;
      text += here;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (TakesOf(option) == Takes::Word) text += " -x";
      if (TakesOf(option) == Takes::File) text += " -r -F";
      if (TakesOf(option) == Takes::Folder) text += " -x -a '(__fish_complete_directories)'";
      text += " -d " + FishQuoted(option.what) + "\n";
    }
  }
  return text;
}

}  // namespace millrace::engine
