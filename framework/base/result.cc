#include "framework/base/result.h"

namespace millrace::engine {

const char* ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::NotFound:
      return "not found";
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Unknown:
      return "outcome unknown";
    case ErrorCode::Invalid:
      return "invalid";
    case ErrorCode::Cancelled:
      return "cancelled";
    case ErrorCode::Internal:
      return "internal error";
  }
  return "internal error";
}

}  // namespace millrace::engine
