#include "framework/base/log.h"

#include <glog/logging.h>

#include <cstdio>

#include "framework/base/utf8.h"

namespace millrace {
namespace {

bool NeedsQuotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \"=") != std::string_view::npos;
}

void AppendEscaped(std::string& out, unsigned char c) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else {
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "\\x%02x", c);
    out += buffer;
  }
}

}  // namespace

std::string EscapeControls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length == 0 || c < 0x20 || c == 0x7F) {
      AppendEscaped(out, c);
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  std::string line = EscapeControls(event);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    std::string value = EscapeControls(field.value);
    if (NeedsQuotes(value)) {
      std::string quoted = "\"";
      for (char c : value) {
        if (c == '"') quoted += '\\';
        quoted += c;
      }
      value = quoted + '"';
    }
    line += value;
  }
  switch (level) {
    case LogLevel::Info:
      LOG(INFO) << line;
      break;
    case LogLevel::Warning:
      LOG(WARNING) << line;
      break;
    case LogLevel::Error:
      LOG(ERROR) << line;
      break;
  }
}

void StartLogging(const char* program, LogLevel least) {
  FLAGS_logtostderr = true;
  FLAGS_log_utc_time = true;
  FLAGS_minloglevel = static_cast<int>(least);
  google::InitGoogleLogging(program);
}

}  // namespace millrace
