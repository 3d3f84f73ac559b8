#include "coordinator/app/cluster/cluster_limit.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_snapshot.h"
#include "coordinator/app/command/command.h"
#include "framework/policy/load_balance.h"

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
constexpr int kLimitTries = 5;

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

std::string LimitsNode(const std::string& id) { return "/control/limits/" + id; }

// What the options name.
Result<LimitsDocument> NamedLimits(const ClusterLimitOptions& options) {
  LimitsDocument limits{
      {LimitTo(options.handlers), std::nullopt, LimitTo(options.shards), LimitTo(options.tables)}};
  BOOST_OUTCOME_TRY(numbers, ReadLoadBalance(options.load_balance));
  BOOST_OUTCOME_TRY(max_rows, ReadMaxRows(options.max_rows));
  limits.max_rows = std::move(max_rows);
  if (!numbers.empty()) limits.load_balance = std::move(numbers);
  if (limits.Any() == options.none)
    return Fail(ErrorCode::Invalid, "give limits, or --none to take them back");
  return limits;
}

// As they stand; of no node none.
Result<LimitsDocument> StandingLimits(const std::string& id, const std::optional<TreeNode>& node) {
  if (!node) return LimitsDocument{};
  auto limits = ReadLimits(node->data);
  if (limits) return limits;
  return Fail(ErrorCode::Invalid, "nothing was limited: the limits that stand for " + id +
                                      " can't be read (" + limits.error().message +
                                      "); millrace cluster limit " + id + " --none takes them back");
}

// One write on top of what was read. NotFound and Conflict: it is not so any more.
Status WriteLimits(ClusterClient& client, const std::string& path, const std::optional<TreeNode>& node,
                   const std::string& text) {
  if (node) return client.Write({{TreeWrite::Kind::Set, path, text, node->version}});
  Status made = client.Write({{TreeWrite::Kind::Create, path, text}});
  if (made || made.error().code != ErrorCode::NotFound) return made;
  return client.Put(path, text);  // its folder has vanished: nobody else's can stand in it
}

// Two operators who name different kinds at one moment lose neither. `known`: what they are checked by;
// nullopt: nothing. What comes of it.
Result<LimitsDocument> PutLimits(ClusterClient& client, const std::string& id, const LimitsDocument& named,
                                 const std::optional<LimitTargets>& known) {
  for (int tries = 0; tries < kLimitTries; ++tries) {
    BOOST_OUTCOME_TRY(node, client.Get(LimitsNode(id)));
    BOOST_OUTCOME_TRY(standing, StandingLimits(id, node));
    LimitsDocument limits = WithNamed(std::move(standing), named);
    if (known) {
      BOOST_OUTCOME_TRYV(CheckLimits(limits, *known));
    }
    const Status put = WriteLimits(client, LimitsNode(id), node, ToText(limits));
    if (put) return limits;
    if (put.error().code != ErrorCode::Conflict && put.error().code != ErrorCode::NotFound)
      return Fail(put.error());
  }
  return Fail(ErrorCode::Conflict,
              "nothing was limited: others change the limits of " + id + " at this moment; try again");
}

// Of a worker that is gone, too: they wait for its next life.
Result<ExitCode> EndLimits(const ClusterLimitOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(removed, cluster.client->Remove(LimitsNode(options.id)));
  if (!removed) PrintNote("worker " + options.id + " was not limited");
  PrintAnswer(options.common, {{"worker", options.id}, {"limited", false}},
              removed ? "its limits are gone" : "nothing was changed");
  return ExitCode::Done;
}

Result<ExitCode> RunClusterLimit(const ClusterLimitOptions& options) {
  BOOST_OUTCOME_TRY(named, NamedLimits(options));
  if (options.none) return EndLimits(options);
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  BOOST_OUTCOME_TRYV(CheckWorkers(snapshot, {options.id}));
  std::optional<LimitTargets> known;
  if (!options.force) known = TargetsOf(cluster, snapshot);
  BOOST_OUTCOME_TRY(limits, PutLimits(*cluster.client, options.id, named, known));
  PrintAnswer(options.common,
              {{"worker", options.id},
               {"limited", true},
               {"limits", nlohmann::ordered_json::parse(ToText(limits), nullptr, false)}},
              "limited to " + LimitsText(limits) + "; its slices go where they may be run");
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

LimitsDocument WithNamed(LimitsDocument standing, const LimitsDocument& named) {
  if (named.handlers) standing.handlers = named.handlers;
  if (named.load_balance) standing.load_balance = named.load_balance;
  if (named.shards) standing.shards = named.shards;
  if (named.tables) standing.tables = named.tables;
  if (!named.max_rows.empty()) standing.max_rows = named.max_rows;
  return standing;
}

std::string LimitsText(const WorkerLimits& limits) {
  std::string text;
  const auto add = [&](const std::string& limit) { text += (text.empty() ? "" : "; ") + limit; };
  if (limits.load_balance) add("load-balance numbers " + FormatLoadBalance(*limits.load_balance));
  if (limits.handlers) add("task types " + Joined(*limits.handlers));
  if (limits.shards) add("shards " + Joined(*limits.shards));
  if (limits.tables) add("tables " + Joined(*limits.tables));
  return text;
}

std::string LimitsText(const LimitsDocument& limits) {
  std::string text = LimitsText(static_cast<const WorkerLimits&>(limits));
  for (const auto& [type, rows] : limits.max_rows)
    text += (text.empty() ? "" : "; ") + Count(rows, "row", "rows") + " of " + type + " in a round";
  return text;
}

void AddClusterLimits(CLI::App& cluster, Chosen& chosen) {
  const auto limit =
      AddCommand(cluster, chosen, "limit", "Limit a worker while it runs; what its flags allow goes before",
                 "  millrace cluster limit w1 --handlers send_mail,http_call\n"
                 "  millrace cluster limit w1 --max-rows report=500\n"
                 "  millrace cluster limit w1 --none",
                 RunClusterLimit);
  limit.Add("worker", limit->id, "the worker's id", "ID")->required();
  AddList(*limit.app, "--handlers", limit->handlers, "to these task types");
  limit.Add("--load-balance", limit->load_balance, "to these load-balance numbers", "LIST");
  AddList(*limit.app, "--shards", limit->shards, "to these shards");
  AddList(*limit.app, "--tables", limit->tables, "to these tables; table or shard/table");
  AddList(*limit.app, "--max-rows", limit->max_rows,
          "rows of a task type in each round of its scan here, TYPE=N");
  limit.app->add_flag("--none", limit->none, "take its limits back, all of them");
  limit.app->add_flag("--force", limit->force, "also to what is not there yet");
}

}  // namespace millrace::engine
