#include "framework/base/log.h"

#include <glog/logging.h>
#include <unistd.h>

#include <cstdio>

#include "framework/base/clock.h"
#include "framework/base/log_line.h"
#include "framework/base/utf8.h"

namespace millrace {
namespace {

// Written before each line where standard error is a terminal: a progress line that is drawn there goes, so
// that none of it stays behind the line's end.
const char* clear_line = "";

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
  const std::string line = clear_line + LogLine(SystemClock().WallNow(), level, event, fields);
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
  FLAGS_log_prefix = false;  // glog's names log.cc as the source of every event
  FLAGS_minloglevel = static_cast<int>(least);
  if (isatty(STDERR_FILENO) == 1) clear_line = "\r\x1b[2K";
  google::InitGoogleLogging(program);
}

}  // namespace millrace
