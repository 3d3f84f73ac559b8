// Errors as values. A code says what the caller can do about it; the message says what, where and what to
// do, for a person.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace millrace::engine {

enum class ErrorCode {
  NotFound,     // the thing named does not exist
  Conflict,     // somebody else was first, or holds a lock: run the whole operation again, or leave it
  Unavailable,  // a server or resource is away and nothing was changed: try again later
  Unknown,      // the outcome of a write is not known: read back before trying again
  Invalid,      // the input is wrong and will stay wrong
  Cancelled,    // the operation was told to stop
  Internal,     // a defect or a broken invariant
};

const char* ToString(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
};

// Either a T or an Error. Not thread-safe; copy it.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace millrace::engine
