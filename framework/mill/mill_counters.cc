#include "framework/mill/mill_counters.h"

namespace millrace::engine {
namespace {

Counter& Settled(Registry& registry, const std::string& handler, const char* outcome) {
  return registry.GetCounter("millrace_tasks_settled_total", {{"handler", handler}, {"outcome", outcome}});
}

Histogram& Ran(Registry& registry, const std::string& handler, const char* outcome) {
  return registry.GetHistogram("millrace_task_run_seconds", {{"handler", handler}, {"outcome", outcome}});
}

}  // namespace

TypeCounters::TypeCounters(Registry& registry, const std::string& shard, const std::string& handler)
    : claimed(registry.GetCounter("millrace_tasks_claimed_total", {{"shard", shard}, {"handler", handler}})),
      succeeded(Settled(registry, handler, "succeeded")),
      cancelled(Settled(registry, handler, "cancelled")),
      failed(Settled(registry, handler, "failed")),
      retried(Settled(registry, handler, "retried")),
      held(Settled(registry, handler, "held")),
      returned(Settled(registry, handler, "returned")),
      wait(registry.GetHistogram("millrace_task_wait_seconds", {{"handler", handler}})),
      ran_well(Ran(registry, handler, "succeeded")),
      ran_badly(Ran(registry, handler, "failed")),
      ran_otherwise(Ran(registry, handler, "other")),
      run_again(registry.GetCounter("millrace_transaction_retries_total",
                                    {{"shard", shard}, {"code", "handler_transaction"}})) {}

MillCounters::MillCounters(Registry& registry)
    : refused(registry.GetCounter("millrace_settles_refused_total")),
      claims_refused(registry.GetCounter("millrace_claims_refused_total")),
      claims_short(registry.GetCounter("millrace_claims_short_total")),
      adopted(registry.GetCounter("millrace_tasks_adopted_total")),
      rescued(registry.GetCounter("millrace_tasks_rescued_total")),
      marked_dead(registry.GetCounter("millrace_incarnations_marked_dead_total")),
      registry_(registry) {}

TypeCounters& MillCounters::Of(const std::string& shard, const std::string& handler) {
  MutexLock lock(mutex_);
  auto& type = types_[{shard, handler}];
  if (!type) type = std::make_unique<TypeCounters>(registry_, shard, handler);
  return *type;
}

void MillCounters::Count(TypeCounters& type, const Settlement& settlement, const AttemptTimes& times) {
  const auto count = [&times](Counter& sum, Counter& of_type, Histogram& ran) {
    sum.Add();
    of_type.Add();
    if (times.ran) ran.Observe(*times.ran);
  };
  if (times.waited) type.wait.Observe(*times.waited);
  using To = Settlement::To;
  if (settlement.to == To::Succeeded) return count(succeeded, type.succeeded, type.ran_well);
  if (settlement.to == To::Cancelled) return count(cancelled, type.cancelled, type.ran_otherwise);
  if (settlement.to == To::Failed) return count(failed, type.failed, type.ran_badly);
  if (!settlement.failed_attempt) return count(returned, type.returned, type.ran_otherwise);
  if (settlement.to == To::Held) return count(held, type.held, type.ran_badly);
  count(retried, type.retried, type.ran_badly);
}

}  // namespace millrace::engine
