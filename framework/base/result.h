// Errors as values. A code says what the caller can do about it; the message says what, where and what to
// do, for a person.
#pragma once

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/try.hpp>
#include <string>
#include <utility>

namespace millrace::engine {

enum class ErrorCode {
  NotFound,     // the thing named does not exist
  Conflict,     // somebody else was first, or holds a lock: run the whole operation again, or leave it
  Unavailable,  // a server or resource is away and nothing was changed: try again later
  Unknown,      // the outcome of a write is not known: read back before trying again
  Invalid,      // the input is wrong and will stay wrong
  Denied,       // a server does not let us in, or not do this: it says nothing of the input
  Cancelled,    // the operation was told to stop
  Internal,     // a defect or a broken invariant
};

const char* ToString(ErrorCode code);

// To try again does not help: a person has to mend the input, or rights, a password, a certificate.
constexpr bool IsForPeople(ErrorCode code) { return code == ErrorCode::Invalid || code == ErrorCode::Denied; }

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
};

// End the process, which asked a Result for the half that it does not have: a programmer's error.
[[noreturn]] void AbortOverError(const Error& error);
[[noreturn]] void AbortOverValue();

struct AbortOnMisuse : BOOST_OUTCOME_V2_NAMESPACE::policy::base {
  template <class Impl>
  static void wide_value_check(Impl&& self) {
    if (!_has_value(self)) AbortOverError(_error(self));
  }
  template <class Impl>
  static void wide_error_check(Impl&& self) {
    if (!_has_error(self)) AbortOverValue();
  }
};

// Either a T or an Error; made of nothing it is a T{}. value() and error() end the process where there is
// none; `*` and `->` trust their caller. BOOST_OUTCOME_TRY(name, call) forwards an error, or else declares
// `name`, the value; BOOST_OUTCOME_TRYV(call) forwards an error and drops the value. Not thread-safe; copy
// it.
template <class T>
class [[nodiscard]] Result : public BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, Error, AbortOnMisuse> {
  using Base = BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, Error, AbortOnMisuse>;

 public:
  using Base::Base;
  Result() : Base(BOOST_OUTCOME_V2_NAMESPACE::in_place_type<T>) {}

  decltype(auto) operator*() & { return this->assume_value(); }
  decltype(auto) operator*() const& { return this->assume_value(); }
  decltype(auto) operator*() && { return std::move(*this).assume_value(); }
  auto* operator->() { return &this->assume_value(); }
  auto* operator->() const { return &this->assume_value(); }
  template <class U>
  T value_or(U&& other) const& {
    return this->has_value() ? this->assume_value() : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return this->has_value() ? std::move(*this).assume_value() : static_cast<T>(std::forward<U>(other));
  }
};

using Status = Result<void>;
using Failure = BOOST_OUTCOME_V2_NAMESPACE::failure_type<Error>;  // becomes any Result

inline Failure Fail(ErrorCode code, std::string message) { return Failure(Error{code, std::move(message)}); }
inline Failure Fail(Error error) { return Failure(std::move(error)); }

}  // namespace millrace::engine
