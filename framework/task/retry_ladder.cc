#include "framework/task/retry_ladder.h"

#include <algorithm>

#include "framework/task/error_class.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

Settlement Base(const Task& task, const Outcome& outcome) {
  Settlement settlement;
  settlement.key = task.key;
  settlement.attempt = task.attempt;
  settlement.text = Storable(outcome.text);
  settlement.error_class = Storable(outcome.error_class, kMaxErrorClass);
  settlement.handler = task.handler;
  settlement.biz_key = task.biz_key;
  settlement.batch = task.batch;
  return settlement;
}

// Whether a failed attempt was the last one, though its outcome is for another.
bool IsGivenUp(const RetryPolicy& policy, const Task& task, const Outcome& outcome) {
  const OutcomeRule& rule = RuleOf(outcome.kind);
  if (!rule.failed_attempt) return false;
  if (NextFailure(task) >= policy.max_failures) return true;
  const RetryClass* own = rule.to == Settlement::To::Waiting ? ClassOf(policy, outcome.error_class) : nullptr;
  return own != nullptr && own->fail;
}

// Whether it would come due only when it may not begin any more: then it is skipped now, and what its last
// attempt said stays in its reason.
void EndWhereExpired(Settlement& settlement, const RetryPolicy& policy, const Task& task, WallTime now) {
  const auto expiry = ExpiryOf(task, policy.expires_in);
  if (!expiry) return;
  const WallTime due = settlement.run_at ? *settlement.run_at : now + settlement.delay.value_or(Micros(0));
  if (due < *expiry) return;
  settlement.to = Settlement::To::Cancelled;
  settlement.run_at.reset();
  settlement.delay.reset();
  const std::string said = settlement.text.empty() ? "" : "; its last attempt said: " + settlement.text;
  settlement.text = Shorten(Expired(*expiry).text + said);
}

}  // namespace

std::uint32_t NextFailure(const Task& task) { return std::max(task.failures, task.failures + 1); }

Micros Spread(Micros delay, double jitter, double unit) {
  const double factor = 1.0 + jitter * (2.0 * unit - 1.0);
  return Micros(static_cast<std::int64_t>(static_cast<double>(delay.count()) * factor));
}

const RetryClass* ClassOf(const RetryPolicy& policy, std::string_view error_class) {
  const auto fits = [error_class](const RetryClass& one) { return FitsClass(one.pattern, error_class); };
  const auto found = std::find_if(policy.classes.begin(), policy.classes.end(), fits);
  return found == policy.classes.end() ? nullptr : &*found;
}

Micros RetryDelay(const RetryPolicy& policy, std::uint32_t failure, double unit,
                  std::string_view error_class) {
  const RetryClass* own = ClassOf(policy, error_class);
  const std::vector<Micros>& delays = own != nullptr ? own->delays : policy.delays;
  if (delays.empty()) return Micros(0);
  const std::size_t tier = std::min<std::size_t>(std::max<std::uint32_t>(failure, 1) - 1, delays.size() - 1);
  return Spread(delays[tier], policy.jitter, unit);
}

Settlement Settle(const RetryPolicy& policy, const Task& task, const Outcome& outcome, double unit,
                  std::optional<WallTime> now) {
  const OutcomeRule& rule = RuleOf(outcome.kind);
  Settlement settlement = Base(task, outcome);
  settlement.failed_attempt = rule.failed_attempt;
  settlement.to = IsGivenUp(policy, task, outcome) ? Settlement::To::Failed : rule.to;
  if (settlement.to != Settlement::To::Waiting) return settlement;
  settlement.run_at = outcome.at;
  if (!outcome.at) settlement.delay = outcome.delay;
  if (rule.failed_attempt && !outcome.at && !outcome.delay)
    settlement.delay = RetryDelay(policy, NextFailure(task), unit, outcome.error_class);
  if (now && rule.says_when) EndWhereExpired(settlement, policy, task, *now);
  return settlement;
}

}  // namespace millrace::engine
