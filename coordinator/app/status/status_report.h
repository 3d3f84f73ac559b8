// What `millrace status` makes of what it read: what is wrong and what to do, whether anything can run, and
// how it is shown. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/schedule/schedule_report.h"
#include "framework/base/clock.h"
#include "framework/config/config.h"
#include "framework/store/overview.h"
#include "framework/store/permit_store.h"
#include "framework/store/schema_store.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

enum class WorkerLife {
  Alive,
  Unsure,  // its beat was not yet seen to move: nobody has watched for long enough
  Silent,  // its beat stood still for longer than a living worker's may
  Gone,    // its process is not there any more
};

struct WorkerFacts {
  std::string name;
  std::string place;  // `host:pid`
  std::string state;  // of a cluster's worker, as `cluster status` has it
  WorkerLife life = WorkerLife::Alive;
  std::optional<Micros> last_sign;  // ago; nullopt: none was seen
  std::optional<std::uint64_t> running;
  std::optional<double> ended_per_second;
  std::optional<std::size_t> slices;                 // of a cluster's worker
  std::string load_balance;                          // without a cluster: the numbers it serves; empty: all
  std::set<std::string> shards;                      // without a cluster: where it is registered
  std::optional<std::vector<std::string>> handlers;  // the task types it runs; nullopt: not known
};

struct ShardFacts {
  std::string address;
  std::string error;  // why it can't be read; then the rest is empty
  std::vector<TableInfo> tables;
  WaitingOverview waiting;
  std::vector<TaskTotals> totals;  // by batch only of those that are shown
  FailedOverview failed;
  std::vector<PauseRecord> pauses;
  std::vector<Permit> permits;  // that a living worker holds
  std::string permit_home;      // the shard that it names; empty: none
};

// What the workers of a cluster tell of why due tasks wait.
struct ClusterHolds {
  std::set<std::string> limits;  // task types of which more wants to start than may
  std::map<std::string, std::set<std::string>>
      full;                                // by task type: the workers whose lane has no room for it
  std::map<std::string, WallTime> bands;   // by task type: when the first of its bands may be scanned again
  std::map<std::string, WallTime> probes;  // by task type whose breaker is open: the next, at the soonest
  std::map<std::string, double> speeds;    // by shard, where the brake holds: of the slowest scan
};
ClusterHolds HoldsOf(const ClusterSnapshot& snapshot);  // status_held.cc

// Of a cluster, where one is named.
struct StatusCluster {
  std::string unreached;              // why it can't be asked; then the rest is empty
  std::string leader;                 // empty: nobody
  std::optional<Trouble> standstill;  // why work stands still; nullopt: it does not
  std::vector<Trouble> troubles;      // what is not as it should be, that too
  std::vector<std::string> pauses;
  std::set<std::string> breakers;  // task types whose breaker is open
  ClusterHolds holds;
};

struct AlertFacts {
  std::string name;
  std::optional<bool> fires;  // nullopt: a shard was not asked, or is away, and may have said so last
  std::string text;           // what it says while it fires
};

struct StatusFacts {
  WallTime now;
  std::map<std::string, ShardFacts> shards;
  std::vector<WorkerFacts> workers;
  std::optional<StatusCluster> cluster;
  std::optional<Micros> window;                   // between two looks at the counters; nullopt: there was one
  std::map<std::string, double> ended;            // tasks a second that ended, by task type, in the window
  std::optional<std::vector<AlertFacts>> alerts;  // nullopt: none are configured, or nobody judges them
  std::vector<ScheduleFacts> schedules;           // those that were read
  std::vector<BatchGlance::Seen> batches;         // those that are shown
  Counted other_batches;                          // and how many there are beside them
  std::map<std::string, HandlerConfig> handlers;  // the configuration of task types
  Micros brake{0};                                // engine.brake.latency
  std::optional<std::set<std::string>> plugin_handlers;  // of the plugins at hand, where it was asked
  std::map<std::string, std::string>
      cannot_open;          // likewise: task types, and why their handler does not open
  bool has_config = false;  // a configuration was read, which may be the workers'
};

// Which batches of all shards are shown, and how many are not: those that have not ended, the newest first; a
// few of the newest that have; then those without a row in any shard. A name may have a row in one shard and
// counts alone in another.
inline constexpr std::size_t kShownBatches = 20;
void ChooseBatches(const std::vector<BatchGlance>& of_shards, StatusFacts& facts);
// Those that some shard shows without a row: another may have that, and have shown others.
std::vector<std::string> PlainSomewhere(const std::vector<BatchGlance>& of_shards);
bool HasRowOf(const BatchGlance& glance, const std::string& name);

// All of one task type, over the shards; of its tables the one with the oldest due task.
struct TypeState {
  HandlerOverview now{.table = kDefaultTable, .handler = {}};
  std::uint64_t succeeded = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t attempts_failed = 0;
};
std::map<std::string, TypeState> TypesOf(const StatusFacts& facts);

// The types that living workers run, where each of them tells.
KnownHandlers HandlersOf(const StatusFacts& facts);

// What holds due tasks back on purpose, by a code of `task why` (task_why.h), or `queue_full`.
struct Hold {
  std::string code;
  std::string text;
  bool all = true;  // the tasks of the type wait for it; false: some may
};
// Of due tasks of the type; empty: nothing does, as far as is known. status_held.cc.
std::vector<Hold> HoldsOn(const StatusFacts& facts, const std::string& handler, const TypeState& type);
// More than a brake or a full queue, which only slow things down: that nothing starts is no fault.
bool IsHeld(const std::vector<Hold>& holds);
// Of all types, for a person: `held: 3 tasks of noop: its breaker is open`.
std::vector<std::string> HeldLines(const StatusFacts& facts);
// `1,204 tasks`, `10,000 or more tasks`.
std::string HowMany(const Counted& counted, const char* one, const char* many);
// All of the type that waits is paused; by itself or by hand, anywhere, its breaker is open.
bool PausedEverywhere(const StatusFacts& facts, const std::string& handler);
bool BreakerIsOpen(const StatusFacts& facts, const std::string& handler);
// Some worker that may live runs the type. Workers of which it is not known may run any.
bool SomebodyMayRun(const StatusFacts& facts, const std::string& handler);
bool OpenedByHand(const StatusFacts& facts, const std::string& handler);

// Types with due tasks of which nothing runs or ends: of these it is asked whether their handler opens.
std::set<std::string> IdleTypes(const StatusFacts& facts);

// What is wrong, the worst first; status_findings.cc.
std::vector<Trouble> FindingsOf(const StatusFacts& facts);
// False: tasks wait, and none of them can be run.
bool CanRun(const StatusFacts& facts);

// For a person; `width` columns, 0: as wide as it gets. status_report.cc.
std::string StatusText(const StatusFacts& facts, std::size_t width);
nlohmann::ordered_json StatusJson(const StatusFacts& facts);

}  // namespace millrace::engine
