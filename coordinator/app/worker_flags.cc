#include "coordinator/app/worker_flags.h"

#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster_client.h"
#include "coordinator/app/command.h"
#include "coordinator/app/worker_place.h"
#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

void AddMill(CLI::App& app, MillFlags& flags) {
  AddCommon(app, flags.common, true);
  AddFolders(app, flags.common);
  app.add_option("--concurrency", flags.concurrency,
                 "threads of every handler, instead of the configuration's")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  app.add_flag("--until-idle", flags.until_idle, "end once nothing runs and nothing is due");
}

void AddTimes(CLI::App& app, std::string& session_timeout, const char* session, std::string& wait,
              const char* waits) {
  app.add_option("--session-timeout", session_timeout, session)->type_name("TIME")->capture_default_str();
  app.add_option("--wait", wait, waits)->type_name("TIME")->capture_default_str();
}

void AddRun(CLI::App& root, Chosen& chosen) {
  CLI::App* app = AddCommand(root, "run", "Run tasks on an SQLite file, in this one process",
                             "  millrace run --store sqlite:points.db --until-idle");
  auto flags = std::make_shared<MillFlags>();
  AddMill(*app, *flags);
  Choose(app, chosen, flags, RunRun, true);
}

void AddWorker(CLI::App& root, Chosen& chosen) {
  CLI::App* app =
      AddCommand(root, "worker", "Run tasks on a server's store, beside other workers",
                 "  MILLRACE_PASSWORD_FILE=~/.millrace-password \\\n"
                 "    millrace worker --store mysql://millrace@db1:3306/work --load-balance 0-31,40\n"
                 "  millrace worker --zk zk1:2181,zk2:2181,zk3:2181/jobs --id w1");
  auto flags = std::make_shared<MillFlags>();
  AddMill(*app, *flags);
  app->add_option("--id", flags->id, "name of this worker (default: the host and the lowest free number)")
      ->type_name("ID");
  app->add_option("--load-balance", flags->load_balance,
                  "own these load-balance numbers alone, such as 0-31,40")
      ->type_name("LIST");
  AddTimes(*app, flags->session_timeout, "after which a cluster calls this worker gone", flags->wait,
           "how long to wait for a server that is away at the start");
  app->add_option("--weight", flags->weight, "its part of the slices, beside workers of weight 1")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  AddList(*app, "--handlers", flags->handlers, "run these task types alone");
  AddList(*app, "--shards", flags->shards, "work on these shards alone");
  AddList(*app, "--tables", flags->tables, "work on these tables alone; table or shard/table");
  app->add_flag("--no-coordinate", flags->no_coordinate, "never lead the cluster");
  Choose(app, chosen, flags, RunWorker, true);
}

void AddCoordinator(CLI::App& root, Chosen& chosen) {
  CLI::App* app = AddCommand(root, "coordinator", "Stand for the leader of a cluster, and run no tasks",
                             "  millrace coordinator --zk zk1:2181,zk2:2181,zk3:2181/jobs");
  auto o = std::make_shared<CoordinatorOptions>();
  AddCommon(*app, o->common, true);
  app->add_option("--id", o->id, "name of this candidate (default: the host and the process)")
      ->type_name("ID");
  AddTimes(*app, o->session_timeout, "after which another candidate takes over", o->wait,
           "how long to wait for ZooKeeper at the start");
  Choose(app, chosen, o, RunCoordinator, true);
}

}  // namespace

void AddWorkerCommands(CLI::App& root, Chosen& chosen) {
  AddRun(root, chosen);
  AddWorker(root, chosen);
  AddCoordinator(root, chosen);
}

Status CheckTypes(const std::vector<std::string>& wanted, const std::vector<std::string>& types) {
  for (const std::string& type : wanted) {
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    return Fail(ErrorCode::Invalid,
                "--handlers: no plugin here runs the task type '" + type + "'" +
                    NearestOf(type, types, "; there are ") +
                    "; name their folder with --plugins, or configure the type with the handler it uses");
  }
  return {};
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

Status CheckLimits(const MillFlags& flags, const Settings& settings, const PluginSet& plugins) {
  std::vector<std::uint32_t> numbers;
  if (!flags.load_balance.empty()) {
    auto parsed = ParseLoadBalance(flags.load_balance);
    if (!parsed) return Fail(ErrorCode::Invalid, "--load-balance: " + parsed.error().message);
    numbers = std::move(*parsed);
  }
  if (flags.handlers.empty() && numbers.empty()) return {};
  auto client = ClusterClient::Open(*settings.cluster);
  if (!client) return {};
  ClusterConnection cluster{settings, std::move(*client)};
  auto shards = OpenShards(cluster);  // reads the configuration, whatever it says of shards
  BOOST_OUTCOME_TRYV(CheckTypes(flags.handlers, TypesRun(cluster.settings.config, plugins, {})));
  if (!shards || numbers.empty()) return {};
  for (auto& [name, shard] : *shards) {
    if (!Prepare(shard, Missing::Refuse)) return {};
  }
  TellNumbersBeyond(numbers, *shards);
  return {};
}

}  // namespace millrace::engine
