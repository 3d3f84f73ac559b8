#include "framework/base/result.h"

#include <cstdio>
#include <cstdlib>

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
    case ErrorCode::Denied:
      return "denied";
    case ErrorCode::Cancelled:
      return "cancelled";
    case ErrorCode::Internal:
      return "internal error";
  }
  return "internal error";
}

void AbortOverError(const Error& error) {
  std::fprintf(stderr, "the value of a Result was asked for, which is an error: %s: %s\n",
               ToString(error.code), error.message.c_str());
  std::abort();
}

void AbortOverValue() {
  std::fputs("the error of a Result was asked for, which is a value\n", stderr);
  std::abort();
}

}  // namespace millrace::engine
