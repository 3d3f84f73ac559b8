#include "coordinator/app/cluster/cluster_limit.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/command/command.h"

namespace millrace::engine {
namespace {

struct ClusterLimitOptions {
  CommonFlags common;
  std::string id;
  std::vector<std::string> handlers;
  std::string load_balance;
  std::vector<std::string> shards;
  std::vector<std::string> tables;
  std::vector<std::string> max_rows;
  bool none = false;   // take the limits back
  bool force = false;  // also to what the cluster does not know
};

constexpr std::size_t kMostNamed = 8;

Failure Means(const std::string& what, const std::string& nearest) {
  return Fail(ErrorCode::Invalid, "nothing was limited: " + what + nearest +
                                      "; to limit it all the same, for what is yet to come, add --force");
}

Status CheckLimitedTypes(const Limit<std::string>& types, const LimitTargets& known) {
  if (!types || !known.types) return {};
  const std::vector<std::string> there(known.types->begin(), known.types->end());
  for (const std::string& type : *types) {
    if (known.types->contains(type)) continue;
    return Means("nobody runs the task type '" + type + "', and none is configured",
                 NearestOf(type, there, "; there are ", kMostNamed));
  }
  return {};
}

Status CheckLimitedPlaces(const WorkerLimits& limits, const LimitTargets& known) {
  if (!known.all_read) return {};
  std::vector<std::string> missing;
  if (limits.shards) missing = ShardsThatAreNotThere(*limits.shards, known.tables);
  if (missing.empty() && limits.tables) missing = TablesThatAreNotThere(*limits.tables, known.tables);
  return missing.empty() ? Status() : Means(missing.front(), "");
}

// `there is no shard 'mian' (did you mean 'main'?)`, of each that is wanted and not there.
std::vector<std::string> NotThere(const std::string& what, const std::vector<std::string>& wanted,
                                  const std::vector<std::string>& there) {
  std::vector<std::string> texts;
  for (const std::string& name : wanted) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    texts.push_back("there is no " + what + " '" + name + "'" +
                    NearestOf(name, there, "; there are ", kMostNamed));
  }
  return texts;
}

// Of the tables that the other limits leave.
Status CheckLimitedNumbers(const WorkerLimits& limits, const LimitTargets& known) {
  if (!limits.load_balance || !known.all_read) return {};
  std::uint32_t most = 0;
  std::set<std::uint32_t> beyond;
  for (const auto& [shard, infos] : known.tables) {
    for (const TableInfo& info : infos) {
      if (ObstacleOfTable(limits, shard, info.table) != Obstacle::None) continue;
      most = std::max(most, info.slices);
      beyond.insert(info.beyond.begin(), info.beyond.end());
    }
  }
  for (const std::uint32_t number : *limits.load_balance) {
    if (most == 0 || number < most || beyond.contains(number)) continue;
    return Means("no table has the load-balance number " + std::to_string(number),
                 "; they are 0 to " + std::to_string(most - 1));
  }
  return {};
}

Status CheckMaxRows(const std::map<std::string, std::uint32_t>& max_rows, const LimitTargets& known) {
  if (!known.in_rounds) return {};
  const std::vector<std::string> there(known.in_rounds->begin(), known.in_rounds->end());
  for (const auto& [type, rows] : max_rows) {
    if (known.in_rounds->contains(type)) continue;
    return Means("the task type '" + type + "' is not scanned in rounds (handlers." + type + ".scan)",
                 NearestOf(type, there, "; there are ", kMostNamed));
  }
  return {};
}

// What the workers say that they run, and what is configured. A worker that is limited now does not say what
// else it could run.
std::optional<std::set<std::string>> KnownTypes(const Result<ConfigLayers>& layers,
                                                const ClusterSnapshot& snapshot) {
  const bool limited = std::any_of(snapshot.limits.begin(), snapshot.limits.end(), [&](const auto& limits) {
    return limits.second.handlers && snapshot.workers.contains(limits.first);
  });
  if (!layers || limited) return std::nullopt;
  auto types = TypesOf(snapshot.workers);
  if (!types) return std::nullopt;
  for (const auto& [type, handler] : layers->Effective()->handlers) types->insert(type);
  return types;
}

// A host that can't see the databases can limit a worker all the same: what is not known is not checked.
LimitTargets TargetsOf(ClusterConnection& cluster, const ClusterSnapshot& snapshot) {
  LimitTargets known;
  const auto layers = ReadLayers(*cluster.client, cluster.settings);
  known.types = KnownTypes(layers, snapshot);
  if (layers) known.in_rounds.emplace();
  for (const auto& [type, scan] : layers ? layers->Effective()->Scans() : ScanRules())
    known.in_rounds->insert(type);
  const auto catalog = ReadCatalog(cluster);
  known.all_read = catalog && catalog->unread.empty();
  if (!catalog) {
    PrintNote("note: shards, tables and numbers are not checked: " + catalog.error().message);
    return known;
  }
  for (const PlannedTable& table : catalog->tables) known.tables[table.shard].push_back(table.info);
  return known;
}

Result<ExitCode> RunClusterLimit(const ClusterLimitOptions& options) {
  LimitsDocument limits{
      {LimitTo(options.handlers), std::nullopt, LimitTo(options.shards), LimitTo(options.tables)}};
  BOOST_OUTCOME_TRY(numbers, ReadLoadBalance(options.load_balance));
  BOOST_OUTCOME_TRY(max_rows, ReadMaxRows(options.max_rows));
  limits.max_rows = std::move(max_rows);
  if (!numbers.empty()) limits.load_balance = std::move(numbers);
  const bool any = limits.Any();
  if (any == options.none) return Fail(ErrorCode::Invalid, "give limits, or --none to take them back");
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  BOOST_OUTCOME_TRYV(CheckWorkers(snapshot, {options.id}));
  if (any && !options.force) {
    BOOST_OUTCOME_TRYV(CheckLimits(limits, TargetsOf(cluster, snapshot)));
  }
  const std::string path = "/control/limits/" + options.id;
  if (options.none) {
    BOOST_OUTCOME_TRYV(cluster.client->Remove(path));
  } else if (Status put = cluster.client->Put(path, ToText(limits)); !put) {
    return Fail(put.error());
  }
  PrintAnswer(options.common, {{"worker", options.id}, {"limited", any}},
              any ? "limited; its slices go where they may be run" : "its limits are gone");
  return ExitCode::Done;
}

}  // namespace

Result<std::map<std::string, std::uint32_t>> ReadMaxRows(const std::vector<std::string>& texts) {
  std::map<std::string, std::uint32_t> max_rows;
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    const std::string type = text.substr(0, sign);
    std::uint32_t rows = 0;
    const char* const end = text.data() + text.size();
    const char* const number = sign == text.npos ? end : text.data() + sign + 1;
    const auto [read, error] = std::from_chars(number, end, rows);
    if (!IsHandlerName(type) || error != std::errc() || read != end || rows < 1 || rows > kMostScanRows) {
      return Fail(ErrorCode::Invalid,
                  "'" + Shorten(text, 200) +
                      "' is no limit of rows; write the task type and a number from 1 to " +
                      std::to_string(kMostScanRows) + ": --max-rows report=500");
    }
    max_rows[type] = rows;
  }
  return max_rows;
}

std::vector<std::string> ShardsThatAreNotThere(const std::vector<std::string>& wanted,
                                               const TablesOfShards& tables) {
  std::vector<std::string> there;
  for (const auto& [shard, infos] : tables) there.push_back(shard);
  return NotThere("shard", wanted, there);
}

std::vector<std::string> TablesThatAreNotThere(const std::vector<std::string>& wanted,
                                               const TablesOfShards& tables) {
  std::vector<std::string> there;
  for (const auto& [shard, infos] : tables) {
    for (const TableInfo& info : infos) {
      there.push_back(shard + "/" + info.table);
      there.emplace_back(info.table);
    }
  }
  return NotThere("task table", wanted, there);
}

Status CheckLimits(const LimitsDocument& limits, const LimitTargets& known) {
  BOOST_OUTCOME_TRYV(CheckMaxRows(limits.max_rows, known));
  BOOST_OUTCOME_TRYV(CheckLimitedTypes(limits.handlers, known));
  BOOST_OUTCOME_TRYV(CheckLimitedPlaces(limits, known));
  return CheckLimitedNumbers(limits, known);
}

void AddClusterLimits(CLI::App& cluster, Chosen& chosen) {
  const auto limit =
      AddCommand(cluster, chosen, "limit", "Limit a worker while it runs; what its flags allow goes before",
                 "  millrace cluster limit w1 --handlers send_mail,http_call\n"
                 "  millrace cluster limit w1 --none",
                 RunClusterLimit);
  limit.Add("worker", limit->id, "the worker's id", "ID")->required();
  AddList(*limit.app, "--handlers", limit->handlers, "to these task types");
  limit.Add("--load-balance", limit->load_balance, "to these load-balance numbers", "LIST");
  AddList(*limit.app, "--shards", limit->shards, "to these shards");
  AddList(*limit.app, "--tables", limit->tables, "to these tables; table or shard/table");
  AddList(*limit.app, "--max-rows", limit->max_rows,
          "rows of a task type in each round of its scan here, TYPE=N");
  limit.app->add_flag("--none", limit->none, "take its limits back");
  limit.app->add_flag("--force", limit->force, "also to what is not there yet");
}

}  // namespace millrace::engine
