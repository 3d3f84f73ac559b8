// The commands that run tasks or lead a cluster: their flags, and what is wrong with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/command/shards.h"
#include "coordinator/app/process/web_server.h"
#include "framework/plugin/plugin_set.h"

namespace millrace::engine {

struct WorkerFlags {
  CommonFlags common;
  std::string id;
  std::optional<std::uint32_t> concurrency;
  bool until_idle = false;
  std::string load_balance;
  bool doorbell = false;    // follow each server's binary log
  std::string wait = "5m";  // how long a server that is away at the start is waited for
  HttpFlags http = {};
  // In a cluster:
  std::string session_timeout = "10s";
  std::uint32_t weight = 1;
  std::vector<std::string> handlers;  // only these; empty: all that the plugins have
  std::vector<std::string> shards;
  std::vector<std::string> tables;
  bool no_coordinate = false;
  std::string doorbell_address = {};  // where producers ring; empty: the loopback, and a free port
};
Result<ExitCode> RunRun(const WorkerFlags& flags);
Result<ExitCode> RunWorker(const WorkerFlags& flags);
// The same with `settings` that name a cluster.
Result<ExitCode> RunClusterWorker(const WorkerFlags& flags, const Settings& settings);

struct CoordinatorOptions {
  CommonFlags common;
  std::string id;
  std::string session_timeout = "10s";
  std::string wait = "5m";
  HttpFlags http = {};
};
Result<ExitCode> RunCoordinator(const CoordinatorOptions& options);

// What a command can't work on is refused before it connects, waits or makes a file. Invalid for `run` with a
// server's store or a cluster, and for a process of a cluster with a SQLite file.
Status CheckForRun(const CommonFlags& flags, const Settings& settings);
Status CheckForCluster(const Settings& settings);

// A worker that is to end once nothing is due does not wait until another process gives its id up. Conflict
// where a process has it that runs, as far as can be told. A cluster that is away is no reason to refuse.
Status CheckIdIsFree(const WorkerFlags& flags, const Settings& settings);

// A slip of the pen in --handlers or --load-balance would leave a worker idle without a word. Invalid for a
// type that is not among those that this worker can run, with the nearest one and the plugins that were not
// loaded.
Status CheckTypes(const std::vector<std::string>& wanted, const Config& config, const PluginSet& plugins);

// Invalid with a line for each task type of the configuration whose handler no plugin here has: the file, the
// key, and the handlers that there are.
Status CheckUses(const Settings& settings, const PluginSet& plugins);

// Says which load-balance numbers no table of these shards has; nothing where a shard's tables are not known.
void TellNumbersBeyond(const std::vector<std::uint32_t>& numbers, const Shards& shards);

// Both for a worker of a cluster, whose configuration and tables are asked for. A cluster or shard that is
// away is no reason to refuse.
Status CheckLimits(const WorkerFlags& flags, const Settings& settings, const PluginSet& plugins);

}  // namespace millrace::engine
