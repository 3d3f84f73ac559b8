#include "framework/mill/attempt.h"

#include "framework/mill/starts.h"
#include "framework/task/expiry.h"

namespace millrace::engine {

std::optional<Outcome> InsteadOfStart(Attempt& attempt, const RetryPolicy& retry, BootTime now) {
  const Task& task = attempt.task;
  const auto gate = attempt.host->GateOf(attempt);
  // It came to its lane while a limit of how many run at once was divided into places.
  if (!attempt.home && gate && gate->NeedsPermit()) return GivenBack();
  // Its policies are others since it took its start, or its permit was under way to it.
  if (!attempt.started.load(std::memory_order_relaxed) && gate != attempt.gate) return GivenBack();
  if (attempt.host->StopAsked() || attempt.host->StartDecisionOf(attempt) == StartDecision::Withdrawn) {
    return GivenBack();
  }
  if (attempt.cancel.load(std::memory_order_relaxed) || task.cancel) {
    Outcome outcome;
    outcome.kind = OutcomeKind::Cancel;
    outcome.text = "cancelled before it started";
    return outcome;
  }
  if (const auto expiry = ExpiryOf(task, retry.expires_in)) {
    const auto store = attempt.host->StoreTime(now);
    if (store && *store >= *expiry) return Expired(*expiry);
  }
  if (task.crashes >= kQuarantineCrashes) {
    return FailedForGood(
        "quarantined: its runs have killed the worker's process " + std::to_string(task.crashes) + " times",
        "crash");
  }
  if (task.failures >= retry.max_failures) {
    return FailedForGood("it has failed " + std::to_string(task.failures) + " times, the maximum is now " +
                             std::to_string(retry.max_failures),
                         "max_failures");
  }
  BreakerPolicy* breaker = attempt.gate ? attempt.gate->breaker() : nullptr;
  if (breaker != nullptr && !breaker->Begin(attempt.pass, now)) return GivenBack();
  return std::nullopt;
}

bool ReadyToStart(const AttemptPtr& attempt, const RetryPolicy& retry, BootTime now) {
  const bool may_start = attempt->lease->MayStart(now);
  const std::optional<Outcome> instead = may_start ? InsteadOfStart(*attempt, retry, now) : std::nullopt;
  if (may_start && !instead) return true;
  if (attempt->gate && (!may_start || !attempt->started.load(std::memory_order_relaxed))) {
    ReturnStart(*attempt);
    attempt->gate->TellStartsAgain();
  }
  if (may_start) {
    attempt->host->Ended({attempt, Settle(retry, attempt->task, *instead, 0)});
  } else {
    attempt->host->Park(attempt);
  }
  return false;
}

Settlement EndOf(Attempt& attempt, const RetryPolicy& retry, const Outcome& outcome, double unit,
                 BootTime now) {
  const std::optional<WallTime> store = attempt.host->StoreTime(now);
  if (BreakerPolicy* breaker = attempt.gate ? attempt.gate->breaker() : nullptr) {
    const Micros began(attempt.began.load(std::memory_order_relaxed));
    const Micros took = began == Micros(0) ? began : now.time_since_epoch() - began;
    if (const auto instead = breaker->Judge(attempt.pass, attempt.task, outcome, now, took))
      return Settle(retry, attempt.task, *instead, unit, store);
  }
  return Settle(retry, attempt.task, outcome, unit, store);
}

void GiveBack(const AttemptPtr& attempt, std::string why, std::optional<Micros> delay) {
  if (attempt->lease->Alive()) {
    attempt->host->Ended({attempt, Settle({}, attempt->task, GivenBack(std::move(why), delay), 0)});
  } else {
    attempt->host->Drop(*attempt);
  }
}

}  // namespace millrace::engine
