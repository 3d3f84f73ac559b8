#include "coordinator/app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

constexpr bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

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

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  for (char c : text) width += Continues(c) ? 0 : 1;
  return width;
}

std::string Fit(std::string_view text, std::size_t width) {
  std::string safe = Escape(text, Backslash::Kept);
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

}  // namespace millrace::engine
