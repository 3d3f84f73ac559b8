#include "coordinator/app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "framework/base/log.h"

namespace millrace {
namespace {

constexpr bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

void Write(std::FILE* file, std::string_view text) {
  if (file == stderr && ErrorIsTerminal()) std::fputs(kClearLine, stderr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fputc('\n', file);
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

void PrintError(std::string_view message) {
  std::string text = "millrace: ";
  while (!message.empty()) {
    const auto end = message.find('\n');
    text += EscapeControls(message.substr(0, end));
    if (end == std::string_view::npos) break;
    text += '\n';
    message.remove_prefix(end + 1);
  }
  Write(stderr, text);
}

void PrintNote(std::string_view text) { Write(stderr, text); }
void PrintLine(std::string_view text) { Write(stdout, text); }

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  for (char c : text) width += Continues(c) ? 0 : 1;
  return width;
}

std::string Fit(std::string_view text, std::size_t width) {
  std::string safe = EscapeControls(text);
  if (DisplayWidth(safe) <= width) return safe;
  if (width == 0) return {};
  std::size_t end = 0;
  std::size_t columns = 0;
  while (end < safe.size() && columns + 1 < width) {
    ++end;
    while (end < safe.size() && Continues(safe[end])) ++end;
    ++columns;
  }
  return safe.substr(0, end) + "…";
}

std::string WithCommas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string Count(std::uint64_t number, const std::string& one, const std::string& many) {
  return WithCommas(number) + " " + (number == 1 ? one : many);
}

}  // namespace millrace
