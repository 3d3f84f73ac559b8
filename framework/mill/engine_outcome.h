// The outcomes that the engine itself gives to attempts. Pure.
#pragma once

#include <string>
#include <utility>

#include "framework/base/time_text.h"
#include "framework/task/outcome.h"

namespace millrace::engine {

// The class of a task that may have taken effect, though its attempt has failed.
inline constexpr const char* kEscapedClass = "escaped";

// Not run, or cut short by the engine: waiting again, in its old place of the due order or after `delay`.
inline Outcome GivenBack(std::string why = {}, std::optional<Micros> delay = std::nullopt) {
  Outcome outcome;
  outcome.kind = OutcomeKind::GiveBack;
  outcome.text = std::move(why);
  outcome.delay = delay;
  return outcome;
}

// A failed attempt, to be tried again after its ladder.
inline Outcome FailedOnce(std::string why, std::string error_class) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Retry;
  outcome.text = std::move(why);
  outcome.error_class = std::move(error_class);
  return outcome;
}

// Given up: it ran on after its time limit, and the grace behind that.
inline Outcome Overran(Micros limit) {
  return FailedOnce(
      "ran over its time limit of " + FormatDuration(limit) + " and ignored the request to stop", "timeout");
}

// To the failed pool at once.
inline Outcome FailedForGood(std::string why, std::string error_class) {
  Outcome outcome = FailedOnce(std::move(why), std::move(error_class));
  outcome.kind = OutcomeKind::Fail;
  return outcome;
}

}  // namespace millrace::engine
