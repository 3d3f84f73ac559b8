// What `millrace status` makes of what it read: what is wrong and what to do, whether anything can run, and
// how it is shown. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/schedule_report.h"
#include "framework/base/clock.h"
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
  std::vector<TaskTotals> totals;
  FailedOverview failed;
  std::vector<PauseRecord> pauses;
  std::vector<Permit> permits;  // that somebody holds
  std::string permit_home;      // the shard that it names; empty: none
};

// Of a cluster, where one is named.
struct StatusCluster {
  std::string unreached;              // why it can't be asked; then the rest is empty
  std::string leader;                 // empty: nobody
  std::string standstill;             // why work stands still; empty: it does not
  std::vector<std::string> troubles;  // what else is not as it should be, with what to do
  std::vector<std::string> pauses;
  std::set<std::string> breakers;  // task types whose breaker is open
};

struct AlertFacts {
  std::string name;
  bool fires = false;
  std::string text;  // what it says while it fires
};

struct StatusFacts {
  WallTime now;
  std::map<std::string, ShardFacts> shards;
  std::vector<WorkerFacts> workers;
  std::optional<StatusCluster> cluster;
  std::optional<Micros> window;         // between two looks at the counters; nullopt: there was one
  std::map<std::string, double> ended;  // tasks a second that ended, by task type, in the window
  std::map<std::string, std::string> limits = {};  // in words, by task type that has one
  std::optional<std::vector<AlertFacts>> alerts;   // nullopt: none are configured, or nobody judges them
  std::vector<ScheduleFacts> schedules;            // those that were read
  std::map<std::string, std::string> closed;       // by task type, as ClosedBy says it: those outside hours
  std::optional<std::set<std::string>> plugin_handlers;  // of the plugins at hand, where it was asked
};

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

struct StatusFinding {
  std::string what;
  std::string remedy;  // what to do, most often a command; may be empty
};

// What is wrong, the worst first; status_findings.cc.
std::vector<StatusFinding> FindingsOf(const StatusFacts& facts);
// False: tasks wait, and none of them can be run.
bool CanRun(const StatusFacts& facts);

// For a person; `width` columns, 0: as wide as it gets. status_report.cc.
std::string StatusText(const StatusFacts& facts, std::size_t width);
nlohmann::ordered_json StatusJson(const StatusFacts& facts);

}  // namespace millrace::engine
