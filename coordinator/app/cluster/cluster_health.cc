#include "coordinator/app/cluster/cluster_health.h"

#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_limit.h"
#include "coordinator/app/cluster/cluster_pause.h"
#include "coordinator/app/cluster/limit_report.h"
#include "framework/base/time_text.h"
#include "framework/policy/eligibility.h"

namespace millrace::engine {
namespace {

using TroubleList = std::vector<Trouble>;

constexpr Micros kToldFor = std::chrono::hours(1);

void AddNodes(const ClusterSnapshot& snapshot, WallTime now, TroubleList& troubles) {
  if (!snapshot.missing.empty()) {
    troubles.push_back(
        {"nodes that always exist are missing: " + Joined(snapshot.missing),
         "a worker or coordinator that runs makes them again within a second: start one if none does"});
  }
  for (const MadeAgain& made : snapshot.made_again) {
    const auto at = ParseTime(made.at);
    if (at && now - *at > kToldFor) continue;
    const bool control = std::any_of(made.nodes.begin(), made.nodes.end(), [](const std::string& node) {
      return node == "/" || node.starts_with("/control");
    });
    troubles.push_back({"somebody deleted nodes; " + made.by + " made them again" +
                            (made.at.empty() ? "" : " at " + made.at) + ": " + Joined(made.nodes),
                        control ? "what operators had set in control/ is gone: set it again" : ""});
  }
}

// Slices that are assigned to workers that are there, or to others.
std::size_t Assigned(const ClusterSnapshot& snapshot, bool there) {
  std::size_t slices = 0;
  for (const auto& [id, document] : snapshot.assigned) {
    if (snapshot.workers.contains(id) == there) slices += document.slices.size();
  }
  return slices;
}

void AddPlan(const PlanDocument& plan, TroubleList& troubles) {
  if (plan.holding) {
    troubles.push_back(
        {"very many workers vanished at once: nothing moves for 30 s", "millrace cluster proceed ends that"});
  }
  if (plan.unplaceable > 0) {
    std::string names = Joined(plan.unplaceable_slices);
    if (plan.unplaceable > plan.unplaceable_slices.size()) names += " …";
    troubles.push_back(
        {Count(plan.unplaceable, "slice has", "slices have") + " no worker that may take them: " + names,
         "start a worker that may, or see whose limits leave them out: millrace cluster status"});
  }
  for (const std::string& trouble : plan.troubles) troubles.push_back({"the leader: " + trouble, ""});
  for (const std::string& type : plan.unrunnable)
    troubles.push_back(
        {"tasks wait for a worker with their handler, in " + type,
         "start a worker with that plugin, or see whether its --handlers leaves the type out"});
}

void AddDatabases(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  const std::vector<std::string>& told = snapshot.plan.troubles;
  for (std::string& line : DatabaseTroubles(snapshot.workers)) {
    if (std::find(told.begin(), told.end(), line) == told.end()) troubles.push_back({std::move(line), ""});
  }
}

std::size_t SlicesIn(const ClusterSnapshot& snapshot, const std::string& id, const std::string& shard) {
  const auto assigned = snapshot.assigned.find(id);
  if (assigned == snapshot.assigned.end()) return 0;
  const auto& slices = assigned->second.slices;
  return static_cast<std::size_t>(
      std::count_if(slices.begin(), slices.end(),
                    [begin = shard + "/"](const std::string& slice) { return slice.starts_with(begin); }));
}

// Others may work there, and the shard may answer here. Workers that say the same stand in one line.
void AddCutOff(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> workers;  // by shard, and why
  for (const auto& [id, status] : snapshot.statuses) {
    for (const auto& [name, shard] : ObjectPart(status, status_key::kShards).items()) {
      if (std::string why = TextPart(shard, status_key::kError); !why.empty())
        workers[{name, std::move(why)}].push_back(id);
    }
  }
  for (const auto& [said, ids] : workers) {
    const auto& [shard, why] = said;
    std::size_t slices = 0;
    for (const std::string& id : ids) slices += SlicesIn(snapshot, id, shard);
    const std::string wait =
        slices > 0 ? ", and the tasks of " + Count(slices, "slice", "slices") + " wait" : "";
    const std::string drain = "; where others reach it, millrace cluster drain " +
                              (ids.size() == 1 ? ids.front() : "ID") + " gives them the slices";
    troubles.push_back({Joined(ids) + " can't work in shard " + shard + wait + ": " + why,
                        "see whether the database answers there" + (slices > 0 ? drain : "")});
  }
}

// The rest of the shard goes on. Workers that say the same stand in one line.
void AddResting(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> workers;  // by place, and why
  for (const auto& [id, status] : snapshot.statuses) {
    for (const auto& [name, shard] : ObjectPart(status, status_key::kShards).items()) {
      const auto& tables = ObjectPart(shard, status_key::kResting);
      for (const auto& [table, why] : tables.items())
        workers[{"table " + table + " in shard " + name, TextPart(tables, table)}].push_back(id);
    }
  }
  for (const auto& [said, ids] : workers) {
    const auto& [table, why] = said;
    troubles.push_back({"nothing of " + table + " is claimed by " + Joined(ids) + ": " + why,
                        "see what locks it, or whether it is still there; it is tried again all the time"});
  }
}

void AddProbations(const ClusterSnapshot& snapshot, WallTime now, TroubleList& troubles) {
  for (const auto& [id, until] : snapshot.plan.probation) {
    if (!snapshot.workers.contains(id)) continue;
    const auto end = ParseTime(until);
    if (end && *end <= now) continue;
    troubles.push_back(
        {id + " is on probation until " + until + (end ? " (" + Relative(*end, now) + ")" : "") +
             ", since it ended unannounced: it " +
             (snapshot.SliceCount(id) > 0 ? "keeps what it has and gets" : "gets no slices but") +
             " what nobody else can take",
         "millrace cluster proceed ends that"});
  }
  if (snapshot.plan.on_probation > snapshot.plan.probation.size()) {
    troubles.push_back({Count(snapshot.plan.on_probation - snapshot.plan.probation.size(), "more worker is",
                              "more workers are") +
                            " on probation",
                        ""});
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

void AddIdleByLimits(const ClusterSnapshot& snapshot, const ShardStates& shards, TroubleList& troubles) {
  for (const auto& [id, worker] : snapshot.workers) {
    WorkerLimits places = worker.limits;
    places.handlers.reset();
    const std::string limits = LimitsText(places);
    if (limits.empty() || snapshot.SliceCount(id) > 0 || MayHaveAny(worker, shards)) continue;
    troubles.push_back(
        {id + " stands by for nothing: no table has a slice within its limits (" + limits + ")",
         "mend its options or millrace cluster limit " + id + ", or stop it"});
  }
}

// What operators have limited is no trouble by itself, and easily forgotten.
void AddLimits(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  for (const auto& [id, limits] : snapshot.limits) {
    troubles.push_back({id + (snapshot.workers.contains(id) ? "" : ", which is not there,") +
                            " is limited by an operator to " + LimitsText(limits),
                        "millrace cluster limit " + id + " --none ends that"});
  }
}

void AddUnshared(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  for (const auto& [type, running] : Unshared(snapshot)) {
    troubles.push_back({"no worker has a share of the limit of " + type + ", and nothing of it starts: " +
                            (running > 0 ? "it waits until some of " +
                                               Count(running, "running task", "running tasks") + " have ended"
                                         : "the leader has divided none"),
                        ""});
  }
}

// Of `config/engine: …` or `handlers.mail: …`: how the part is set back. Other words are no configuration.
std::string RemedyOfRefusal(const std::string& refusal) {
  constexpr std::string_view kConfig = "config/";
  std::string part = refusal.starts_with("handlers.") ? "handlers" : "";
  if (refusal.starts_with(kConfig)) part = refusal.substr(kConfig.size(), refusal.find(':') - kConfig.size());
  return part.empty() ? "" : "mend it, or go back: millrace config rollback " + part;
}

void AddRefusals(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  for (const auto& [id, status] : snapshot.statuses) {
    for (const char* key : {status_key::kRefused,
                            status_key::kRefusals}) {  // words of the cluster, and what it can't carry out
      for (const std::string& what : TextsPart(status, key))
        troubles.push_back({id + " refuses " + what, RemedyOfRefusal(what)});
    }
  }
}

void AddPermits(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  for (const auto& [id, status] : snapshot.statuses) {
    const std::string why = TextPart(status, status_key::kPermitsHeldUp);
    if (!why.empty()) troubles.push_back({id + " holds up what needs a permit: " + why, ""});
    for (const std::string& type : TextsPart(status, status_key::kPermitsLocked))
      troubles.push_back({id + " can't change permits of " + type + ": another session has locked their rows",
                          "end that session, or wait for it"});
  }
}

void AddIgnored(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  for (const auto& [id, status] : snapshot.statuses) {
    for (const std::string& what : TextsPart(status, status_key::kIgnored))
      troubles.push_back({id + ": " + what, ""});
  }
}

// Where the brake holds (`engine.brake`, or after an outage), and how much.
void AddBrakes(const ClusterSnapshot& snapshot, TroubleList& troubles) {
  for (const auto& [id, status] : snapshot.statuses) {
    for (const auto& [name, shard] : ObjectPart(status, status_key::kShards).items()) {
      const auto& speed = PartOf(shard, status_key::kScanSpeed);
      if (!speed.is_number()) continue;
      troubles.push_back(
          {"scanning of shard " + name + " by " + id + " is slowed to " + PercentText(speed.get<double>()) +
               ", since its answers are slow or it was away",
           "see what keeps its database busy; it is scanned at full speed again once it answers "
           "within engine.brake"});
    }
  }
}

// One that is meant to be on, and is not: workers in the same trouble stand in one line.
void AddDoorbells(const ClusterSnapshot& snapshot, const ShardStates& shards, TroubleList& troubles) {
  for (const auto& [shard, state] : shards) {
    std::map<std::string, std::vector<std::string>> workers;  // by what they say
    for (const auto& [id, doorbell] : DoorbellsOf(snapshot, shard)) {
      if (doorbell != "on" && doorbell != "off") workers[doorbell].push_back(id);
    }
    for (const auto& [why, ids] : workers)
      troubles.push_back({"the doorbell of shard " + shard + " at " + Joined(ids) + " is " + why +
                              "; new tasks are found by polling",
                          ""});
  }
}

// `paused: handler:a, by ann since 2026-11-20T18:00:00Z: the partner is down`, as far as it is known.
std::string PauseText(const PauseRecord& pause) {
  std::string text = WordsOfPause(pause.what).says;
  if (!pause.actor.empty()) text += ", by " + pause.actor + " since " + FormatTime(pause.since);
  return text + (pause.reason.empty() ? "" : ": " + pause.reason);
}

const std::string kWorkerPause = "worker:";

// With what ends it; of a worker also what waits for it, since nobody else does that meanwhile.
Trouble PauseTrouble(const ClusterSnapshot& snapshot, const std::string& what, std::string text) {
  if (what.starts_with(kWorkerPause)) {
    const std::size_t slices = snapshot.SliceCount(what.substr(kWorkerPause.size()));
    if (slices > 0) text += "; the tasks of its " + Count(slices, "slice", "slices") + " wait";
  }
  return {std::move(text), WordsOfPause(what).ends + (ReadTripped(what) ? "" : " ends that")};
}

bool IsPausedWorker(const ClusterSnapshot& snapshot, const std::string& id) {
  return std::find(snapshot.pauses.begin(), snapshot.pauses.end(), kWorkerPause + id) !=
         snapshot.pauses.end();
}

// A pause that stands in ZooKeeper holds everywhere; one that stands in a shard alone, there.
void AddPauses(const ClusterSnapshot& snapshot, const ShardStates& shards, TroubleList& troubles) {
  for (const std::string& what : snapshot.pauses) {
    const auto stamp = snapshot.pause_stamps.find(what);
    troubles.push_back(PauseTrouble(
        snapshot, what,
        stamp == snapshot.pause_stamps.end() ? WordsOfPause(what).says : PauseText(stamp->second)));
  }
  std::map<std::string, std::vector<std::string>> alone;
  for (const auto& [shard, state] : shards) {
    for (const std::string& what : state.pauses) {
      if (std::find(snapshot.pauses.begin(), snapshot.pauses.end(), what) == snapshot.pauses.end())
        alone[what].push_back(shard);
    }
  }
  for (const auto& [what, names] : alone)
    troubles.push_back(PauseTrouble(
        snapshot, what, WordsOfPause(what).says + ", by word of the shard alone: " + Joined(names)));
}

void AddBreakers(const ClusterSnapshot& snapshot, WallTime now, TroubleList& troubles) {
  for (const auto& [type, breaker] : snapshot.breakers)
    troubles.push_back(
        {"the breaker of " + type + " is open, and its tasks wait: " + BreakerText(snapshot, type, now),
         "it closes by itself once probes succeed; " + WordsOfClose(type)});
}

}  // namespace

std::string ToText(const Trouble& trouble) {
  return trouble.remedy.empty() ? trouble.what : trouble.what + "; " + trouble.remedy;
}

std::string WhyUnopened(const ClusterSnapshot& snapshot, const std::string& worker, const std::string& shard,
                        const std::string& type) {
  const auto status = snapshot.statuses.find(worker);
  if (status == snapshot.statuses.end()) return "";
  const auto& scan = PartOf(PartOf(status->second, status_key::kShards), shard);
  const std::vector<std::string> types = TextsPart(scan, status_key::kUnrunnable);
  if (std::find(types.begin(), types.end(), type) == types.end()) return "";
  const std::string begin = "handlers." + type + ": ";
  for (const std::string& refusal : TextsPart(status->second, status_key::kRefusals)) {
    if (refusal.starts_with(begin)) return refusal.substr(begin.size());
  }
  return "";
}

std::optional<WallTime> NextProbe(const ClusterSnapshot& snapshot, const std::string& type) {
  std::optional<WallTime> soonest;
  for (const auto& [id, status] : snapshot.statuses) {
    const auto& breaker = PartOf(PartOf(status, status_key::kBreakers), type);
    const auto next = ParseTime(TextPart(breaker, status_key::kNextProbe));
    if (next && (!soonest || *next < *soonest)) soonest = *next;
  }
  return soonest;
}

std::string BreakerText(const ClusterSnapshot& snapshot, const std::string& type, WallTime now) {
  const BreakerDocument& breaker = snapshot.breakers.at(type);
  std::string text = breaker.why.empty() ? "nobody says why" : breaker.why;
  if (!breaker.since.empty()) text += ", since " + breaker.since;
  if (!breaker.by.empty()) text += ", by " + breaker.by;
  text += breaker.prober.empty() ? "; not probed yet"
                                 : "; probed last by " + breaker.prober + " at " + breaker.probed;
  const auto next = NextProbe(snapshot, type);
  return next && *next > now ? text + ", next at " + FormatTime(*next) : text;
}

bool IsLed(const ClusterSnapshot& snapshot) {
  return std::find(snapshot.candidates.begin(), snapshot.candidates.end(), snapshot.epoch.leader) !=
         snapshot.candidates.end();
}

std::string LeaderText(const ClusterSnapshot& snapshot) {
  if (IsLed(snapshot)) return snapshot.epoch.leader;
  return snapshot.candidates.empty() ? "none" : "electing";
}

std::string StateOf(const ClusterSnapshot& snapshot, const std::string& id) {
  if (!snapshot.workers.contains(id)) {
    if (snapshot.expected.contains(id)) return "restarting";
    return snapshot.left.contains(id) ? "stopped" : "gone";
  }
  if (snapshot.draining.contains(id)) return "draining";
  if (snapshot.SliceCount(id) > 0) return "working";
  return snapshot.plan.probation.contains(id) ? "probation" : "standby";
}

std::optional<Trouble> Standstill(const ClusterSnapshot& snapshot) {
  const bool may_work =
      std::any_of(snapshot.workers.begin(), snapshot.workers.end(),
                  [&](const auto& worker) { return !snapshot.draining.contains(worker.first); });
  if (!may_work) return std::nullopt;
  const std::size_t owned = Assigned(snapshot, true);
  const std::size_t orphans = Assigned(snapshot, false);
  if (!IsLed(snapshot) && (owned == 0 || orphans > 0)) {
    return Trouble{"work stands still, since nobody leads: " +
                       (owned == 0 ? std::string("no slice has a worker")
                                   : Count(orphans, "slice has", "slices have") + " no worker that is there"),
                   "if this lasts, start millrace coordinator, or a worker without --no-coordinate"};
  }
  if (owned > 0 || snapshot.plan.unplaceable > 0) return std::nullopt;
  return Trouble{"work stands still, since there is no plan: no slice has a worker",
                 "if this lasts, see what the leader " + snapshot.epoch.leader +
                     " says here and in its log, or start it again"};
}

std::optional<Trouble> Standstill(const ClusterSnapshot& snapshot, const ShardStates& shards) {
  if (auto still = Standstill(snapshot)) return still;
  Backlog waiting;
  for (const auto& [name, state] : shards) {
    waiting.waiting += state.backlog.waiting;
    waiting.or_more = waiting.or_more || state.backlog.or_more;
  }
  if (waiting.waiting == 0) return std::nullopt;
  const auto is_empty = [&](const std::string& id) {
    return snapshot.draining.contains(id) && snapshot.SliceCount(id) == 0;
  };
  const bool drained = std::all_of(snapshot.workers.begin(), snapshot.workers.end(),
                                   [&](const auto& worker) { return is_empty(worker.first); });
  const bool paused =
      std::find(snapshot.pauses.begin(), snapshot.pauses.end(), "cluster") != snapshot.pauses.end();
  const bool none_starts = std::all_of(
      snapshot.workers.begin(), snapshot.workers.end(),
      [&](const auto& worker) { return is_empty(worker.first) || IsPausedWorker(snapshot, worker.first); });
  if (!drained && !paused && !none_starts) return std::nullopt;
  const std::string begin = "work stands still: " + WithCommas(waiting.waiting) +
                            (waiting.or_more        ? " or more tasks wait"
                             : waiting.waiting == 1 ? " task waits"
                                                    : " tasks wait");
  if (snapshot.workers.empty())
    return Trouble{begin + ", and no worker is there", "start one with millrace worker"};
  if (drained)
    return Trouble{begin + ", and every worker is drained", "millrace cluster undrain takes that back"};
  if (!paused)
    return Trouble{begin + ", and every worker is paused, or gives up its slices",
                   "millrace cluster resume worker:ID ends that"};
  return Trouble{begin + ", and the cluster is paused", "millrace cluster resume cluster ends that"};
}

std::string SignText(Micros ago) {
  constexpr Micros kLate = std::chrono::seconds(75);
  return ago < kLate ? "in touch" : ElapsedText(ago) + " ago";
}

bool AllAway(const ShardStates& shards) {
  return !shards.empty() && std::all_of(shards.begin(), shards.end(), [](const auto& shard) {
    return !shard.second.reachable && !shard.second.error.empty();
  });
}

std::map<std::string, std::string> DoorbellsOf(const ClusterSnapshot& snapshot, const std::string& shard) {
  std::map<std::string, std::string> doorbells;
  for (const auto& [id, status] : snapshot.statuses) {
    const auto& said = PartOf(PartOf(PartOf(status, status_key::kShards), shard), status_key::kDoorbell);
    if (said.is_string()) doorbells[id] = said.get<std::string>();
  }
  return doorbells;
}

std::vector<Trouble> Troubles(const ClusterSnapshot& snapshot, const ShardStates& shards, WallTime now) {
  TroubleList troubles;
  if (auto still = Standstill(snapshot, shards)) {
    troubles.push_back(std::move(*still));
  } else if (!IsLed(snapshot)) {
    troubles.push_back({"nobody leads: no worker or coordinator stands for it",
                        "start millrace coordinator, or a worker without --no-coordinate"});
  }
  if (AllAway(shards)) {
    troubles.push_back(
        {"no shard answers here, so that nothing is known of what waits; where the workers reach none "
         "either, nothing runs",
         "see whether the databases run, and that this host reaches them"});
  }
  AddNodes(snapshot, now, troubles);
  AddPlan(snapshot.plan, troubles);
  AddDatabases(snapshot, troubles);
  AddCutOff(snapshot, troubles);
  AddResting(snapshot, troubles);
  AddProbations(snapshot, now, troubles);
  AddLimits(snapshot, troubles);
  AddUnshared(snapshot, troubles);
  AddIdleByLimits(snapshot, shards, troubles);
  AddRefusals(snapshot, troubles);
  AddPermits(snapshot, troubles);
  AddIgnored(snapshot, troubles);
  AddDoorbells(snapshot, shards, troubles);
  AddBrakes(snapshot, troubles);
  AddPauses(snapshot, shards, troubles);
  AddBreakers(snapshot, now, troubles);
  for (const auto& [name, state] : shards) {
    if (!state.error.empty()) troubles.push_back({"shard " + name + ": " + state.error, ""});
  }
  for (const std::string& line : snapshot.unreadable) troubles.push_back({"can't be read: " + line, ""});
  return troubles;
}

}  // namespace millrace::engine
