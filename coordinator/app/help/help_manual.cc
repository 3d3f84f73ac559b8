// Pages of the manual: man(7), checked by groff's warnings.
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cli/text_table.h"
#include "coordinator/app/help/help_tree.h"

namespace millrace::engine {
namespace {

// A text within a line of roff: no character of it is a command.
std::string Roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if (c == '\'') {
      safe += "\\(aq";
    } else if (c == '`') {
      safe += "\\(ga";
    } else if (c == '^') {
      safe += "\\(ha";
    } else if (c == '~') {
      safe += "\\(ti";
    } else {
      safe += c;
    }
  }
  return safe;
}

// A line that roff must not take for a request.
std::string RoffLine(std::string_view text) {
  return (text.starts_with('.') || text.starts_with('\'') ? "\\&" : "") + Roff(text) + "\n";
}

std::string Bold(std::string_view text) { return "\\fB" + Roff(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Roff(text) + "\\fR"; }

std::string Synopsis(const HelpPage& page) {
  std::string text = ".SH SYNOPSIS\n" + Bold(PathText(page));
  if (!page.commands.empty()) return text + " " + Italic("COMMAND") + "\n";
  text += " [" + Italic("OPTIONS") + "]";
  for (const HelpOption& option : page.options) {
    if (!option.positional) continue;
    const std::string name = Italic(option.names.front()) + (option.many ? "..." : "");
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string OptionText(const HelpOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + (option.positional ? Italic(name) : Bold(name));
  if (!option.value.empty() && !option.positional) names += " " + Italic(option.value);
  std::string what = option.what;
  if (!option.preset.empty()) what += " (" + option.preset + ")";
  return ".TP\n" + names + "\n" + RoffLine(what.empty() ? option.value : what);
}

// What stands behind `Example:`, as it is typed.
std::string Examples(const std::string& footer) {
  constexpr std::string_view kTitle = "Example:\n";
  const auto begin = footer.find(kTitle);
  if (begin == std::string::npos) return "";
  std::string text = ".SH EXAMPLES\n.nf\n";
  for (const std::string& line : LinesOf(footer.substr(begin + kTitle.size()))) {
    if (line.starts_with(' ')) text += RoffLine(line);
  }
  return text + ".fi\n";
}

std::string Reference(const std::string& name) { return ".BR " + Roff(name) + " (1)"; }

}  // namespace

std::string ManPage(const HelpPage& page, const std::vector<HelpPage>& all) {
  const std::string name = PathText(page, '-');
  std::string text = ".\\\" Made by millrace from its own help.\n.TH \"" + Roff(name) +
                     "\" 1 \"\" \"millrace " MILLRACE_VERSION "\" \"User Commands\"\n.SH NAME\n" +
                     Roff(name) + " \\- " + Roff(page.what) + "\n" + Synopsis(page) + ".SH DESCRIPTION\n" +
                     RoffLine(page.what + (page.what.ends_with('.') ? "" : "."));
  if (!page.commands.empty()) text += ".SH COMMANDS\n";
  for (const std::string& command : page.commands) {
    if (const HelpPage* below = PageBelow(page, command, all))
      text += ".TP\n" + Bold(PathText(*below)) + "\n" + RoffLine(below->what + ".");
  }
  if (!page.options.empty()) text += ".SH OPTIONS\n";
  for (const HelpOption& option : page.options) text += OptionText(option);
  text += Examples(page.footer);
  text +=
      ".SH EXIT STATUS\n0 done, 1 something failed, 2 usage or invalid input, 3 a server cannot be reached, "
      "4 "
      "refused.\n.SH SEE ALSO\n";
  std::string others;
  for (std::size_t size = 1; size < page.path.size(); ++size) {
    const std::vector<std::string> above(page.path.begin(),
                                         page.path.begin() + static_cast<std::ptrdiff_t>(size));
    others += (others.empty() ? "" : " ,\n") + Reference(Joined(above, "-"));
  }
  for (const std::string& command : page.commands)
    others += (others.empty() ? "" : " ,\n") + Reference(name + "-" + command);
  return text + (others.empty() ? Reference("millrace") : others) + "\n";
}

}  // namespace millrace::engine
