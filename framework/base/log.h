// One line per event that an operator needs: a plain sentence and key=value fields. Values are escaped, so
// that a line is always one line; callers never pass a secret. Thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace millrace::engine {

struct LogField {
  std::string_view key;
  std::string value;
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  template <std::integral Number>
  LogField(std::string_view k, Number v) : key(k), value(std::to_string(v)) {}
};

enum class LogLevel { Info, Warning, Error };

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});
inline void LogInfo(std::string_view e, std::initializer_list<LogField> f = {}) { Log(LogLevel::Info, e, f); }
inline void LogWarning(std::string_view e, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::Warning, e, f);
}
inline void LogError(std::string_view e, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::Error, e, f);
}

// Once, in main: log to standard error, lines below `least` dropped.
void StartLogging(const char* program, LogLevel least);

}  // namespace millrace::engine
