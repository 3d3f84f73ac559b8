#include "framework/base/log.h"

#include <glog/logging.h>
#include <unistd.h>

#include "framework/base/clock.h"
#include "framework/base/log_line.h"

namespace millrace::engine {
namespace {

// Written before each line where standard error is a terminal: a progress line that is drawn there goes, so
// that none of it stays behind the line's end.
const char* clear_line = "";

}  // namespace

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (static_cast<int>(level) < FLAGS_minloglevel) return;
  const auto render = CurrentLogFormat() == LogFormat::Json ? JsonLogLine : LogLine;
  const std::string line = clear_line + render(SystemClock().WallNow(), level, event, fields);
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

}  // namespace millrace::engine
