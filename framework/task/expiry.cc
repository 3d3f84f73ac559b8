#include "framework/task/expiry.h"

#include "framework/base/time_text.h"

namespace millrace::engine {

std::optional<WallTime> ExpiryOf(const Task& task, Micros expires_in) {
  if (task.expires_at || expires_in <= Micros(0)) return task.expires_at;
  return task.created_at + expires_in;
}

Outcome Expired(WallTime expiry) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Skip;
  outcome.text = "expired at " + FormatTime(expiry);
  return outcome;
}

Status CheckExpiry(const NewTask& task, std::optional<WallTime> now) {
  if (!task.expires_at && !task.expires_in) return {};
  const std::string name = task.expires_at ? "expires_at" : "expires_in";
  if (task.expires_at && task.expires_in)
    return Fail(ErrorCode::Invalid, "give either expires_at or expires_in");
  // Both are times, or both count from the same moment.
  const bool alike = task.run_at.has_value() == task.expires_at.has_value();
  if (!alike && !now) return {};
  const WallTime from = now.value_or(WallTime{});
  const WallTime due = task.run_at.value_or(from + task.delay.value_or(Micros(0)));
  const WallTime expiry = task.expires_at.value_or(from + task.expires_in.value_or(Micros(0)));
  if (expiry > due) return {};
  const std::string when =
      task.expires_at ? "at " + FormatTime(expiry) : FormatDuration(*task.expires_in) + " from now";
  return Fail(ErrorCode::Invalid,
              name + ": the task would expire " + when + ", and be due no sooner: it could never start");
}

}  // namespace millrace::engine
