// What a handler says of an attempt, and what the engine makes of it.
#pragma once

#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/task/task.h"

namespace millrace::engine {

enum class OutcomeKind {
  Done,      // text: the result, may be empty
  Retry,     // text: why. A failed attempt; `at` or `delay` override the ladder
  Fail,      // text: why. To the failed pool now
  Snooze,    // not a failure: again at `at` or after `delay`
  Skip,      // text: why. To the finished pool as skipped
  GiveBack,  // engine only: not run, or cut short by a stop; not a failure
  Cancel,    // engine only: it was cancelled. To the finished pool
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::Done;
  std::string text;
  std::optional<WallTime> at;
  std::optional<Micros> delay;
  std::string error_class;  // short and stable, for grouping: `timeout`, `http_503`
};

// The write that ends one attempt, as the store carries it out.
struct Settlement {
  enum class To {
    Succeeded = static_cast<int>(TaskState::Succeeded),
    Cancelled = static_cast<int>(TaskState::Cancelled),
    Failed = static_cast<int>(TaskState::Failed),
    Waiting = static_cast<int>(TaskState::Waiting),
  };

  TaskKey key;
  std::uint32_t attempt = 0;
  To to = To::Succeeded;
  bool failed_attempt = false;  // failures+1, and a row in millrace_attempts
  // To::Waiting only: when it is due again. Exactly one of them, or neither: due at once, run_at unchanged.
  std::optional<WallTime> run_at;
  std::optional<Micros> delay;  // after the database's now
  std::string text;             // Succeeded: the result; otherwise the reason (kept as last_error)
  std::string error_class;
  // The handler was called in this attempt, as far as anybody can tell: true where it is not known. A task
  // that never started gives its key back when it is cancelled.
  bool started = true;
  // Copied from the task, for counters and the key ledger.
  std::string handler;
  std::string biz_key;
  std::string batch;
};

inline TaskState StateAfter(Settlement::To to) { return static_cast<TaskState>(to); }

}  // namespace millrace::engine
