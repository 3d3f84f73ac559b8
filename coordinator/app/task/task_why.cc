#include "coordinator/app/task/task_why.h"

#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "framework/base/time_text.h"
#include "framework/config/policy_text.h"
#include "framework/mill/hours_policy.h"
#include "framework/policy/coverage.h"
#include "framework/policy/pauses.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using Reasons = std::vector<Reason>;

std::string NameOf(const WhyFacts& facts) { return ToString(TaskName{facts.shard, facts.record.task.key}); }

std::string HandlerUsed(const WhyFacts& facts) { return facts.config.ServedBy(facts.record.task.handler); }

std::string HandlerText(const WhyFacts& facts) {
  return "'" + HandlerUsed(facts) + "'" +
         (facts.config.uses.empty() ? "" : " (`handlers." + facts.record.task.handler + ".uses`)");
}

// Without a cluster: workers that live without a configuration that was read here may have one of their own.
bool WorkersMayDiffer(const WhyFacts& facts) {
  return !facts.cluster && !facts.workers.empty() && !facts.has_config;
}

void ExplainUnopened(const WhyFacts& facts, Reasons& out) {
  if (facts.cannot_open.empty()) return;
  std::string text = "It can't be run";
  if (facts.cluster) text += " by " + facts.cluster->owner;
  const bool differs = WorkersMayDiffer(facts);
  if (differs) text += " without a configuration";
  text += ": " + facts.cannot_open;
  out.push_back(
      {"cannot_open", text + (differs ? "; where its workers have one, give it with --config." : ".")});
}

// What the plugins of this host have is of interest where its workers do the work, without a cluster.
void ExplainPlugin(const WhyFacts& facts, Reasons& out) {
  if (facts.cluster || !facts.plugin_handlers) return;
  const auto& known = *facts.plugin_handlers;
  if (std::find(known.begin(), known.end(), HandlerUsed(facts)) != known.end()) return;
  const bool differs = WorkersMayDiffer(facts);
  std::string text = "No plugin at hand has its handler " + HandlerText(facts);
  text += differs ? ", and no configuration was read: where its workers have one, give it with --config."
                  : ": see `millrace handler list`, or name the folder with --plugins.";
  out.push_back({"no_plugin", std::move(text)});
}

void ExplainHandler(const WhyFacts& facts, Reasons& out) {
  ExplainPlugin(facts, out);
  ExplainUnopened(facts, out);
}

// Where its workers may know more it comes last, but before the mere fact that it is due.
void ExplainHandlerPerhaps(const WhyFacts& facts, Reasons& out) {
  const bool leads = !facts.cannot_open.empty() && !out.empty() && out.front().code == "due";
  ExplainHandler(facts, out);
  if (leads) std::rotate(out.begin(), std::prev(out.end()), out.end());
}

// Of a pause that holds all who could do its work.
bool StopsAllItsWorkers(const WhyFacts& facts, const Pauses& pause) {
  if (ClusterAsked(facts)) return pause.CoversWorker(facts.cluster->owner);
  return !facts.workers.empty() &&
         std::all_of(facts.workers.begin(), facts.workers.end(),
                     [&](const WhyWorker& worker) { return pause.CoversWorker(worker.worker); });
}

void ExplainPauses(const WhyFacts& facts, Reasons& out) {
  const Task& task = facts.record.task;
  for (const PauseRecord& record : facts.pauses) {
    Pauses pause;
    if (!pause.Add(record.what) || pause.OpenedByHand(task.handler)) continue;  // ExplainBreaker tells of it
    if (!pause.Covers(facts.shard, task.key.table, task.slice, task.handler) &&
        !StopsAllItsWorkers(facts, pause))
      continue;
    std::string text = "It is paused (" + record.what + ")";
    if (!record.actor.empty()) text += " by " + record.actor;
    if (record.since != WallTime{}) text += " since " + At(facts, record.since);
    if (!record.reason.empty()) text += ", \"" + record.reason + "\"";
    out.push_back(
        {"paused", text + ": nothing of it starts until `millrace cluster resume " + record.what + "`."});
  }
}

bool IsRegistered(const WhyFacts& facts, const std::string& worker) {
  return std::any_of(facts.workers.begin(), facts.workers.end(),
                     [&](const WhyWorker& one) { return one.worker == worker; });
}

// How often they are made, as far as its rules are known.
std::string ProbesText(const WhyFacts& facts) {
  const auto& breaker = facts.config.breaker;
  if (!breaker) return "";
  return "; one is tried every " + FormatDuration(breaker->probe_every) + " (`handlers." +
         facts.record.task.handler + ".breaker.probe_every`)";
}

// By hand, or since calls of its type failed: by the word of a worker that lives.
void ExplainBreaker(const WhyFacts& facts, Reasons& out) {
  const std::string& type = facts.record.task.handler;
  const std::string begin = "The breaker of its type " + type + " is open";
  for (const PauseRecord& record : facts.pauses) {
    if (record.what != BreakerHandName(type, BreakerHand::Open)) continue;
    std::string text = begin + " by hand";
    if (!record.actor.empty()) text += ", by " + record.actor;
    if (record.since != WallTime{}) text += " since " + At(facts, record.since);
    if (!record.reason.empty()) text += ", \"" + record.reason + "\"";
    out.push_back(
        {"breaker", text + ": nothing of it starts until `millrace handler breaker " + type + " auto`."});
    return;
  }
  for (const PauseRecord& record : facts.pauses) {
    const auto tripped = ReadTripped(record.what);
    if (!tripped || tripped->type != type || !IsRegistered(facts, tripped->worker)) continue;
    out.push_back({"breaker", begin + " since " + At(facts, record.since) +
                                  (record.reason.empty() ? "" : " (" + record.reason + ")") +
                                  ": it waits until a probe has succeeded" + ProbesText(facts) + "."});
    return;
  }
  if (!ClusterAsked(facts) || facts.cluster->breaker.empty()) return;
  out.push_back({"breaker", begin + " (" + facts.cluster->breaker +
                                "): it waits until a probe has succeeded" + ProbesText(facts) + "."});
}

void ExplainHours(const WhyFacts& facts, Reasons& out) {
  const auto& hours = facts.config.hours;
  const std::string closed = hours ? ClosedBy(*hours, facts.now) : "";
  if (closed.empty()) return;
  out.push_back({"outside_hours", "Its type is held back: " + closed + " (`handlers." +
                                      facts.record.task.handler + ".hours`)."});
}

// Its own expiry, or that of its type; nullopt: it never expires.
std::optional<WallTime> ExpiryIn(const WhyFacts& facts) {
  const auto expiry = ExpiryOf(facts.record.task, facts.config.retry.expires_in);
  return expiry && *expiry < kNeverExpires ? expiry : std::nullopt;
}

void ExplainExpiry(const WhyFacts& facts, Reasons& out) {
  const auto expiry = ExpiryIn(facts);
  if (expiry && *expiry <= facts.now)
    out.push_back({"expired", "It expired at " + At(facts, *expiry) +
                                  ", before it was started: when its turn comes it is skipped."});
}

void ExplainExpiryToCome(const WhyFacts& facts, Reasons& out) {
  const auto expiry = ExpiryIn(facts);
  if (!expiry || *expiry <= facts.now) return;
  const bool in_time = facts.record.task.run_at < *expiry;
  out.push_back({"expires", "It expires at " + At(facts, *expiry) +
                                (in_time ? " if it is not started by then."
                                         : ", before it is due: when it is due it is skipped.")});
}

void ExplainDuplicate(const WhyFacts& facts, Reasons& out) {
  if (facts.key_holder.empty()) return;
  out.push_back({"duplicate", "Its key '" + facts.record.task.biz_key + "' belongs to " + facts.key_holder +
                                  ": when its turn comes it is skipped as a duplicate."});
}

constexpr const char* kStartOne = "start one with `millrace run` or `millrace worker`.";

// What the plan says against its being run.
void ExplainPlan(const WhyFacts& facts, Reasons& out) {
  const ClusterFacts& cluster = *facts.cluster;
  if (!cluster.type_runs) {
    out.push_back(
        {"no_handler", "No worker of the cluster runs its type '" + facts.record.task.handler + "'" +
                           (facts.config.uses.empty() ? "" : ": none has the handler " + HandlerText(facts)) +
                           "."});
  } else if (cluster.owner.empty()) {
    out.push_back(
        {cluster.all_drained ? "draining" : "slice_unowned",
         "Its slice " + cluster.slice + " is nobody's" +
             (cluster.planned_at ? ", by the plan of " + At(facts, *cluster.planned_at) : "") +
             (cluster.drained.empty() ? "" : "; " + Joined(cluster.drained) + " gives up all slices") +
             ": see `millrace cluster slices --why " + cluster.slice + "`."});
  } else if (!cluster.owner_there) {
    out.push_back({"owner_gone", "Its slice " + cluster.slice + " is with " + cluster.owner +
                                     ", who is not there: the leader gives it to another."});
  } else if (!cluster.cut_off.empty()) {
    out.push_back({"owner_cut_off", cluster.owner + ", which has its slice, can't work in shard " +
                                        facts.shard + ": " + cluster.cut_off + "."});
  } else if (!cluster.table_rests.empty()) {
    out.push_back({"table_rests", cluster.owner + ", which has its slice, claims nothing of table " +
                                      std::string(facts.record.task.key.table) + " in shard " + facts.shard +
                                      " until its database lets it: " + cluster.table_rests + "."});
  }
}

// Without a cluster workers may have been given load-balance numbers.
void ExplainWorkers(const WhyFacts& facts, Reasons& out) {
  const std::uint32_t slice = facts.record.task.slice;
  if (facts.workers.empty()) {
    out.push_back({"no_worker", std::string("No worker is running on this store: ") + kStartOne});
  } else if (std::none_of(facts.workers.begin(), facts.workers.end(),
                          [&](const WhyWorker& worker) { return Covers(worker.slices, slice); })) {
    out.push_back({"slice_unowned", "No worker on this store has its load-balance number " +
                                        std::to_string(slice) + ": see --load-balance of the workers."});
  }
}

// What the last attempt failed of.
std::string LastFailure(const WhyFacts& facts) {
  if (facts.record.attempts.empty()) return facts.record.task.last_error;
  const AttemptRecord& last = facts.record.attempts.back();
  return last.error_class.empty() ? last.message : last.error_class;
}

// A class of errors may have a ladder of its own. Where that of the last one isn't known, none is named.
std::string TierText(const WhyFacts& facts) {
  const RetryPolicy& retry = facts.config.retry;
  const std::uint32_t failures = facts.record.task.failures;
  const auto& attempts = facts.record.attempts;
  const auto last = std::find_if(attempts.rbegin(), attempts.rend(),
                                 [](const AttemptRecord& one) { return one.kind == "failed"; });
  const bool known = last != attempts.rend();
  const RetryClass* own = known ? ClassOf(retry, last->error_class) : nullptr;
  const std::uint32_t most = std::max(retry.max_failures, 2U) - 1;
  if ((!known && !retry.classes.empty()) || (own != nullptr && own->delays.empty()))
    return "it has failed " + std::to_string(failures) + " times of at most " + std::to_string(most + 1);
  if (own == nullptr)
    return "tier " + std::to_string(failures) + " of " + std::to_string(most) + " of its retry ladder";
  const auto tiers = static_cast<std::uint32_t>(std::min<std::size_t>(own->delays.size(), most));
  return "tier " + std::to_string(std::min(failures, tiers)) + " of " + std::to_string(tiers) +
         " of the ladder of `" + own->pattern + "` (`handlers." + facts.record.task.handler +
         ".retry.classes`)";
}

void ExplainDueTime(const WhyFacts& facts, Reasons& out) {
  const Task& task = facts.record.task;
  const std::string until = "It waits until " + At(facts, task.run_at) + ": ";
  if (task.failures == 0) {
    out.push_back({"not_due", until + "it is not due before."});
    return;
  }
  const std::string failure = Shorten(LastFailure(facts), 80);
  out.push_back(
      {"retry_tier", until + TierText(facts) + (failure.empty() ? "" : ", after \"" + failure + "\"") + "."});
}

// What it needs and what stands against it; where nothing does, its place in the order.
void ExplainWaiting(const WhyFacts& facts, Reasons& out) {
  const bool is_due = facts.record.task.run_at <= facts.now;
  if (!is_due) ExplainDueTime(facts, out);
  ExplainExpiry(facts, out);
  ExplainPauses(facts, out);
  ExplainBreaker(facts, out);
  if (is_due) ExplainHours(facts, out);
  ExplainDuplicate(facts, out);
  if (ClusterAsked(facts)) {
    ExplainPlan(facts, out);
  } else {
    ExplainWorkers(facts, out);
  }
  const bool differs = WorkersMayDiffer(facts);
  if (!differs) ExplainHandler(facts, out);
  if (is_due) ExplainOrder(facts, out);
  if (differs) ExplainHandlerPerhaps(facts, out);
  if (facts.cluster && !facts.cluster->unreached.empty()) {
    out.push_back(
        {"cluster_away", "The cluster could not be asked who owns its slice, and what it has paused: " +
                             facts.cluster->unreached + "."});
  }
  ExplainExpiryToCome(facts, out);
  if (!facts.workers.empty()) {
    out.push_back(
        {"workers", Count(facts.workers.size(), "worker is", "workers are") + " registered on this store."});
  }
  if (ClusterAsked(facts) && facts.cluster->owner_there) {
    // Whoever is drained works on what nobody else may have yet.
    const bool draining = facts.cluster->draining;
    out.push_back(
        {draining ? "draining" : "owner",
         "Its slice " + facts.cluster->slice + " is with " + facts.cluster->owner +
             (draining ? ", which is being drained: it does its work until another may have it." : ".")});
  }
}

// A task may have been claimed ahead of its start.
void ExplainClaimedAhead(const WhyFacts& facts, Reasons& out) {
  const std::string waits = WaitsForLimit(facts);
  if (waits.empty() || facts.config.limit->rate == 0) return;
  out.push_back({"limit", "If it has not started it " + waits});
}

void ExplainRunning(const WhyFacts& facts, Reasons& out) {
  const Task& task = facts.record.task;
  const std::string since = task.claimed_at ? " since " + At(facts, *task.claimed_at) : "";
  if (IsAlive(facts, task.claimed_by)) {
    const bool silent = facts.beats && !*facts.beats;
    out.push_back({silent ? "claimer_silent" : "running",
                   "It is with " + task.claimed_by + since +
                       (silent ? ", whose beat stands still: it is held up, or dead and not yet marked so."
                               : ", which is alive: running, or next in its queue.")});
    ExplainClaimedAhead(facts, out);
  } else {
    out.push_back(
        {"claimer_dead",
         "It was claimed by " + (task.claimed_by.empty() ? "nobody" : task.claimed_by) + since +
             ", which is dead or gone: the next worker that scans its slice sets it waiting again."});
    if (facts.workers.empty())
      out.push_back({"no_worker", std::string("No worker is running on this store: ") + kStartOne});
  }
  if (task.cancel)
    out.push_back(
        {"stop_asked", "It was asked to stop; its handler ends it at the next point where it looks."});
}

std::string FinishedText(const WhyFacts& facts) {
  const auto& at = facts.record.finished_at;
  return at ? " at " + At(facts, *at) : "";
}

std::string ByWhom(const WhyFacts& facts) {
  return facts.act ? " by " + facts.act->actor + " since " + At(facts, facts.act->at) : "";
}

void ExplainCancelled(const WhyFacts& facts, Reasons& out) {
  const std::string& why = facts.record.task.last_error;
  const char* code = why.starts_with("duplicate of ") ? "duplicate"
                     : why.starts_with("expired")     ? "expired"
                     : facts.act || why.empty()       ? "cancelled"
                                                      : "skipped";
  out.push_back({code, "It was cancelled or skipped" + FinishedText(facts) +
                           (facts.act ? ", by " + facts.act->actor : "") + (why.empty() ? "." : ": " + why)});
}

void ExplainFailed(const WhyFacts& facts, Reasons& out) {
  const Task& task = facts.record.task;
  out.push_back(
      {"failed",
       "It failed for good" + FinishedText(facts) +
           (task.attempt > 0 ? " after " + Count(task.attempt, "attempt", "attempts") : "") +
           " and needs a person: " + (task.last_error.empty() ? "no reason is noted." : task.last_error)});
  out.push_back({"how_to_retry", "When the cause is gone: `millrace task retry " + NameOf(facts) + "`."});
}

void ExplainHeld(const WhyFacts& facts, Reasons& out) {
  const std::string release = " until `millrace task release " + NameOf(facts) + "`";
  const Micros held_for = facts.config.held_for;
  const std::string what = held_for == Micros(0) ? "nothing happens to it" + release
                                                 : "it is not run" + release +
                                                       ", and is cancelled once nobody has changed it for " +
                                                       FormatDuration(held_for) + " (held_for)";
  const std::string failure = facts.act ? "" : Shorten(LastFailure(facts), 200);
  out.push_back({"held", "It is held" + ByWhom(facts) +
                             (failure.empty() ? "" : " after its last attempt failed (" + failure + ")") +
                             ": " + what + "."});
  const auto expiry = ExpiryIn(facts);
  if (expiry && *expiry <= facts.now)
    out.push_back({"expired", "It expired at " + At(facts, *expiry) + ": once released it is skipped."});
  ExplainExpiryToCome(facts, out);
}

void ExplainState(const WhyFacts& facts, Reasons& out) {
  switch (facts.record.task.state) {
    case TaskState::Waiting:
      return ExplainWaiting(facts, out);
    case TaskState::Running:
      return ExplainRunning(facts, out);
    case TaskState::Held:
      return ExplainHeld(facts, out);
    case TaskState::Succeeded:
      out.push_back(
          {"succeeded", "It succeeded" + FinishedText(facts) + ", so there is nothing left to run."});
      return;
    case TaskState::Cancelled:
      return ExplainCancelled(facts, out);
    case TaskState::Failed:
      return ExplainFailed(facts, out);
  }
}

void ExplainHistory(const WhyFacts& facts, Reasons& out) {
  const Task& task = facts.record.task;
  const auto& attempts = facts.record.attempts;
  if (attempts.empty() && task.failures == 0 && task.crashes == 0) return;
  std::string text = "So far " + Count(task.attempt, "attempt", "attempts") + ", of which " +
                     Count(task.failures, "failure counts", "failures count") + " towards the limit of " +
                     std::to_string(facts.config.retry.max_failures);
  if (task.crashes > 0) text += "; " + Count(task.crashes, "time", "times") + " its worker died under it";
  out.push_back({"attempts", text + "."});
  for (std::size_t i = attempts.size() > 5 ? attempts.size() - 5 : 0; i < attempts.size(); ++i) {
    const AttemptRecord& attempt = attempts[i];
    out.push_back({"attempt", "Attempt " + std::to_string(attempt.attempt) + " " + attempt.kind + " " +
                                  Relative(attempt.at, facts.now) + " on " + attempt.incarnation + ": " +
                                  attempt.message});
  }
}

}  // namespace

bool IsAlive(const WhyFacts& facts, const std::string& incarnation) {
  return std::any_of(facts.workers.begin(), facts.workers.end(),
                     [&](const WhyWorker& worker) { return worker.incarnation == incarnation; });
}

std::vector<Reason> ExplainTask(const WhyFacts& facts) {
  Reasons out;
  ExplainState(facts, out);
  ExplainHistory(facts, out);
  return out;
}

}  // namespace millrace::engine
