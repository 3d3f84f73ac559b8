// Every command: what its flags say, and the function that carries it out. An error is printed by main, and
// its code decides the exit status; ExitCode::SomethingFailed without an error was reported by the command
// itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/exit_code.h"
#include "coordinator/app/settings.h"
#include "framework/base/result.h"
#include "framework/task/task_action.h"

namespace millrace::engine {

struct SubmitOptions {
  CommonFlags common;
  std::string shard;
  std::string table;
  std::string handler;
  std::string params = "{}";
  std::string key;
  std::string at;
  std::string in;
  std::string batch;
  std::optional<std::uint32_t> priority;
  std::uint64_t count = 1;
  bool held = false;
  std::string from;
  std::string from_query;
  std::string key_column;
  bool all_or_nothing = false;
  bool force = false;
};
Result<ExitCode> RunSubmit(const SubmitOptions& options);

struct MillFlags {
  CommonFlags common;
  std::string id;
  std::optional<std::uint32_t> concurrency;
  bool until_idle = false;
  std::string load_balance;
  std::string wait = "5m";  // how long a server that is away at the start is waited for
  // In a cluster:
  std::string session_timeout = "10s";
  std::uint32_t weight = 1;
  std::vector<std::string> handlers;  // only these; empty: all that the plugins have
  std::vector<std::string> shards;
  std::vector<std::string> tables;
  bool no_coordinate = false;
};
struct CoordinatorOptions {
  CommonFlags common;
  std::string id;
  std::string session_timeout = "10s";
  std::string wait = "5m";
};
Result<ExitCode> RunRun(const MillFlags& flags);
Result<ExitCode> RunWorker(const MillFlags& flags);

// The flags by which tasks are chosen.
struct TaskChoice {
  CommonFlags common;
  std::string shard;
  std::string table;
  std::vector<std::string> names;
  std::string key;
  std::string state;
  std::string handler;
  std::string batch;
  std::string error_class;
  std::optional<std::uint32_t> slice;
};
struct TaskListOptions {
  TaskChoice choice;
  std::size_t limit = 50;
  std::string after;
};
struct TaskActionOptions {
  TaskChoice choice;
  TaskAction action = TaskAction::Retry;
  bool all_matching = false;
  bool yes = false;
};
Result<ExitCode> RunTaskList(const TaskListOptions& options);
Result<ExitCode> RunTaskShow(const TaskChoice& choice);
Result<ExitCode> RunTaskWhy(const TaskChoice& choice);
Result<ExitCode> RunTaskAction(const TaskActionOptions& options);

struct SchemaOptions {
  CommonFlags common;
  std::string shard;
  std::uint32_t tables = 1;
  std::uint32_t slices = 0;  // 0: as they are, 64 for new ones
  std::string table;         // resize: this one alone
};
Result<ExitCode> RunSchemaResize(const SchemaOptions& options);
Result<ExitCode> RunSchemaPrint(const SchemaOptions& options);
Result<ExitCode> RunSchemaApply(const SchemaOptions& options);
Result<ExitCode> RunSchemaUpgrade(const SchemaOptions& options);
Result<ExitCode> RunSchemaCheck(const SchemaOptions& options);

Result<ExitCode> RunClusterStatus(const CommonFlags& common);

struct ClusterSlicesOptions {
  CommonFlags common;
  std::string why;  // a slice
};
Result<ExitCode> RunClusterSlices(const ClusterSlicesOptions& options);

struct ClusterPlanOptions {
  CommonFlags common;
  std::string simulate;  // a file, or - for standard input
  bool dry_run = false;
  std::vector<std::string> without;  // as if these were drained
};
Result<ExitCode> RunClusterPlan(const ClusterPlanOptions& options);  // one of the two below
Result<ExitCode> RunClusterSimulation(const ClusterPlanOptions& options);
Result<ExitCode> RunClusterDryRun(const ClusterPlanOptions& options);

struct ClusterControlOptions {
  CommonFlags common;
  std::vector<std::string> targets;
  std::string duration = "60s";
  bool force = false;  // pause: also what the cluster does not know
};
Result<ExitCode> RunClusterDrain(const ClusterControlOptions& options);
Result<ExitCode> RunClusterUndrain(const ClusterControlOptions& options);
Result<ExitCode> RunClusterExpect(const ClusterControlOptions& options);
Result<ExitCode> RunClusterPause(const ClusterControlOptions& options);
Result<ExitCode> RunClusterResume(const ClusterControlOptions& options);
Result<ExitCode> RunClusterProceed(const ClusterControlOptions& options);
Result<ExitCode> RunClusterProtect(const ClusterControlOptions& options);

struct ClusterLimitOptions {
  CommonFlags common;
  std::string id;
  std::vector<std::string> handlers;
  std::string load_balance;
  std::vector<std::string> shards;
  std::vector<std::string> tables;
  bool none = false;  // take the limits back
};
Result<ExitCode> RunClusterLimit(const ClusterLimitOptions& options);

struct ConfigOptions {
  CommonFlags common;
  std::string part;   // `handlers`, or a key in it: `handlers.noop.concurrency`
  std::string value;  // JSON, @FILE, -
  bool effective = false;
  std::optional<std::int32_t> version;
  std::optional<std::int32_t> if_version;  // of set: as the part was when it was looked at
};
Result<ExitCode> RunConfigGet(const ConfigOptions& options);
Result<ExitCode> RunConfigSet(const ConfigOptions& options);
Result<ExitCode> RunConfigEdit(const ConfigOptions& options);
Result<ExitCode> RunConfigValidate(const ConfigOptions& options);
Result<ExitCode> RunConfigHistory(const ConfigOptions& options);
Result<ExitCode> RunConfigRollback(const ConfigOptions& options);

Result<ExitCode> RunCoordinator(const CoordinatorOptions& options);

struct HandlerRunOptions {
  CommonFlags common;
  std::string shard;
  std::string handler;
  std::string params = "{}";
  std::string key;
  bool commit = false;
};
Result<ExitCode> RunHandlerList(const CommonFlags& common);
Result<ExitCode> RunHandlerRun(const HandlerRunOptions& options);

}  // namespace millrace::engine
