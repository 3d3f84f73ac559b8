#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/cluster_pause.h"
#include "coordinator/app/cluster/limit_report.h"
#include "coordinator/app/command/command.h"
#include "coordinator/planner/handler_groups.h"
#include "framework/base/escape.h"
#include "framework/policy/eligibility.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

Status LookInto(Shard& shard, ShardState& state) {
  BOOST_OUTCOME_TRYV(Prepare(shard, Missing::Refuse));
  state.tables = shard.tables;
  BOOST_OUTCOME_TRY(waiting, shard.store->OpenOverview()->Waiting(NamesOf(shard.tables)));
  state.backlog += waiting;
  const auto oldest = state.backlog.next_due;
  if (oldest && *oldest <= waiting.now) state.oldest_due = waiting.now - *oldest;
  BOOST_OUTCOME_TRY(pauses, shard.store->OpenOperations()->Pauses());
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
  std::vector<std::pair<Shard*, ShardState>> looks;
  for (auto& [name, shard] : *shards) looks.emplace_back(&shard, ShardState{});
  ForEachAtOnce(looks.size(), [&looks](std::size_t i) {
    auto& [shard, state] = looks[i];
    if (Status looked = LookInto(*shard, state); !looked) state.error = looked.error().message;
  });
  for (auto& [shard, state] : looks) states[shard->name] = std::move(state);
  return states;
}

// Who is there, is drained, or has slices.
std::set<std::string> WorkersOf(const ClusterSnapshot& snapshot) {
  std::set<std::string> ids = snapshot.draining;
  for (const auto& [id, document] : snapshot.workers) ids.insert(id);
  for (const auto& [id, document] : snapshot.assigned) {
    if (!document.slices.empty()) ids.insert(id);
  }
  return ids;
}

ordered_json ToJson(const ClusterSnapshot& snapshot, const std::string& name, const ShardState& state) {
  ordered_json json{{"shard", name}, {"reachable", state.reachable}};
  json["waiting"] = state.reachable ? ordered_json(state.backlog.waiting) : ordered_json(nullptr);
  json["more"] = state.backlog.or_more;
  json["oldest_due_seconds"] = state.oldest_due
                                   ? ordered_json(static_cast<double>(state.oldest_due->count()) / 1e6)
                                   : ordered_json(nullptr);
  json["pauses"] = state.pauses;
  if (!state.error.empty()) json["error"] = state.error;
  json["doorbell"] = ordered_json::array();
  for (const auto& [worker, said] : DoorbellsOf(snapshot, name))
    json["doorbell"].push_back({{"worker", worker}, {"said", said}});
  return json;
}

ordered_json ToJson(const ClusterSnapshot& snapshot, const std::string& id, WallTime now) {
  ordered_json worker{{"worker", id}, {"state", StateOf(snapshot, id)}};
  const auto sign = snapshot.signs.find(id);
  worker["last_sign_seconds"] =
      sign == snapshot.signs.end()
          ? ordered_json(nullptr)
          : ordered_json(static_cast<double>(std::max(Micros(0), now - sign->second).count()) / 1e6);
  if (const auto limits = snapshot.limits.find(id); limits != snapshot.limits.end())
    worker["limits"] = ordered_json::parse(ToText(limits->second), nullptr, false);
  if (const auto present = snapshot.workers.find(id); present != snapshot.workers.end()) {
    worker["host"] = present->second.host;
    worker["pid"] = present->second.pid;
    worker["weight"] = present->second.weight;
    worker["version"] = present->second.version;
  }
  const auto assigned = snapshot.assigned.find(id);
  worker["slices"] = snapshot.SliceCount(id);
  worker["generation"] = assigned == snapshot.assigned.end() ? 0 : assigned->second.generation;
  const auto status = snapshot.statuses.find(id);
  worker["status"] = status == snapshot.statuses.end() ? ordered_json::object() : status->second;
  return worker;
}

// `trouble`: why it is not known which shards there are.
ordered_json ToJson(const ClusterSnapshot& snapshot, const ShardStates& shards, const std::string& trouble) {
  ordered_json out{{"epoch", snapshot.epoch.epoch}, {"leader", snapshot.epoch.leader}};
  out["leading"] = IsLed(snapshot);
  out["electing"] = LeaderText(snapshot) == "electing";
  out["candidates"] = snapshot.candidates.size();
  out["workers"] = ordered_json::array();
  const WallTime now = SystemClock().WallNow();
  for (const std::string& id : WorkersOf(snapshot)) out["workers"].push_back(ToJson(snapshot, id, now));
  out["shards"] = trouble.empty() ? ordered_json::array() : ordered_json(nullptr);
  for (const auto& [name, state] : shards) out["shards"].push_back(ToJson(snapshot, name, state));
  out["shards_error"] = trouble.empty() ? ordered_json(nullptr) : ordered_json(trouble);
  out["plan"] = snapshot.plan_json;
  out["pauses"] = snapshot.pauses;
  out["paused"] = ordered_json::array();  // the same, with who did it, when and why
  for (const auto& [name, pause] : snapshot.pause_stamps) out["paused"].push_back(PauseJson(pause));
  out["breakers"] = ordered_json::object();
  for (const auto& [type, breaker] : snapshot.breakers)
    out["breakers"][type] = ordered_json::parse(ToText(breaker), nullptr, false);
  out["unreadable"] = snapshot.unreadable;
  out["missing"] = snapshot.missing;
  out["made_again"] = ordered_json::array();
  for (const MadeAgain& made : snapshot.made_again)
    out["made_again"].push_back({{"nodes", made.nodes}, {"at", made.at}, {"by", made.by}});
  const auto still = Standstill(snapshot, shards);
  out["databases_differ"] = DatabaseTroubles(snapshot.workers);
  out["stands_still"] = still ? ordered_json(ToText(*still)) : ordered_json(nullptr);
  return out;
}

std::string Number(const ordered_json& status, const char* key) {
  const auto number = NumberIfThere(status, key);
  return number ? WithCommas(static_cast<std::uint64_t>(std::llround(*number))) : "";
}

void PrintWorkers(const ordered_json& out) {
  TextTable table{{{"worker"},
                   {"state"},
                   {"last sign"},
                   {"host"},
                   {"weight", true},
                   {"slices", true},
                   {"claims/s", true},
                   {"settles/s", true},
                   {"running", true},
                   {"lag ms", true}},
                  {}};
  for (const ordered_json& worker : out["workers"]) {
    const ordered_json& status = worker["status"];
    const ordered_json& sign = worker["last_sign_seconds"];
    table.rows.push_back({worker["worker"], worker["state"],
                          sign.is_null() ? "-" : SignText(Micros(std::llround(sign.get<double>() * 1e6))),
                          worker.value("host", ""), Number(worker, "weight"), Number(worker, "slices"),
                          Number(status, status_key::kClaimRate), Number(status, status_key::kSettleRate),
                          Number(status, status_key::kRunning), Number(status, status_key::kLag)});
  }
  PrintLine(table.Text(0));
}

// Whether the shard's workers hear of new tasks at once.
std::string DoorbellText(const ClusterSnapshot& snapshot, const std::string& shard) {
  const auto doorbells = DoorbellsOf(snapshot, shard);
  const auto on = static_cast<std::size_t>(std::count_if(
      doorbells.begin(), doorbells.end(), [](const auto& said) { return said.second == "on"; }));
  if (on == 0) return "off";
  return on == doorbells.size() ? "on"
                                : "on at " + std::to_string(on) + " of " + std::to_string(doorbells.size());
}

std::string WaitingText(const ShardState& state) {
  if (!state.reachable) return "?";
  return WithCommas(state.backlog.waiting) + (state.backlog.or_more ? " or more" : "");
}

std::string OldestText(const ShardState& state) {
  if (!state.reachable) return "?";
  return state.oldest_due ? ElapsedText(*state.oldest_due) + " ago" : "nothing is due";
}

// What the workers have loaded: of one plugin different versions may run side by side.
void PrintPlugins(const ClusterSnapshot& snapshot) {
  std::map<std::string, std::set<std::string>> workers;  // by plugin and version
  for (const auto& [id, status] : snapshot.statuses) {
    for (const std::string& plugin : TextsPart(status, status_key::kPlugins)) workers[plugin].insert(id);
  }
  if (workers.empty()) return;
  TextTable table{{{"plugin"}, {"version"}, {"workers"}}, {}};
  for (const auto& [plugin, ids] : workers) {
    const auto space = std::min(plugin.rfind(' '), plugin.size());
    table.rows.push_back({plugin.substr(0, space), plugin.substr(std::min(space + 1, plugin.size())),
                          ids.size() == snapshot.statuses.size() ? "all" : Joined(ids)});
  }
  PrintLine("");
  PrintLine(table.Text(0));
}

// A table's slices stand once for each group: else their sum would be a riddle.
void PrintGroups(const ClusterSnapshot& snapshot) {
  const auto& groups = snapshot.plan.groups;
  if (groups.size() < 2) return;
  PrintLine("");
  PrintLine("each slice of a table is owned once for each of " + std::to_string(groups.size()) +
            " handler groups, so the workers' slices are more than the tables':");
  for (const auto& [group, types] : groups) {
    const bool others = std::find(types.begin(), types.end(), kEveryOther) != types.end();
    PrintLine("  " + Escape(group) + ": " + (others ? "every other task type" : Escape(Joined(types))));
  }
}

void PrintLimits(const ClusterSnapshot& snapshot) {
  TextTable table{{{"limit of"},
                   {"worker"},
                   {"share"},
                   {"starts/s", true},
                   {"running", true},
                   {"claimed, unstarted", true}},
                  {}};
  for (const LimitLine& line : LimitLines(snapshot)) {
    char starts[32];
    std::snprintf(starts, sizeof starts, "%.1f", line.use.rate);
    table.rows.push_back({line.type, line.worker, line.share, starts, WithCommas(line.use.running),
                          WithCommas(line.use.waiting)});
  }
  if (table.rows.empty()) return;
  PrintLine("");
  PrintLine(table.Text(0));
}

// Where nobody has asked for one.
void PrintDoorbellAdvice(const ClusterSnapshot& snapshot, const ShardStates& shards) {
  std::vector<std::string> silent;
  for (const auto& [name, state] : shards) {
    const auto doorbells = DoorbellsOf(snapshot, name);
    const bool off = std::all_of(doorbells.begin(), doorbells.end(),
                                 [](const auto& said) { return said.second == "off"; });
    if (off && !doorbells.empty()) silent.push_back(name);
  }
  if (silent.empty()) return;
  PrintLine("");
  PrintLine("no doorbell in " + Escape(Joined(silent)) +
            ": what a plain INSERT adds waits for the next poll; " +
            "`doorbell` of its shard, or --doorbell, has it started within milliseconds where the server "
            "writes a binary log (millrace doctor)");
}

void PrintShards(const ClusterSnapshot& snapshot, const ShardStates& shards) {
  TextTable table{{{"shard"}, {"state"}, {"waiting", true}, {"oldest due"}, {"doorbell"}}, {}};
  for (const auto& [name, state] : shards) {
    table.rows.push_back({name, state.reachable ? "reachable" : "away", WaitingText(state), OldestText(state),
                          DoorbellText(snapshot, name)});
  }
  PrintLine(table.Text(0));
}

void Print(const ordered_json& out, const ClusterSnapshot& snapshot, const ShardStates& shards) {
  std::string leader = "leader " + LeaderText(snapshot) + ", term " + std::to_string(snapshot.epoch.epoch) +
                       ", " + Count(snapshot.candidates.size(), "candidate", "candidates");
  if (snapshot.plan.moves_waiting > 0) {
    leader += "; " + Count(snapshot.plan.moves_waiting, "move waits", "moves wait") +
              " until the cluster has been quiet for 5 s";
  }
  PrintLine(leader);
  if (!out["workers"].empty()) {
    PrintLine("");
    PrintWorkers(out);
  }
  PrintGroups(snapshot);
  PrintPlugins(snapshot);
  PrintLimits(snapshot);
  if (!shards.empty()) {
    PrintLine("");
    PrintShards(snapshot, shards);
    PrintDoorbellAdvice(snapshot, shards);
  }
  const auto troubles = Troubles(snapshot, shards, SystemClock().WallNow());
  if (!troubles.empty()) PrintLine("");
  for (const Trouble& trouble : troubles) PrintLine(ForOutput(Ink::Bad, "!") + " " + Escape(ToText(trouble)));
}

Result<ExitCode> RunClusterStatus(const CommonFlags& common) {
  BOOST_OUTCOME_TRY(cluster, Connect(common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  std::string trouble;
  const auto shards = ReadShards(cluster, trouble);
  const ordered_json out = ToJson(snapshot, shards, trouble);
  if (common.json) {
    PrintJson(out);
  } else {
    Print(out, snapshot, shards);
    if (!trouble.empty()) PrintNote("the shards are not shown: " + trouble);
  }
  const bool seen = trouble.empty() || snapshot.workers.empty();  // nobody works on what is not known
  const bool well =
      seen && !Standstill(snapshot, shards) && DatabaseTroubles(snapshot.workers).empty() && !AllAway(shards);
  return well ? ExitCode::Done : ExitCode::SomethingFailed;
}

struct ClusterSlicesOptions {
  CommonFlags common;
  std::string why;  // a slice
};

// Each worker's answer to "may it have this slice?", empty where it may.
std::string WhyNot(const ClusterSnapshot& snapshot, const std::string& id, const SliceName& slice,
                   const HandlersByGroup& groups) {
  const WorkerDocument& worker = snapshot.workers.at(id);
  if (snapshot.draining.contains(id)) return "it is drained";
  const auto group = groups.find(slice.group);
  const std::vector<std::string> types = group == groups.end() ? std::vector<std::string>() : group->second;
  switch (ObstacleOf(worker.limits, slice, types)) {
    case Obstacle::LoadBalance:
      return "it is limited to other load-balance numbers";
    case Obstacle::Shard:
      return "it is limited to other shards";
    case Obstacle::Table:
      return "it is limited to other tables";
    case Obstacle::Handler:
      return "it does not run " + *FirstRefused(worker.limits, types);
    case Obstacle::None:
      break;
  }
  return "";
}

// A slice that nobody has may be one that the tables do not have.
Status CheckExists(ClusterConnection& cluster, const SliceName& slice) {
  BOOST_OUTCOME_TRY(catalog, ReadCatalog(cluster));
  if (catalog.unread.contains(slice.shard)) return {};
  const std::string table = slice.shard + "/" + slice.table;
  for (const auto& known : catalog.tables) {
    if (known.shard != slice.shard || known.info.table != slice.table) continue;
    if (known.info.Has(slice.number)) return {};
    return Fail(ErrorCode::Invalid, "there is no slice " + ToString(slice) + ": " + table + " has 0 to " +
                                        std::to_string(known.info.slices - 1));
  }
  return Fail(ErrorCode::Invalid, "there is no table " + table + "; see millrace cluster slices");
}

Result<ExitCode> ExplainSlice(ClusterConnection& cluster, const ClusterSnapshot& snapshot,
                              const ClusterSlicesOptions& options) {
  BOOST_OUTCOME_TRY(name, ParseSliceName(options.why));
  HandlersByGroup groups;
  for (const auto& [id, document] : snapshot.assigned)
    groups.insert(document.groups.begin(), document.groups.end());
  const std::string owner = OwnerOf(snapshot, ToString(name));
  if (owner.empty()) {
    BOOST_OUTCOME_TRYV(CheckExists(cluster, name));
  }
  ordered_json out{{"slice", ToString(name)}, {"owner", owner}, {"workers", ordered_json::array()}};
  TextTable table{{{"worker"}, {"slices", true}, {"may it have this one?"}}, {}};
  for (const auto& [id, document] : snapshot.workers) {
    const std::string why = WhyNot(snapshot, id, name, groups);
    const std::size_t count = snapshot.SliceCount(id);
    out["workers"].push_back({{"id", id}, {"eligible", why.empty()}, {"why", why}, {"slices", count}});
    std::string word = why.empty() ? "yes" : "no: " + why;
    if (id == owner) word += "; it has it";
    if (const auto until = snapshot.plan.probation.find(id); until != snapshot.plan.probation.end())
      word += "; it is on probation until " + until->second;
    table.rows.push_back({id, std::to_string(count), word});
  }
  if (options.common.json) {
    PrintJson(out);
    return ExitCode::Done;
  }
  if (owner.empty()) {
    PrintLine(ToString(name) + " is nobody's now");
  } else {
    PrintLine(ToString(name) + " is " + owner + "'s" +
              (snapshot.workers.contains(owner) ? "" : ", who is not there") +
              ": each worker keeps what it has as long as the shares stay fair");
  }
  PrintLine(table.Text(0));
  return ExitCode::Done;
}

Result<ExitCode> RunClusterSlices(const ClusterSlicesOptions& options) {
  BOOST_OUTCOME_TRY(cluster, Connect(options.common));
  BOOST_OUTCOME_TRY(snapshot, ReadSnapshot(*cluster.client));
  if (!options.why.empty()) return ExplainSlice(cluster, snapshot, options);
  const PlanDocument& plan = snapshot.plan;
  ordered_json out{{"workers", ordered_json::array()}, {"unplaceable", plan.unplaceable_slices}};
  TextTable table{{{"worker"}, {"state"}, {"slices", true}, {"which"}}, {}};
  const auto add = [&](const std::string& who, const std::string& state, std::size_t count,
                       const std::vector<std::string>& slices) {
    table.rows.push_back({who, state, std::to_string(count),
                          Joined(SliceRanges(slices), " ") + (count > slices.size() ? " …" : "")});
  };
  for (const auto& [id, document] : snapshot.assigned) {
    const std::string state = StateOf(snapshot, id);
    out["workers"].push_back({{"id", id}, {"state", state}, {"slices", document.slices}});
    add(id, state, document.slices.size(), document.slices);
  }
  if (plan.unplaceable > 0) add("nobody", "unplaceable", plan.unplaceable, plan.unplaceable_slices);
  PrintAnswer(options.common, out, table, "no slice is assigned yet; see millrace cluster status");
  return ExitCode::Done;
}

}  // namespace

void AddClusterReads(CLI::App& cluster, Chosen& chosen) {
  AddCommand(cluster, chosen, "status", "Show the leader, the workers, the shards and what is wrong",
             "  millrace cluster status --zk zk1:2181", RunClusterStatus);
  const auto slices = AddCommand(cluster, chosen, "slices", "Show who owns which slice",
                                 "  millrace cluster slices\n  millrace cluster slices --why main/tasks/17",
                                 RunClusterSlices);
  slices.Add("--why", slices->why, "say why this slice is where it is", "SLICE");
}

}  // namespace millrace::engine
