// How a cluster is: what people are told of it beside the numbers. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/cluster/cluster_snapshot.h"
#include "framework/base/clock.h"

namespace millrace::engine {

// Something that is not as it should be.
struct Trouble {
  std::string what;
  std::string remedy;  // what to do, a command where there is one; empty: `what` says it, or it passes
};
// Both, of one line.
std::string ToText(const Trouble& trouble);

struct ShardState {
  bool reachable = false;
  std::string error;
  std::vector<TableInfo> tables;
  Backlog backlog;
  std::optional<Micros> oldest_due;  // for how long the oldest task has been due
  std::vector<std::string> pauses;
};
using ShardStates = std::map<std::string, ShardState>;

// Whoever the term names still stands for it.
bool IsLed(const ClusterSnapshot& snapshot);
// `w1`, or `none`: nobody stands for it, or `electing`: somebody does, and has not begun its term.
std::string LeaderText(const ClusterSnapshot& snapshot);
// working, draining; of one without slices standby or probation; of one that is away restarting, stopped (in
// good order) or gone.
std::string StateOf(const ClusterSnapshot& snapshot, const std::string& id);
// For how long a worker of the cluster, which is there, has written no status: it does at least once a
// minute, and until that is late it is `in touch`.
std::string SignText(Micros ago);
// Why work stands still for want of a leader or a plan; nullopt: it does not.
std::optional<Trouble> Standstill(const ClusterSnapshot& snapshot);
// The same, or that tasks wait and nobody may run any: no worker is there, all are drained or paused, or the
// cluster is paused.
std::optional<Trouble> Standstill(const ClusterSnapshot& snapshot, const ShardStates& shards);
// There are shards, and none could be asked: what waits is not known.
bool AllAway(const ShardStates& shards);
// What each worker says of its doorbell in a shard, by worker: `on`, or `off` and why.
std::map<std::string, std::string> DoorbellsOf(const ClusterSnapshot& snapshot, const std::string& shard);
// What is not as it should be, the gravest first.
std::vector<Trouble> Troubles(const ClusterSnapshot& snapshot, const ShardStates& shards, WallTime now);

// What a worker says of a type with due tasks in the shard whose handler does not open there; empty: nothing.
std::string WhyUnopened(const ClusterSnapshot& snapshot, const std::string& worker, const std::string& shard,
                        const std::string& type);

// When the open breaker of a type is probed next, at the soonest, by the workers' word; nullopt: none tells.
std::optional<WallTime> NextProbe(const ClusterSnapshot& snapshot, const std::string& type);
// Of the open breaker of a type: `18 of 20 calls failed within 10s, since 2026-11-20T18:00:00Z, by w1; probed
// last by w2 at …, next at …`
std::string BreakerText(const ClusterSnapshot& snapshot, const std::string& type, WallTime now);

}  // namespace millrace::engine
