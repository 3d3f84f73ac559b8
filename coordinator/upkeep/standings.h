// How the tasks of each shard stand, as its upkeep read them last: what is told of the cluster as a whole, by
// its leader alone, or by each process where there is no cluster.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/metrics/registry.h"
#include "framework/store/store.h"

namespace millrace::engine {

struct TypeStanding {
  std::uint64_t waiting = 0;        // running ones included; exact to kExactBacklog
  std::optional<Micros> overdue{};  // the oldest due, at the look; nothing: none is due
  std::uint64_t failed = 0;         // in the failed pool
  std::uint64_t quarantined = 0;    // of those, as far as the newest tell
  bool operator==(const TypeStanding&) const = default;
};
using StandingByType = std::map<std::string, TypeStanding>;

struct ShardStanding {
  StandingByType types = {};
  Micros late_schedule{};  // by how much the latest of its schedules is late; 0: none is
};

// What was counted, by handler; over all tables.
StandingByType StandingOf(const WaitingOverview& waiting, std::span<const TaskTotals> totals,
                          const FailedOverview& failed);

// One thread.
class StandingReader {
 public:
  explicit StandingReader(Store& store)
      : overview_(store.OpenOverview()),
        operations_(store.OpenOperations()),
        schedules_(store.OpenSchedules()) {}

  // A schedule that the configuration does not have is not late: without a cluster nobody removes its row.
  Result<ShardStanding> Read(std::span<const TableName> tables, const Config& config);

 private:
  const std::unique_ptr<OverviewStore> overview_;
  const std::unique_ptr<TaskOperations> operations_;
  const std::unique_ptr<ScheduleStore> schedules_;
};

// Thread-safe.
class Standings {
 public:
  void Keep(const std::string& shard, ShardStanding standing, BootTime read);
  // The walk over what need not be kept any longer came to its end, or has only begun to be this process's.
  void NotePruned(const std::string& shard, BootTime at);
  // This process is not the one to tell of it any more.
  void Forget(const std::string& shard);

  // After minutes in which nobody asked nothing is told of the tasks until they have been looked at again.
  void Measure(Gauges& gauges, BootTime now) const;
  // Somebody has asked within the last minutes: nobody reads for those who never ask.
  bool Wanted(BootTime now) const;

 private:
  struct Standing {
    std::optional<ShardStanding> seen;  // nullopt: nobody has looked since it is asked for
    BootTime read;
    std::optional<BootTime> pruned;
  };

  mutable Mutex mutex_;
  mutable std::map<std::string, Standing> shards_ MILLRACE_GUARDED_BY(mutex_);
  mutable std::optional<BootTime> asked_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
