#include "framework/base/log_line.h"
#include "framework/base/escape.h"

#include <cstdio>

namespace millrace::engine {
namespace {

bool NeedsQuotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \"=") != std::string_view::npos;
}

// An event is a sentence, and its spaces are its own.
bool HoldsFields(std::string_view event) { return event.find_first_of("\"=") != std::string_view::npos; }

std::string Quoted(std::string_view value) {
  std::string quoted = "\"";
  for (char c : value) {
    if (c == '"') quoted += '\\';  // a backslash before it is a doubled one
    quoted += c;
  }
  return quoted + '"';
}

// Always three digits, where FormatTime writes as many as there are.
std::string Stamp(WallTime at) {
  const auto second = std::chrono::floor<std::chrono::seconds>(at);
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(at - second).count();
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(second - day);
  char buffer[80];
  std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()), static_cast<int>(millis));
  return buffer;
}

char LetterOf(LogLevel level) {
  switch (level) {
    case LogLevel::Info:
      return 'I';
    case LogLevel::Warning:
      return 'W';
    case LogLevel::Error:
      return 'E';
  }
  return '?';
}

}  // namespace

std::string LogLine(WallTime at, LogLevel level, std::string_view event,
                    std::initializer_list<LogField> fields) {
  const std::string said = Escape(event);
  std::string line = Stamp(at) + ' ' + LetterOf(level) + ' ' + (HoldsFields(said) ? Quoted(said) : said);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    const std::string value = Escape(field.value);
    line += NeedsQuotes(value) ? Quoted(value) : value;
  }
  return line;
}

}  // namespace millrace::engine
