#include "coordinator/app/exit_code.h"

namespace millrace::engine {

ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::Invalid:
      return ExitCode::Usage;
    case ErrorCode::Unavailable:
    case ErrorCode::Unknown:
      return ExitCode::Unreachable;
    case ErrorCode::Conflict:
      return ExitCode::Refused;
    case ErrorCode::NotFound:
    case ErrorCode::Cancelled:
    case ErrorCode::Internal:
      break;
  }
  return ExitCode::SomethingFailed;
}

}  // namespace millrace::engine
