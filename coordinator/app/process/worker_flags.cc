#include "coordinator/app/process/worker_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_limit.h"
#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/plugins_at_hand.h"
#include "coordinator/app/process/worker_place.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/member/cluster_control_plane.h"
#include "framework/policy/load_balance.h"
#include "framework/store/url.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

template <class Options>
void AddHttp(const Command<Options>& command) {
  HttpFlags& http = command->http;
  command.Add("--http", http.http, "answer /metrics, /healthz and /readyz here; :PORT is this machine alone",
              "ADDR");
  command.Add("--tokens", http.tokens, "who may ask: a role, a name and a token's SHA-256 a line", "FILE");
  command.Add("--tls-cert", http.tls_cert, "answer by TLS, with this certificate", "FILE");
  command.Add("--tls-key", http.tls_key, "its key, which only its owner can read", "FILE");
}

Command<WorkerFlags> AddWorkerFlags(CLI::App& root, Chosen& chosen, const char* name, const char* what,
                                    const char* examples, Result<ExitCode> (*run)(const WorkerFlags&)) {
  const auto command = AddCommand(root, chosen, name, what, examples, run, {.works = true});
  AddFolders(*command.app, command->common);
  AddHttp(command);
  command
      .Add("--concurrency", command->concurrency, "threads of every handler, instead of the configuration's",
           "N")
      ->check(CLI::Range(1, 256));
  command.app->add_flag("--until-idle", command->until_idle,
                        "end once nothing runs and nothing is due that may run now");
  return command;
}

// `gone`: what follows when the session is over; `away`: what is waited for.
template <class Options>
void AddTimes(const Command<Options>& command, const char* gone, const char* away) {
  command.Add("--session-timeout", command->session_timeout, gone, "TIME")->capture_default_str();
  command.Add("--wait", command->wait, away, "TIME")->capture_default_str();
}

// The node of a process that was killed stands until its session ends; in a container that is started again
// the next process has its number.
bool IsLeftBehind(const WorkerDocument& worker) {
  if (worker.host != HostName() || worker.pid <= 0) return false;
  return worker.pid == getpid() || (kill(static_cast<pid_t>(worker.pid), 0) != 0 && errno == ESRCH);
}

}  // namespace

void AddWorkerCommands(CLI::App& root, Chosen& chosen) {
  const auto run = AddWorkerFlags(root, chosen, "run", "Run tasks on an SQLite file, in this one process",
                                  "  millrace run --store sqlite:points.db --until-idle", RunRun);
  // They are refused with what to do instead, and so not offered.
  for (const char* flag : {"--zk", "--zk-auth-file", "--cluster"}) run.app->get_option(flag)->group("");

  const auto worker =
      AddWorkerFlags(root, chosen, "worker", "Run tasks on a server's store, beside other workers",
                     "  MILLRACE_PASSWORD_FILE=~/.millrace-password \\\n"
                     "    millrace worker --store mysql://millrace@db1:3306/work --load-balance 0-31,40\n"
                     "  millrace worker --zk zk1:2181,zk2:2181,zk3:2181/jobs --id w1",
                     RunWorker);
  worker.Add("--id", worker->id, "name of this worker (default: the host and the lowest free number)", "ID");
  worker.Add("--load-balance", worker->load_balance, "own these load-balance numbers alone, such as 0-31,40",
             "LIST");
  AddTimes(worker, "after which a cluster calls this worker gone",
           "how long to wait for a server that is away at the start");
  worker.Add("--weight", worker->weight, "in a cluster: its part beside workers of weight 1", "N")
      ->check(CLI::Range(1, 1000));
  AddList(*worker.app, "--handlers", worker->handlers, "run these task types alone");
  AddList(*worker.app, "--shards", worker->shards, "in a cluster: these shards alone");
  AddList(*worker.app, "--tables", worker->tables, "in a cluster: these tables alone; table or shard/table");
  worker.app->add_flag("--no-coordinate", worker->no_coordinate, "in a cluster: never lead it");
  worker.app->add_flag("--doorbell", worker->doorbell,
                       "hear of new tasks at once by following the server's binary log");
  worker.Add("--doorbell-address", worker->doorbell_address,
             "in a cluster: hear of new tasks from other hosts' producers here (default: this host's)",
             "IP[:PORT]");

  const auto coordinator = AddCommand(
      root, chosen, "coordinator", "Stand for the leader of a cluster, and run no tasks",
      "  millrace coordinator --zk zk1:2181,zk2:2181,zk3:2181/jobs", RunCoordinator, {.works = true});
  coordinator.Add("--id", coordinator->id, "name of this candidate (default: the host and the process)",
                  "ID");
  AddHttp(coordinator);
  AddTimes(coordinator, "after which another candidate takes over",
           "how long to wait for ZooKeeper at the start");
}

Status CheckTypes(const std::vector<std::string>& wanted, const Config& config, const PluginSet& plugins) {
  if (wanted.empty()) return {};
  const std::vector<std::string> types = TypesRun(config, plugins, {});
  for (const std::string& type : wanted) {
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    return Fail(ErrorCode::Invalid,
                "--handlers: no plugin here runs the task type '" + type + "'" +
                    NearestOf(type, types, "; there are ") +
                    "; name their folder with --plugins, or configure the type with the handler it uses" +
                    RefusedText(plugins));
  }
  return {};
}

Status CheckUses(const Settings& settings, const PluginSet& plugins) {
  std::vector<std::string> names;
  for (const HandlerInfo& info : plugins.Handlers()) names.push_back(info.name);
  std::vector<std::string> lines;
  for (const auto& [type, handler] : settings.config.handlers) {
    const std::string name = handler.ServedBy(type);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    lines.push_back(PlaceInFile(settings, {"handlers", type, "uses"}) + ": handlers." + type +
                    (handler.uses.empty() ? "" : ".uses") + ": no plugin here has a handler '" + name + "'" +
                    NearestOf(name, names, "; there are ") + RefusedText(plugins));
  }
  return lines.empty() ? Status() : Fail(ErrorCode::Invalid, Joined(lines, "\n"));
}

Status CheckForRun(const CommonFlags& flags, const Settings& settings) {
  if (!flags.zk.empty()) {
    return Fail(ErrorCode::Invalid,
                "--zk: millrace run is one process without a cluster; leave it out, or start millrace worker "
                "with a server's store");
  }
  if (settings.shards.empty()) {
    return Fail(
        ErrorCode::Invalid,
        "no store is named, and MILLRACE_ZK names a cluster, whose tasks millrace run does not touch: start "
        "millrace worker, or name a file with --store sqlite:PATH");
  }
  for (const auto& [name, shard] : settings.shards) {
    BOOST_OUTCOME_TRY(url, ParseStoreUrl(shard.url));
    if (url.kind == StoreUrl::Kind::Sqlite) continue;
    return Fail(ErrorCode::Invalid, settings.store_from + ": millrace run works on a SQLite file, and " +
                                        shard.url + " is on a server; run millrace worker --store '" +
                                        shard.url + "' instead, or name a file with --store sqlite:PATH");
  }
  return {};
}

Status CheckForCluster(const Settings& settings) {
  for (const auto& [name, shard] : settings.shards) {
    const Status server = CheckServer(shard);
    if (server) continue;
    return Fail(ErrorCode::Invalid, settings.store_from + ": " + shard.url + ": " + server.error().message +
                                        "; leave ZooKeeper out (--zk, MILLRACE_ZK), or name a server's store "
                                        "with --store mysql://user@host:port/database");
  }
  return {};
}

Status CheckIdIsFree(const WorkerFlags& flags, const Settings& settings) {
  if (!flags.until_idle || flags.id.empty()) return {};
  auto client = ClusterClient::Open(*settings.cluster);
  if (!client) return {};
  const auto node = (*client)->Get("/workers/" + flags.id);
  if (!node || !*node) return {};
  const auto worker = ReadWorker((*node)->data);
  if (worker && IsLeftBehind(*worker)) return {};
  return Fail(ErrorCode::Conflict,
              "the worker id " + flags.id + " is in use in the cluster " + settings.cluster->name +
                  (worker ? ", by process " + std::to_string(worker->pid) + " on " + worker->host : "") +
                  ": give another with --id, or stop that process");
}

void TellNumbersBeyond(const std::vector<std::uint32_t>& numbers, const Shards& shards) {
  std::uint32_t most = 0;
  for (const auto& [name, shard] : shards) {
    if (shard.tables.empty()) return;
    for (const TableInfo& info : shard.tables) most = std::max(most, info.slices);
  }
  const auto first = std::lower_bound(numbers.begin(), numbers.end(), most);
  if (most == 0 || first == numbers.end()) return;
  PrintNote("note: --load-balance: no table has the numbers " + FormatLoadBalance({first, numbers.end()}) +
            "; the tables have 0 to " + std::to_string(most - 1));
}

// What is not there may come: it is told, and waited for, but not by who ends with its work.
Status CheckPlaces(const WorkerFlags& flags, const Shards& shards) {
  TablesOfShards tables;
  for (const auto& [name, shard] : shards) tables[name] = shard.tables;
  std::vector<std::string> missing;
  for (const std::string& text : ShardsThatAreNotThere(flags.shards, tables))
    missing.push_back("--shards: " + text);
  for (const std::string& text : TablesThatAreNotThere(flags.tables, tables))
    missing.push_back("--tables: " + text);
  if (flags.until_idle && !missing.empty()) return Fail(ErrorCode::Invalid, missing.front());
  for (const std::string& text : missing)
    PrintNote("note: " + text + "; this worker gets slices of it once there is");
  return {};
}

Status CheckLimits(const WorkerFlags& flags, const Settings& settings, const PluginSet& plugins) {
  BOOST_OUTCOME_TRY(numbers, ReadLoadBalance(flags.load_balance));
  const bool places = !flags.shards.empty() || !flags.tables.empty();
  if (flags.handlers.empty() && numbers.empty() && !places) return {};
  auto client = ClusterClient::Open(*settings.cluster);
  if (!client) return {};
  ClusterConnection cluster{settings, std::move(*client)};
  auto shards = OpenShards(cluster);  // reads the configuration, whatever it says of shards
  if (!shards && shards.error().code == ErrorCode::Unavailable) return {};
  BOOST_OUTCOME_TRYV(CheckTypes(flags.handlers, cluster.settings.config, plugins));
  if (!shards || (numbers.empty() && !places)) return {};
  for (auto& [name, shard] : *shards) {
    if (!Prepare(shard, Missing::Refuse)) return {};
  }
  TellNumbersBeyond(numbers, *shards);
  return CheckPlaces(flags, *shards);
}

}  // namespace millrace::engine
