#include "coordinator/app/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

// The last net: whatever a caller forgot, nothing but text and line feeds reaches the terminal.
std::string SafeLines(std::string_view text) {
  std::string safe;
  while (true) {
    const auto end = text.find('\n');
    safe += Escape(text.substr(0, end), Backslash::Kept) + '\n';
    if (end == std::string_view::npos) return safe;
    text.remove_prefix(end + 1);
  }
}

void Write(std::FILE* file, std::string_view text) {
  const std::string safe = SafeLines(text);
  if (file == stderr && ErrorIsTerminal()) std::fputs(kClearLine, stderr);
  std::fwrite(safe.data(), 1, safe.size(), file);
  std::fflush(file);
}

}  // namespace

bool OutputIsTerminal() { return isatty(STDOUT_FILENO) == 1; }
bool ErrorIsTerminal() { return isatty(STDERR_FILENO) == 1; }
bool InputIsTerminal() { return isatty(STDIN_FILENO) == 1; }

std::size_t TerminalWidth() {
  for (const int file : {STDERR_FILENO, STDOUT_FILENO}) {
    winsize size{};
    if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 80;
}

void PrintError(std::string_view message) { Write(stderr, "millrace: " + std::string(message)); }

void PrintNote(std::string_view text) { Write(stderr, text); }
void PrintLine(std::string_view text) { Write(stdout, text); }

Status Confirm(const std::string& question, bool yes) {
  if (yes) return {};
  if (!InputIsTerminal() || !ErrorIsTerminal()) {
    return Fail(ErrorCode::Conflict,
                "nothing was changed: there is no terminal to ask on; add --yes to go ahead");
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return Fail(ErrorCode::Conflict, "nothing was changed");
}

}  // namespace millrace::engine
