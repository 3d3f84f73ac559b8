// What the mills of a worker count and measure together, and where it is told.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/mutex.h"
#include "framework/metrics/registry.h"
#include "framework/task/task.h"

namespace millrace::engine {

// Of the tasks of one type in one shard. Its members are the registry's; some of them are other shards', too.
struct TypeCounters {
  TypeCounters(Registry& registry, const std::string& shard, const std::string& handler);

  Counter& claimed;
  Counter& succeeded;
  Counter& cancelled;
  Counter& failed;
  Counter& retried;
  Counter& held;
  Counter& returned;
  Histogram& wait;  // due → started
  Histogram& ran_well;
  Histogram& ran_badly;  // its attempt failed
  Histogram& ran_otherwise;
  Counter& run_again;  // a transaction that met locks, or lost its connection
};

// How long an attempt waited from its due time to its start, and ran; nothing: it did not, or nobody knows.
struct AttemptTimes {
  std::optional<Micros> waited = {};
  std::optional<Micros> ran = {};
};

// The counters that the mills of a worker share. Thread-safe.
class MillCounters {
 public:
  explicit MillCounters(Registry& registry);

  // The same for the same names, as long as the counters live. There are as many as the registry tells types.
  TypeCounters& Of(const std::string& shard, const std::string& handler);
  void Count(TypeCounters& type, const Settlement& settlement, const AttemptTimes& times);

  // In sum.
  Counter claimed;
  Counter succeeded;
  Counter cancelled;
  Counter failed;
  Counter retried;
  Counter held;      // failed, to wait for somebody
  Counter returned;  // snoozed or given back

  Counter& refused;         // settles of attempts that were no longer ours
  Counter& claims_refused;  // as those of a dead life
  Counter& claims_short;    // got fewer than were seen
  Counter& adopted;
  Counter& rescued;
  Counter& marked_dead;  // incarnations of others, by us

 private:
  using Place = std::pair<std::string, std::string>;  // shard, handler

  Registry& registry_;
  Mutex mutex_;
  std::map<Place, std::unique_ptr<TypeCounters>> types_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
