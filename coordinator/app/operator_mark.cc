#include "coordinator/app/operator_mark.h"

#include "coordinator/app/paths.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"

namespace millrace::engine {

std::string OperatorMark() {
  return JsonText({{"by", Actor()}, {"at", FormatTime(SystemClock().WallNow())}});
}

}  // namespace millrace::engine
