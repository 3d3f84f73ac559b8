#include "coordinator/app/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/escape.h"
#include "framework/base/log_line.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kInkEnd = "\x1b[0m";

constexpr std::string_view BeginningOf(Ink ink) {
  switch (ink) {
    case Ink::Good:
      return "\x1b[32m";
    case Ink::Bad:
      return "\x1b[31m";
    case Ink::Caution:
      return "\x1b[33m";
    case Ink::Active:
      return "\x1b[36m";
    case Ink::Quiet:
      return "\x1b[2m";
    case Ink::Plain:
      break;
  }
  return "";
}

bool ShowsInk(bool is_terminal) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return is_terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string Inked(bool shows, Ink ink, std::string text) {
  if (!shows || ink == Ink::Plain || text.empty()) return text;
  return std::string(BeginningOf(ink)) + text + std::string(kInkEnd);
}

// How much of the beginning of the text is a colour of ours.
std::size_t InkLength(std::string_view text) {
  for (const Ink ink : {Ink::Good, Ink::Bad, Ink::Caution, Ink::Active, Ink::Quiet})
    if (text.starts_with(BeginningOf(ink))) return BeginningOf(ink).size();
  return text.starts_with(kInkEnd) ? kInkEnd.size() : 0;
}

std::string SafeLine(std::string_view line, bool ink) {
  std::string safe;
  while (ink) {
    const auto escape = line.find('\x1b');
    if (escape == std::string_view::npos) break;
    const std::size_t length = InkLength(line.substr(escape));
    const std::size_t taken = escape + (length == 0 ? 1 : 0);
    safe += Escape(line.substr(0, taken), Backslash::Kept);
    safe += line.substr(taken, length);
    line.remove_prefix(taken + length);
  }
  return safe + Escape(line, Backslash::Kept);
}

// The last net: whatever a caller forgot, nothing but text, colours and line feeds reaches the terminal.
std::string SafeLines(std::string_view text, bool ink) {
  std::string safe;
  while (true) {
    const auto end = text.find('\n');
    safe += SafeLine(text.substr(0, end), ink) + '\n';
    if (end == std::string_view::npos) return safe;
    text.remove_prefix(end + 1);
  }
}

int output_error = 0;  // of the first text that standard output did not take

void Write(std::FILE* file, std::string_view text) {
  const std::string safe = SafeLines(text, ShowsInk(file == stderr ? ErrorIsTerminal() : OutputIsTerminal()));
  if (file == stderr && ErrorIsTerminal()) std::fputs(kClearLine, stderr);
  const bool written =
      std::fwrite(safe.data(), 1, safe.size(), file) == safe.size() && std::fflush(file) == 0;
  if (!written && file == stdout && output_error == 0) output_error = errno;
}

// Set once, before the command begins.
bool errors_as_json = false;

// Stable, for programs.
const char* CodeText(ErrorCode code) {
  switch (code) {
    case ErrorCode::NotFound:
      return "not_found";
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Unknown:
      return "unknown";
    case ErrorCode::Invalid:
    case ErrorCode::Denied:
      return "invalid";
    case ErrorCode::Cancelled:
      return "cancelled";
    case ErrorCode::Internal:
      break;
  }
  return "internal";
}

// Whoever reads the log as JSON reads all of standard error so.
bool WrittenToLog(LogLevel level, std::string_view text) {
  if (CurrentLogFormat() != LogFormat::Json) return false;
  Write(stderr, JsonLogLine(SystemClock().WallNow(), level, text, {}));
  return true;
}

void PrintError(std::string_view message, const char* code) {
  if (!errors_as_json && WrittenToLog(LogLevel::Error, message)) return;
  if (!errors_as_json) {
    Write(stderr, ForError(Ink::Bad, "millrace:") + " " + std::string(message));
    return;
  }
  const nlohmann::ordered_json error{{"error", {{"message", EscapeBroken(message)}, {"code", code}}}};
  Write(stderr, EscapeJson(error.dump()));
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

std::string ForOutput(Ink ink, std::string text) {
  return Inked(ShowsInk(OutputIsTerminal()), ink, std::move(text));
}
std::string ForError(Ink ink, std::string text) {
  return Inked(ShowsInk(ErrorIsTerminal()), ink, std::move(text));
}

void PrintErrorsAsJson() { errors_as_json = true; }

void PrintError(const Error& error) { PrintError(error.message, CodeText(error.code)); }
void PrintError(std::string_view message) { PrintError(message, "failed"); }

void PrintNote(std::string_view text) {
  if (!WrittenToLog(LogLevel::Info, text)) Write(stderr, text);
}
void PrintLine(std::string_view text) { Write(stdout, text); }
int OutputError() { return output_error; }

Status Confirm(const std::string& question, bool yes) {
  if (yes) return {};
  if (!InputIsTerminal() || !ErrorIsTerminal()) {
    return Fail(ErrorCode::Conflict, "nothing was changed: there is no terminal to ask on (" + question +
                                         "); add --yes to go ahead");
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return Fail(ErrorCode::Conflict, "nothing was changed");
}

}  // namespace millrace::engine
