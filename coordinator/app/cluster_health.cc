#include "coordinator/app/cluster_health.h"

#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "framework/base/time_text.h"
#include "framework/policy/eligibility.h"
#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

using Lines = std::vector<std::string>;

bool OwnsNothing(const ClusterSnapshot& tree, const std::string& id) {
  const auto assigned = tree.assigned.find(id);
  return assigned == tree.assigned.end() || assigned->second.slices.empty();
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The texts in a list under this key, whatever else a worker of another version may have put there.
std::vector<std::string> Texts(const nlohmann::ordered_json& status, const char* key) {
  std::vector<std::string> texts;
  const auto found = status.find(key);
  if (found == status.end() || !found->is_array()) return texts;
  for (const auto& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

constexpr Micros kToldFor = std::chrono::hours(1);

void AddNodes(const ClusterSnapshot& tree, WallTime now, Lines& lines) {
  if (!tree.missing.empty()) {
    lines.push_back(
        "nodes that always exist are missing: " + Joined(tree.missing) +
        "; a worker or coordinator that runs makes them again within a second: start one if none does");
  }
  for (const MadeAgain& made : tree.made_again) {
    const auto at = ParseTime(made.at);
    if (at && now - *at > kToldFor) continue;
    const bool control = std::any_of(made.nodes.begin(), made.nodes.end(), [](const std::string& node) {
      return node == "/" || node.starts_with("/control");
    });
    lines.push_back("somebody deleted nodes; " + made.by + " made them again" +
                    (made.at.empty() ? "" : " at " + made.at) + ": " + Joined(made.nodes) +
                    (control ? "; what operators had set in control/ is gone: set it again" : ""));
  }
}

// Slices that are assigned to workers that are there, or to others.
std::size_t Assigned(const ClusterSnapshot& tree, bool there) {
  std::size_t slices = 0;
  for (const auto& [id, document] : tree.assigned) {
    if (tree.workers.contains(id) == there) slices += document.slices.size();
  }
  return slices;
}

void AddPlan(const PlanDocument& plan, Lines& lines) {
  if (plan.holding) {
    lines.push_back(
        "very many workers vanished at once: nothing moves for 30 s; millrace cluster proceed ends that");
  }
  if (plan.unplaceable > 0) {
    std::string names = Joined(plan.unplaceable_slices);
    if (plan.unplaceable > plan.unplaceable_slices.size()) names += " …";
    lines.push_back(Count(plan.unplaceable, "slice has", "slices have") +
                    " no worker that may take them: " + names);
  }
  for (const std::string& trouble : plan.troubles) lines.push_back("the leader: " + trouble);
  for (const std::string& type : plan.unrunnable)
    lines.push_back("tasks wait for a worker with their handler, in " + type);
}

void AddProbations(const ClusterSnapshot& tree, WallTime now, Lines& lines) {
  for (const auto& [id, until] : tree.plan.probation) {
    if (!tree.workers.contains(id)) continue;
    const auto end = ParseTime(until);
    if (end && *end <= now) continue;
    lines.push_back(id + " is on probation until " + until + (end ? " (" + Relative(*end, now) + ")" : "") +
                    ", since it ended unannounced: it keeps what it has and gets what nobody else can "
                    "take; millrace cluster proceed ends that");
  }
  if (tree.plan.on_probation > tree.plan.probation.size()) {
    lines.push_back(
        Count(tree.plan.on_probation - tree.plan.probation.size(), "more worker is", "more workers are") +
        " on probation");
  }
}

bool MayHaveAny(const WorkerDocument& worker, const ShardStates& shards) {
  for (const auto& [shard, state] : shards) {
    if (!state.reachable) return true;  // it is not known
    for (const TableInfo& info : state.tables) {
      for (std::uint32_t number = 0; number < info.slices; ++number) {
        if (Eligible(worker.limits, {shard, info.table, number}, {})) return true;
      }
    }
  }
  return shards.empty();
}

std::string LimitsText(const WorkerLimits& limits) {
  std::string text;
  const auto add = [&](const std::string& limit) { text += (text.empty() ? "" : "; ") + limit; };
  if (limits.load_balance) add("load-balance numbers " + FormatLoadBalance(*limits.load_balance));
  if (limits.shards) add("shards " + Joined(*limits.shards));
  if (limits.tables) add("tables " + Joined(*limits.tables));
  return text;
}

void AddIdleByLimits(const ClusterSnapshot& tree, const ShardStates& shards, Lines& lines) {
  for (const auto& [id, worker] : tree.workers) {
    const std::string limits = LimitsText(worker.limits);
    if (limits.empty() || !OwnsNothing(tree, id) || MayHaveAny(worker, shards)) continue;
    lines.push_back(id + " stands by for nothing: no table has a slice within its limits (" + limits + ")");
  }
}

void AddRefusals(const ClusterSnapshot& tree, Lines& lines) {
  for (const auto& [id, status] : tree.statuses) {
    for (const char* key : {status_key::kRefused,
                            status_key::kRefusals}) {  // words of the cluster, and what it can't carry out
      for (const std::string& what : Texts(status, key)) lines.push_back(id + " refuses " + what);
    }
  }
}

void AddIgnored(const ClusterSnapshot& tree, Lines& lines) {
  for (const auto& [id, status] : tree.statuses) {
    for (const std::string& what : Texts(status, status_key::kIgnored)) lines.push_back(id + ": " + what);
  }
}

// A pause that stands in ZooKeeper holds everywhere; one that stands in a shard alone, there.
void AddPauses(const ClusterSnapshot& tree, const ShardStates& shards, Lines& lines) {
  for (const std::string& what : tree.pauses) lines.push_back("paused: " + what);
  std::map<std::string, std::vector<std::string>> alone;
  for (const auto& [shard, state] : shards) {
    for (const std::string& what : state.pauses) {
      if (std::find(tree.pauses.begin(), tree.pauses.end(), what) == tree.pauses.end())
        alone[what].push_back(shard);
    }
  }
  for (const auto& [what, names] : alone)
    lines.push_back("paused: " + what + ", by word of the shard alone: " + Joined(names));
}

}  // namespace

bool IsLed(const ClusterSnapshot& tree) {
  return std::find(tree.candidates.begin(), tree.candidates.end(), tree.epoch.leader) !=
         tree.candidates.end();
}

std::string StateOf(const ClusterSnapshot& tree, const std::string& id) {
  if (!tree.workers.contains(id)) {
    if (tree.expected.contains(id)) return "restarting";
    return tree.left.contains(id) ? "stopped" : "gone";
  }
  if (tree.draining.contains(id)) return "draining";
  if (!OwnsNothing(tree, id)) return "working";
  return tree.plan.probation.contains(id) ? "probation" : "standby";
}

std::string Standstill(const ClusterSnapshot& tree) {
  const bool may_work = std::any_of(tree.workers.begin(), tree.workers.end(), [&](const auto& worker) {
    return !tree.draining.contains(worker.first);
  });
  if (!may_work) return "";
  const std::size_t owned = Assigned(tree, true);
  const std::size_t orphans = Assigned(tree, false);
  if (!IsLed(tree) && (owned == 0 || orphans > 0)) {
    return "work stands still, since nobody leads: " +
           (owned == 0 ? std::string("no slice has a worker")
                       : Count(orphans, "slice has", "slices have") + " no worker that is there") +
           "; if this lasts, start millrace coordinator, or a worker without --no-coordinate";
  }
  if (owned > 0 || tree.plan.unplaceable > 0) return "";
  return "work stands still, since there is no plan: no slice has a worker; if this lasts, see what the "
         "leader " +
         tree.epoch.leader + " says here and in its log, or start it again";
}

std::vector<std::string> Troubles(const ClusterSnapshot& tree, const ShardStates& shards, WallTime now) {
  Lines lines;
  if (std::string still = Standstill(tree); !still.empty()) {
    lines.push_back(std::move(still));
  } else if (!IsLed(tree)) {
    lines.push_back("nobody leads: no worker or coordinator stands for it");
  }
  AddNodes(tree, now, lines);
  AddPlan(tree.plan, lines);
  AddProbations(tree, now, lines);
  AddIdleByLimits(tree, shards, lines);
  AddRefusals(tree, lines);
  AddIgnored(tree, lines);
  AddPauses(tree, shards, lines);
  for (const auto& [name, state] : shards) {
    if (!state.error.empty()) lines.push_back("shard " + name + ": " + state.error);
  }
  for (const std::string& line : tree.unreadable) lines.push_back("can't be read: " + line);
  return lines;
}

}  // namespace millrace::engine
