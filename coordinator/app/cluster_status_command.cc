#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_view.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/progress_line.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/log.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

// What a shard holds, from its own due index; bounded, nothing is counted whole.
struct ShardState {
  bool reachable = false;
  std::string error;
  std::uint64_t waiting = 0;
  bool more = false;
  std::optional<Micros> oldest_due;  // for how long the oldest task has been due
  std::vector<std::string> pauses;
};

ordered_json StatusOf(const ClusterTree& tree, const std::string& id) {
  const auto found = tree.statuses.find(id);
  if (found == tree.statuses.end()) return ordered_json::object();
  auto json = ordered_json::parse(found->second, nullptr, false);
  return json.is_object() ? json : ordered_json::object();
}

std::string StateOf(const ClusterTree& tree, const std::string& id) {
  if (!tree.workers.contains(id)) return tree.expected.contains(id) ? "restarting" : "gone";
  if (tree.draining.contains(id)) return "draining";
  const auto assigned = tree.assigned.find(id);
  return assigned == tree.assigned.end() || assigned->second.slices.empty() ? "standby" : "working";
}

Status LookInto(Shard& shard, ShardState& state) {
  if (Status ready = Prepare(shard, Missing::Refuse); !ready) return ready;
  auto desk = shard.store->OpenDesk();
  const WallTime now = SystemClock().WallNow();
  for (const TableInfo& table : shard.tables) {
    const auto backlog = desk->Backlog(table.table);
    if (!backlog) return Fail(backlog.error());
    for (const GroupBacklog& group : *backlog) {
      state.waiting += group.waiting;
      state.more = state.more || group.more;
      if (!group.oldest_due || *group.oldest_due > now) continue;
      state.oldest_due = std::max(state.oldest_due.value_or(Micros(0)), now - *group.oldest_due);
    }
  }
  const auto pauses = desk->Pauses();
  if (!pauses) return Fail(pauses.error());
  for (const PauseRecord& pause : *pauses) state.pauses.push_back(pause.what);
  state.reachable = true;
  return {};
}

std::map<std::string, ShardState> ReadShards(ClusterConnection& cluster, std::string& trouble) {
  std::map<std::string, ShardState> states;
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

ordered_json ToJson(const ClusterTree& tree, const std::map<std::string, ShardState>& shards) {
  ordered_json workers = ordered_json::object();
  std::set<std::string> ids = tree.draining;
  for (const auto& [id, document] : tree.workers) ids.insert(id);
  for (const auto& [id, document] : tree.assigned) {
    if (!document.slices.empty()) ids.insert(id);
  }
  for (const std::string& id : ids) {
    ordered_json worker{{"state", StateOf(tree, id)}};
    const auto present = tree.workers.find(id);
    if (present != tree.workers.end()) {
      worker["host"] = present->second.host;
      worker["pid"] = present->second.pid;
      worker["weight"] = present->second.weight;
      worker["version"] = present->second.version;
    }
    const auto assigned = tree.assigned.find(id);
    worker["slices"] = assigned == tree.assigned.end() ? 0 : assigned->second.slices.size();
    worker["generation"] = assigned == tree.assigned.end() ? 0 : assigned->second.generation;
    worker["status"] = StatusOf(tree, id);
    workers[id] = std::move(worker);
  }
  ordered_json plan = ordered_json::parse(tree.plan, nullptr, false);
  ordered_json out{{"epoch", tree.epoch.epoch}, {"leader", tree.epoch.leader}};
  out["leading"] =
      std::find(tree.candidates.begin(), tree.candidates.end(), tree.epoch.leader) != tree.candidates.end();
  out["candidates"] = tree.candidates.size();
  out["workers"] = std::move(workers);
  out["shards"] = ordered_json::object();
  for (const auto& [name, state] : shards) out["shards"][name] = ToJson(state);
  out["plan"] = plan.is_object() ? plan : ordered_json::object();
  out["pauses"] = tree.pauses;
  out["unreadable"] = tree.unreadable;
  return out;
}

std::string Number(const ordered_json& status, const char* key) {
  const auto found = status.find(key);
  if (found == status.end() || !found->is_number()) return "";
  return WithCommas(static_cast<std::uint64_t>(std::max(0.0, found->get<double>()) + 0.5));
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
                          Number(worker, "slices"), Number(status, "claims_per_second"),
                          Number(status, "settles_per_second"), Number(status, "running"),
                          Number(status, "lag_ms")});
  }
  PrintLine(table.Text(0));
}

void PrintShards(const std::map<std::string, ShardState>& shards) {
  TextTable table{{{"shard"}, {"state"}, {"waiting", true}, {"oldest due"}}, {}};
  for (const auto& [name, state] : shards) {
    table.rows.push_back({name, state.reachable ? "reachable" : "away",
                          WithCommas(state.waiting) + (state.more ? " or more" : ""),
                          state.oldest_due ? ElapsedText(*state.oldest_due) + " ago" : "nothing is due"});
  }
  PrintLine(table.Text(0));
}

// What is not as it should be, one line each.
std::vector<std::string> Troubles(const ordered_json& out, const ClusterTree& tree,
                                  const std::map<std::string, ShardState>& shards) {
  std::vector<std::string> lines;
  if (!out["leading"].get<bool>()) lines.push_back("nobody leads: no worker or coordinator stands for it");
  const ordered_json& plan = out["plan"];
  if (plan.value("holding", false)) {
    lines.push_back(
        "very many workers vanished at once: nothing moves for 30 s; millrace cluster proceed ends that");
  }
  if (const auto count = plan.value("unplaceable", std::uint64_t{0}); count > 0) {
    lines.push_back(Count(count, "slice has", "slices have") +
                    " no worker that may take them: " + plan["unplaceable_slices"].dump());
  }
  for (const auto& trouble : plan.value("troubles", ordered_json::array())) {
    if (trouble.is_string()) lines.push_back("the leader: " + trouble.get<std::string>());
  }
  for (const auto& type : plan.value("unrunnable", ordered_json::array())) {
    lines.push_back("tasks wait for a worker with their handler, in " + type.get<std::string>());
  }
  for (const auto& [id, worker] : out["workers"].items()) {
    for (const char* key :
         {"refused", "refusals"}) {  // words of the cluster, and what the worker can't carry out
      for (const auto& refused : worker["status"].value(key, ordered_json::array())) {
        if (refused.is_string()) lines.push_back(id + " refuses " + refused.get<std::string>());
      }
    }
  }
  for (const std::string& what : tree.pauses) lines.push_back("paused: " + what);
  for (const auto& [name, state] : shards) {
    if (!state.error.empty()) lines.push_back("shard " + name + ": " + state.error);
  }
  for (const std::string& line : tree.unreadable) lines.push_back("can't be read: " + line);
  return lines;
}

void Print(const ordered_json& out, const ClusterTree& tree,
           const std::map<std::string, ShardState>& shards) {
  std::string leader = "leader " + (out["leading"].get<bool>() ? tree.epoch.leader : "none") + ", term " +
                       std::to_string(tree.epoch.epoch) + ", " +
                       Count(tree.candidates.size(), "candidate", "candidates");
  if (const auto waiting = out["plan"].value("moves_waiting", std::uint64_t{0}); waiting > 0) {
    leader += "; " + Count(waiting, "move waits", "moves wait") + " until the cluster has been quiet";
  }
  PrintLine(leader + "\n");
  PrintWorkers(out);
  if (!shards.empty()) {
    PrintLine("");
    PrintShards(shards);
  }
  const auto troubles = Troubles(out, tree, shards);
  if (!troubles.empty()) PrintLine("");
  for (const std::string& line : troubles) PrintLine("! " + EscapeControls(line));
}

}  // namespace

Result<ExitCode> RunClusterStatus(const CommonFlags& common) {
  auto cluster = Connect(common);
  if (!cluster) return Fail(cluster.error());
  const auto tree = ReadTree(*cluster->client);
  if (!tree) return Fail(tree.error());
  std::string trouble;
  const auto shards = ReadShards(*cluster, trouble);
  const ordered_json out = ToJson(*tree, shards);
  if (common.json) {
    PrintLine(JsonText(out));
  } else {
    Print(out, *tree, shards);
    if (!trouble.empty()) PrintNote("the shards are not shown: " + trouble);
  }
  return ExitCode::Done;
}

}  // namespace millrace
