#include "framework/base/log.h"

#include <glog/logging.h>

#include <cstdio>

namespace millrace {
namespace {

bool NeedsQuotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \"=") != std::string_view::npos;
}

// The length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  std::size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : (lead & 0xF0) == 0xE0 ? 3
                       : lead >= 0xF0 && lead < 0xF5                 ? 4
                                                                     : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
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
    const std::size_t length = SequenceLength(text);
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
    case LogLevel::Info: LOG(INFO) << line; break;
    case LogLevel::Warning: LOG(WARNING) << line; break;
    case LogLevel::Error: LOG(ERROR) << line; break;
  }
}

void StartLogging(const char* program, LogLevel least) {
  FLAGS_logtostderr = true;
  FLAGS_log_utc_time = true;
  FLAGS_minloglevel = static_cast<int>(least);
  google::InitGoogleLogging(program);
}

}  // namespace millrace
