#include "framework/mill/mill_counters.h"

namespace millrace::engine {
namespace {

Counter& Settles(Registry& registry, const char* outcome) {
  return registry.GetCounter("millrace_tasks_settled_total", {{"outcome", outcome}});
}

}  // namespace

MillCounters::MillCounters(Registry& registry)
    : claimed(registry.GetCounter("millrace_tasks_claimed_total")),
      succeeded(Settles(registry, "succeeded")),
      cancelled(Settles(registry, "cancelled")),
      failed(Settles(registry, "failed")),
      retried(Settles(registry, "retried")),
      returned(Settles(registry, "returned")),
      refused(registry.GetCounter("millrace_settles_refused_total")),
      adopted(registry.GetCounter("millrace_tasks_adopted_total")),
      rescued(registry.GetCounter("millrace_tasks_rescued_total")),
      marked_dead(registry.GetCounter("millrace_incarnations_marked_dead_total")) {}

void MillCounters::Count(const Settlement& settlement) {
  switch (settlement.to) {
    case Settlement::To::Succeeded:
      succeeded.Add();
      break;
    case Settlement::To::Cancelled:
      cancelled.Add();
      break;
    case Settlement::To::Failed:
      failed.Add();
      break;
    case Settlement::To::Waiting:
      (settlement.failed_attempt ? retried : returned).Add();
      break;
  }
}

}  // namespace millrace::engine
