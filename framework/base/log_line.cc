#include "framework/base/log_line.h"

#include <cstdio>

#include "framework/base/escape.h"

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

const char* NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::Info:
      return "info";
    case LogLevel::Warning:
      return "warning";
    case LogLevel::Error:
      return "error";
  }
  return "unknown";
}

// A text of JSON that no terminal obeys.
std::string JsonQuoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : EscapeBroken(text)) {
    char code[8];
    if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return EscapeJson(quoted + '"');
}

std::string JsonKey(std::string_view key) {
  const bool taken = key == "time" || key == "level" || key == "message";
  return JsonQuoted((taken ? "field_" : "") + std::string(key));
}

LogFormat format_of_log = LogFormat::Text;  // see SetLogFormat

}  // namespace

void SetLogFormat(LogFormat format) { format_of_log = format; }
LogFormat CurrentLogFormat() { return format_of_log; }

std::string JsonLogLine(WallTime at, LogLevel level, std::string_view event,
                        std::initializer_list<LogField> fields) {
  std::string line =
      R"({"time":")" + Stamp(at) + R"(","level":")" + NameOf(level) + R"(","message":)" + JsonQuoted(event);
  for (const LogField& field : fields) line += "," + JsonKey(field.key) + ":" + JsonQuoted(field.value);
  return line + "}";
}

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
