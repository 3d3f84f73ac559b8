#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_health.h"
#include "coordinator/app/cluster_view.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/progress_line.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

Status LookInto(Shard& shard, ShardState& state) {
  BOOST_OUTCOME_TRYV(Prepare(shard, Missing::Refuse));
  state.tables = shard.tables;
  auto desk = shard.store->OpenDesk();
  const WallTime now = SystemClock().WallNow();
  for (const TableInfo& table : shard.tables) {
    BOOST_OUTCOME_TRY(backlog, desk->Backlog(table.table));
    for (const GroupBacklog& group : backlog) {
      state.waiting += group.waiting;
      state.more = state.more || group.more;
      if (!group.oldest_due || *group.oldest_due > now) continue;
      state.oldest_due = std::max(state.oldest_due.value_or(Micros(0)), now - *group.oldest_due);
    }
  }
  BOOST_OUTCOME_TRY(pauses, desk->Pauses());
  for (const PauseRecord& pause : pauses) state.pauses.push_back(pause.what);
  state.reachable = true;
  return {};
}

ShardStates ReadShards(ClusterConnection& cluster, std::string& trouble) {
  ShardStates states;
  auto shards = OpenShards(cluster);
  if (!shards) {
    trouble = shards.error().message;
    return states;
  }
  for (auto& [name, shard] : *shards) {
    ShardState& state = states[name];
    if (Status looked = LookInto(shard, state); !looked) state.error = looked.error().message;
  }
  return states;
}

ordered_json ToJson(const ShardState& state) {
  ordered_json json{{"reachable", state.reachable}, {"waiting", state.waiting}, {"more", state.more}};
  json["oldest_due_seconds"] = state.oldest_due
                                   ? ordered_json(static_cast<double>(state.oldest_due->count()) / 1e6)
                                   : ordered_json(nullptr);
  json["pauses"] = state.pauses;
  if (!state.error.empty()) json["error"] = state.error;
  return json;
}

ordered_json ToJson(const ClusterTree& tree, const std::string& id) {
  ordered_json worker{{"state", StateOf(tree, id)}};
  if (const auto present = tree.workers.find(id); present != tree.workers.end()) {
    worker["host"] = present->second.host;
    worker["pid"] = present->second.pid;
    worker["weight"] = present->second.weight;
    worker["version"] = present->second.version;
  }
  const auto assigned = tree.assigned.find(id);
  worker["slices"] = assigned == tree.assigned.end() ? 0 : assigned->second.slices.size();
  worker["generation"] = assigned == tree.assigned.end() ? 0 : assigned->second.generation;
  const auto status = tree.statuses.find(id);
  worker["status"] = status == tree.statuses.end() ? ordered_json::object() : status->second;
  return worker;
}

// Who is there, is drained, or has slices.
std::set<std::string> WorkersOf(const ClusterTree& tree) {
  std::set<std::string> ids = tree.draining;
  for (const auto& [id, document] : tree.workers) ids.insert(id);
  for (const auto& [id, document] : tree.assigned) {
    if (!document.slices.empty()) ids.insert(id);
  }
  return ids;
}

ordered_json ToJson(const ClusterTree& tree, const ShardStates& shards) {
  ordered_json out{{"epoch", tree.epoch.epoch}, {"leader", tree.epoch.leader}};
  out["leading"] = IsLed(tree);
  out["candidates"] = tree.candidates.size();
  out["workers"] = ordered_json::object();
  for (const std::string& id : WorkersOf(tree)) out["workers"][id] = ToJson(tree, id);
  out["shards"] = ordered_json::object();
  for (const auto& [name, state] : shards) out["shards"][name] = ToJson(state);
  out["plan"] = tree.plan_json;
  out["pauses"] = tree.pauses;
  out["unreadable"] = tree.unreadable;
  out["missing"] = tree.missing;
  out["made_again"] = ordered_json::array();
  for (const MadeAgain& made : tree.made_again)
    out["made_again"].push_back({{"nodes", made.nodes}, {"at", made.at}, {"by", made.by}});
  const std::string still = Standstill(tree);
  out["stands_still"] = still.empty() ? ordered_json(nullptr) : ordered_json(still);
  return out;
}

std::string Number(const ordered_json& status, const char* key) {
  const auto found = status.find(key);
  if (found == status.end() || !found->is_number()) return "";
  return WithCommas(static_cast<std::uint64_t>(std::clamp(found->get<double>(), 0.0, 1e15) + 0.5));
}

void PrintWorkers(const ordered_json& out) {
  TextTable table{{{"worker"},
                   {"state"},
                   {"host"},
                   {"weight", true},
                   {"slices", true},
                   {"claims/s", true},
                   {"settles/s", true},
                   {"running", true},
                   {"lag ms", true}},
                  {}};
  for (const auto& [id, worker] : out["workers"].items()) {
    const ordered_json& status = worker["status"];
    table.rows.push_back({id, worker["state"], worker.value("host", ""), Number(worker, "weight"),
                          Number(worker, "slices"), Number(status, status_key::kClaimRate),
                          Number(status, status_key::kSettleRate), Number(status, status_key::kRunning),
                          Number(status, status_key::kLag)});
  }
  PrintLine(table.Text(0));
}

void PrintShards(const ShardStates& shards) {
  TextTable table{{{"shard"}, {"state"}, {"waiting", true}, {"oldest due"}}, {}};
  for (const auto& [name, state] : shards) {
    table.rows.push_back({name, state.reachable ? "reachable" : "away",
                          WithCommas(state.waiting) + (state.more ? " or more" : ""),
                          state.oldest_due ? ElapsedText(*state.oldest_due) + " ago" : "nothing is due"});
  }
  PrintLine(table.Text(0));
}

void Print(const ordered_json& out, const ClusterTree& tree, const ShardStates& shards) {
  std::string leader = "leader " + (IsLed(tree) ? tree.epoch.leader : "none") + ", term " +
                       std::to_string(tree.epoch.epoch) + ", " +
                       Count(tree.candidates.size(), "candidate", "candidates");
  if (tree.plan.moves_waiting > 0) {
    leader += "; " + Count(tree.plan.moves_waiting, "move waits", "moves wait") +
              " until the cluster has been quiet for 5 s";
  }
  PrintLine(leader);
  if (!out["workers"].empty()) {
    PrintLine("");
    PrintWorkers(out);
  }
  if (!shards.empty()) {
    PrintLine("");
    PrintShards(shards);
  }
  const auto troubles = Troubles(tree, shards, SystemClock().WallNow());
  if (!troubles.empty()) PrintLine("");
  for (const std::string& line : troubles) PrintLine("! " + Escape(line));
}

}  // namespace

Result<ExitCode> RunClusterStatus(const CommonFlags& common) {
  BOOST_OUTCOME_TRY(cluster, Connect(common));
  BOOST_OUTCOME_TRY(tree, ReadTree(*cluster.client));
  std::string trouble;
  const auto shards = ReadShards(cluster, trouble);
  const ordered_json out = ToJson(tree, shards);
  if (common.json) {
    PrintLine(JsonText(out));
  } else {
    Print(out, tree, shards);
    if (!trouble.empty()) PrintNote("the shards are not shown: " + trouble);
  }
  return Standstill(tree).empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace millrace::engine
