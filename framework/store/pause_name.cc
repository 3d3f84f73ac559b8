#include "framework/base/utf8.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

Status CheckPauseName(const std::string& what) {
  if (!what.empty() && what.size() <= kMaxPauseName && IsUtf8(what)) return {};
  return Fail(ErrorCode::Invalid, "'" + Shorten(what, 60) + "' can't be paused: a name has 1 to " +
                                      std::to_string(kMaxPauseName) + " bytes of UTF-8");
}

}  // namespace millrace::engine
