#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_pause.h"
#include "coordinator/app/status/status_report.h"
#include "framework/config/config.h"
#include "framework/policy/coverage.h"
#include "framework/policy/load_balance.h"
#include "framework/policy/pauses.h"
#include "framework/policy/permit_home.h"

namespace millrace::engine {
namespace {

using Findings = std::vector<Trouble>;

// A task that is due is started within a poll; one that waits this long waits for something.
constexpr Micros kLate = std::chrono::seconds(30);
// Where its handler does not open here, a poll is enough.
constexpr Micros kOpenedWithin = std::chrono::seconds(2);

bool Waits(const HandlerOverview& overview) { return overview.waiting.count > 0; }

bool AnyWaits(const StatusFacts& facts) {
  return std::any_of(facts.shards.begin(), facts.shards.end(), [](const auto& shard) {
    const auto& handlers = shard.second.waiting.handlers;
    return std::any_of(handlers.begin(), handlers.end(), Waits);
  });
}

bool MayLive(const WorkerFacts& worker) {
  return worker.life == WorkerLife::Alive || worker.life == WorkerLife::Unsure;
}

bool AnyLives(const StatusFacts& facts) {
  return std::any_of(facts.workers.begin(), facts.workers.end(), MayLive);
}

// A worker that lives no more tells of its breaker in vain.
bool IsOfTheDead(const StatusFacts& facts, const PauseRecord& pause) {
  const auto tripped = ReadTripped(pause.what);
  return tripped && std::none_of(facts.workers.begin(), facts.workers.end(), [&](const WorkerFacts& worker) {
           return worker.name == tripped->worker && MayLive(worker);
         });
}

// What is paused in the shard, by its own word and the cluster's; but for one name.
Pauses PausedIn(const StatusFacts& facts, const ShardFacts& shard, const std::string& except = "") {
  Pauses pauses;
  const auto add = [&](const std::string& name) {
    if (name == except || !pauses.Add(name)) return;  // a name that a later version knows
  };
  for (const PauseRecord& pause : shard.pauses) add(pause.what);
  for (const std::string& name : facts.cluster ? facts.cluster->pauses : std::vector<std::string>{})
    add(name);
  return pauses;
}

// Whole types; a paused slice is one of many.
bool IsPaused(const Pauses& pauses, const std::string& shard, const HandlerOverview& overview) {
  return pauses.Covers(shard, overview.table, kMaxSlices, overview.handler);
}

// Every worker that may live is paused: nobody else does its work.
bool AllWorkersPaused(const StatusFacts& facts) {
  return std::all_of(facts.workers.begin(), facts.workers.end(), [&](const WorkerFacts& worker) {
    return !MayLive(worker) || std::any_of(facts.shards.begin(), facts.shards.end(), [&](const auto& shard) {
      return PausedIn(facts, shard.second).CoversWorker(worker.name);
    });
  });
}

// Of those that wait, where none can be run and workers are there.
std::string WhyNoneCanRun(const StatusFacts& facts) {
  if (AllWorkersPaused(facts)) return "every worker is paused";
  bool paused = false;
  bool unknown = false;
  for (const auto& [name, shard] : facts.shards) {
    const Pauses pauses = PausedIn(facts, shard);
    for (const HandlerOverview& one : shard.waiting.handlers) {
      if (Waits(one)) (IsPaused(pauses, name, one) ? paused : unknown) = true;
    }
  }
  if (paused && unknown) return "some are paused, and no living worker has the handlers of the others";
  return paused ? "they are paused" : "no living worker has their handlers";
}

void FindShards(const StatusFacts& facts, Findings& findings) {
  for (const auto& [name, shard] : facts.shards) {
    if (!shard.error.empty()) findings.push_back({"shard " + name + " can't be read: " + shard.error, ""});
  }
}

void FindWorkers(const StatusFacts& facts, Findings& findings) {
  for (const WorkerFacts& worker : facts.workers) {
    if (worker.life == WorkerLife::Gone) {
      findings.push_back({worker.place.empty() ? "worker " + worker.name + " is not there, and has slices"
                                               : "worker " + worker.name + " (" + worker.place +
                                                     ") has died: its process is gone",
                          "others take over what it ran, the next that starts where nobody else is there"});
    }
    if (worker.life == WorkerLife::Silent) {
      findings.push_back(
          {"worker " + worker.name + " (" + worker.place + ") does not beat" +
               (worker.last_sign ? " for " + ElapsedText(*worker.last_sign) : ""),
           "see whether its process lives and reaches its store; others take over what it ran"});
    }
  }
  const bool told = facts.cluster && facts.cluster->unreached.empty();  // among its troubles
  if (told || AnyLives(facts)) return;
  Counted waiting;
  for (const auto& [handler, type] : TypesOf(facts)) waiting += type.now.waiting;
  if (waiting.count == 0) return;
  findings.insert(findings.begin(),
                  {"no worker is alive, and " + HowMany(waiting, "task waits", "tasks wait"),
                   "start one: millrace run, or millrace worker"});
}

void FindCluster(const StatusFacts& facts, Findings& findings) {
  if (!facts.cluster) return;
  if (!facts.cluster->unreached.empty()) {
    findings.push_back(
        {"the cluster can't be asked, so who owns what is not known: " + facts.cluster->unreached,
         "see whether ZooKeeper answers; workers go on with the plan they have"});
  }
  const auto& troubles = facts.cluster->troubles;
  findings.insert(findings.end(), troubles.begin(), troubles.end());
}

// By the rows of the shards; what the cluster has paused is among its troubles.
void FindPauses(const StatusFacts& facts, Findings& findings) {
  std::map<std::string, std::pair<PauseRecord, std::vector<std::string>>> by_name;
  for (const auto& [name, shard] : facts.shards) {
    for (const PauseRecord& pause : shard.pauses) {
      if (IsOfTheDead(facts, pause)) continue;
      auto& [record, shards] =
          by_name.try_emplace(pause.what, std::pair{pause, std::vector<std::string>{}}).first->second;
      shards.push_back(name);
    }
  }
  for (const auto& [what, entry] : by_name) {
    const auto& told = facts.cluster ? facts.cluster->pauses : std::vector<std::string>{};
    if (std::find(told.begin(), told.end(), what) != told.end()) continue;
    const auto& [record, shards] = entry;
    const PauseWords words = WordsOfPause(what);
    findings.push_back({words.says + (record.actor.empty() ? "" : ", by " + record.actor) + " " +
                            Relative(record.since, facts.now) +
                            (record.reason.empty() ? "" : ": " + record.reason),
                        words.ends});
  }
}

// Once somebody has named a home of permits all have to agree upon it.
void FindPermits(const StatusFacts& facts, Findings& findings) {
  std::map<std::string, std::optional<std::string>> said;
  bool named = false;
  for (const auto& [name, shard] : facts.shards) {
    named = named || !shard.permit_home.empty();
    said[name] = shard.error.empty() ? std::optional(shard.permit_home) : std::nullopt;
  }
  const std::string trouble = named ? ChooseHome(said).trouble : "";
  if (!trouble.empty()) findings.push_back({"what needs a permit is held up: " + trouble, ""});
}

// Without a plan: load-balance numbers that no living worker serves.
void FindUncovered(const StatusFacts& facts, Findings& findings) {
  if (facts.cluster && facts.cluster->unreached.empty()) return;
  if (!AnyLives(facts)) return;
  for (const auto& [name, shard] : facts.shards) {
    std::vector<std::string> served;
    for (const WorkerFacts& worker : facts.workers) {
      if (!MayLive(worker) || !worker.shards.contains(name)) continue;
      served.push_back(worker.load_balance);
    }
    std::uint32_t slices = 0;
    for (const TableInfo& table : shard.tables) slices = std::max(slices, table.slices);
    const std::vector<std::uint32_t> left = Uncovered(served, slices);
    if (left.empty()) continue;
    const std::string numbers = FormatLoadBalance(left);
    findings.push_back({"no living worker serves the load-balance numbers " + numbers + " of shard " + name,
                        "start one with --load-balance " + numbers});
  }
}

// Nobody has to have its handler now.
bool StopsAll(const std::vector<Hold>& holds) {
  return std::any_of(holds.begin(), holds.end(), [](const Hold& hold) {
    return hold.code == "paused" || hold.code == "breaker" || hold.code == "outside_hours";
  });
}

// Somebody has its handler, or had.
bool WasRun(const TypeState& type) {
  return type.succeeded > 0 || type.failed > 0 || type.attempts_failed > 0;
}

bool IsDueFor(const StatusFacts& facts, const TypeState& type, Micros time) {
  return type.now.oldest_due && facts.now - *type.now.oldest_due >= time;
}

// Nothing of it runs or ends.
bool IsIdle(const StatusFacts& facts, const std::string& handler, const TypeState& type) {
  const auto rate = facts.ended.find(handler);
  return type.now.running.count == 0 && (rate == facts.ended.end() || rate->second == 0);
}

// Why its handler does not open, as far as that says something of the workers.
std::string WhyStuckUnopened(const StatusFacts& facts, const std::string& handler, const TypeState& type) {
  const auto tried = facts.cannot_open.find(handler);
  return tried != facts.cannot_open.end() && (facts.has_config || !WasRun(type)) ? tried->second : "";
}

// Of tasks that have been due for a while, and of which nothing runs or ends.
void FindStuck(const StatusFacts& facts, Findings& findings) {
  if (!AnyLives(facts)) return;
  for (const auto& [handler, type] : TypesOf(facts)) {
    const HandlerOverview& now = type.now;
    const std::string unopened = WhyStuckUnopened(facts, handler, type);
    if (!IsDueFor(facts, type, unopened.empty() ? kLate : kOpenedWithin)) continue;
    const std::vector<Hold> holds = HoldsOn(facts, handler, type);
    if (StopsAll(holds)) continue;
    const std::string due = HowMany(now.waiting, "task", "tasks") + " of " + handler +
                            ", the oldest due for " + ElapsedText(facts.now - *now.oldest_due);
    if (!SomebodyMayRun(facts, handler)) {
      findings.push_back({"no living worker has the handler " + handler + " for " + due,
                          "see millrace handler list, and the plugins of the workers"});
      continue;
    }
    if (IsHeld(holds) || !IsIdle(facts, handler, type)) continue;
    const bool unknown = facts.plugin_handlers && !facts.plugin_handlers->contains(handler) &&
                         !IsBuiltIn(handler) && !WasRun(type);
    const bool differs = !facts.has_config && !facts.cluster;
    std::string why;
    std::string remedy =
        "millrace task list --state waiting --handler " + handler + ", and millrace task why NAME";
    if (unknown) {
      why = "; no plugin at hand has its handler";
      remedy = "see millrace handler list";
    } else if (!unopened.empty()) {
      why = ": " + unopened;
      remedy = "mend that in the configuration of the workers";
    }
    if (differs)
      remedy += "; where the workers have a configuration of their own, give it here too: --config FILE";
    findings.push_back({"nothing claims " + due + why, remedy});
  }
}

void FindFailed(const StatusFacts& facts, Findings& findings) {
  std::uint64_t failed = 0;
  for (const auto& [handler, type] : TypesOf(facts)) failed += type.failed;
  if (failed == 0) return;
  findings.push_back(
      {Count(failed, "task has failed and waits", "tasks have failed and wait") + " for a person",
       "millrace task list --state failed"});
}

void FindCrashes(const StatusFacts& facts, Findings& findings) {
  std::map<std::string, std::uint64_t> crashed;
  for (const auto& [name, shard] : facts.shards) {
    for (const FailedClass& failed : shard.failed.classes) {
      if (failed.error_class == "crash") crashed[failed.handler] += failed.count;
    }
  }
  for (const auto& [handler, count] : crashed) {
    findings.push_back({Count(count, "task", "tasks") + " of " + handler + (count == 1 ? " is" : " are") +
                            " in quarantine: a worker died each time one ran",
                        "mend the handler; then millrace task retry --handler " + handler +
                            " --error-class crash --all-matching"});
  }
}

void FindAlerts(const StatusFacts& facts, Findings& findings) {
  if (!facts.alerts) return;
  for (const AlertFacts& alert : *facts.alerts) {
    if (alert.fires.value_or(false))
      findings.push_back({"alert " + alert.name + ": " + alert.text, "millrace alerts list has more"});
  }
}

void FindSchedules(const StatusFacts& facts, Findings& findings) {
  for (const ScheduleFacts& schedule : facts.schedules) {
    for (const ScheduleTrouble& trouble : schedule.troubles) {
      findings.push_back(
          {"schedule " + schedule.name + ": " + trouble.what, "millrace schedule show " + schedule.name});
    }
  }
}

}  // namespace

std::string HowMany(const Counted& counted, const char* one, const char* many) {
  if (counted.more) return WithCommas(std::min(counted.count, kExactBacklog)) + " or more " + many;
  return WithCommas(counted.count) + " " + (counted.count == 1 ? one : many);
}

bool PausedEverywhere(const StatusFacts& facts, const std::string& handler) {
  return std::all_of(facts.shards.begin(), facts.shards.end(), [&](const auto& shard) {
    const auto& all = shard.second.waiting.handlers;
    const Pauses pauses = PausedIn(facts, shard.second, BreakerHandName(handler, BreakerHand::Open));
    return std::all_of(all.begin(), all.end(), [&](const HandlerOverview& one) {
      return one.handler != handler || !Waits(one) || IsPaused(pauses, shard.first, one);
    });
  });
}

bool BreakerIsOpen(const StatusFacts& facts, const std::string& handler) {
  const auto says_so = [&](const PauseRecord& pause) {
    const auto tripped = ReadTripped(pause.what);
    return pause.what == BreakerHandName(handler, BreakerHand::Open) ||
           (tripped && tripped->type == handler && !IsOfTheDead(facts, pause));
  };
  if (facts.cluster && facts.cluster->breakers.contains(handler)) return true;
  return std::any_of(facts.shards.begin(), facts.shards.end(), [&](const auto& shard) {
    const std::vector<PauseRecord>& pauses = shard.second.pauses;
    return std::any_of(pauses.begin(), pauses.end(), says_so);
  });
}

bool OpenedByHand(const StatusFacts& facts, const std::string& handler) {
  return std::any_of(facts.shards.begin(), facts.shards.end(),
                     [&](const auto& shard) { return PausedIn(facts, shard.second).OpenedByHand(handler); });
}

bool SomebodyMayRun(const StatusFacts& facts, const std::string& handler) {
  if (IsBuiltIn(handler)) return AnyLives(facts);
  return std::any_of(facts.workers.begin(), facts.workers.end(), [&](const WorkerFacts& worker) {
    return MayLive(worker) && (!worker.handlers || std::find(worker.handlers->begin(), worker.handlers->end(),
                                                             handler) != worker.handlers->end());
  });
}

std::set<std::string> IdleTypes(const StatusFacts& facts) {
  std::set<std::string> idle;
  for (const auto& [handler, type] : TypesOf(facts)) {
    if (IsDueFor(facts, type, kOpenedWithin) && IsIdle(facts, handler, type)) idle.insert(handler);
  }
  return idle;
}

std::map<std::string, TypeState> TypesOf(const StatusFacts& facts) {
  std::map<std::string, TypeState> types;
  WaitingOverview all;
  for (const auto& [name, shard] : facts.shards) {
    all.handlers.insert(all.handlers.end(), shard.waiting.handlers.begin(), shard.waiting.handlers.end());
    for (const TaskTotals& total : shard.totals) {
      TypeState& type = types[total.handler];
      type.succeeded += total.succeeded;
      type.cancelled += total.cancelled;
      type.failed += total.failed;
      type.attempts_failed += total.attempts_failed;
    }
  }
  for (auto& [handler, overview] : ByHandler(all)) types[handler].now = overview;
  return types;
}

KnownHandlers HandlersOf(const StatusFacts& facts) {
  KnownHandlers handlers;
  for (const WorkerFacts& worker : facts.workers) {
    if (worker.life != WorkerLife::Alive) continue;
    if (!worker.handlers) return std::nullopt;
    if (!handlers) handlers.emplace();
    handlers->insert(worker.handlers->begin(), worker.handlers->end());
  }
  return handlers;
}

std::vector<Trouble> FindingsOf(const StatusFacts& facts) {
  Findings findings;
  const bool explained = !AnyLives(facts) || (facts.cluster && facts.cluster->standstill);
  if (!explained && !CanRun(facts))
    findings.push_back({"none of the tasks that wait can be run: " + WhyNoneCanRun(facts), ""});
  FindShards(facts, findings);
  FindWorkers(facts, findings);
  FindCluster(facts, findings);
  FindUncovered(facts, findings);
  FindStuck(facts, findings);
  FindPauses(facts, findings);
  FindPermits(facts, findings);
  FindCrashes(facts, findings);
  FindFailed(facts, findings);
  FindAlerts(facts, findings);
  FindSchedules(facts, findings);
  return findings;
}

bool CanRun(const StatusFacts& facts) {
  if (!AnyWaits(facts)) return true;
  if (facts.cluster && facts.cluster->standstill) return false;
  if (AllWorkersPaused(facts)) return false;
  for (const auto& [name, shard] : facts.shards) {
    const Pauses pauses = PausedIn(facts, shard);
    for (const HandlerOverview& one : shard.waiting.handlers) {
      if (Waits(one) && !IsPaused(pauses, name, one) && SomebodyMayRun(facts, one.handler)) return true;
    }
  }
  return false;
}

}  // namespace millrace::engine
