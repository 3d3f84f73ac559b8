// The counters that the mills of a worker share.
#pragma once

#include "framework/metrics/registry.h"
#include "framework/task/outcome.h"

namespace millrace::engine {

// Thread-safe.
struct MillCounters {
  explicit MillCounters(Registry& registry);
  void Count(const Settlement& settlement);

  Counter& claimed;
  Counter& succeeded;
  Counter& cancelled;
  Counter& failed;
  Counter& retried;
  Counter& returned;  // snoozed or given back
  Counter& refused;   // settles of attempts that were no longer ours
  Counter& adopted;
  Counter& rescued;
  Counter& marked_dead;  // incarnations of others, by us
};

}  // namespace millrace::engine
