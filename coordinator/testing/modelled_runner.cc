#include "coordinator/testing/modelled_runner.h"

#include <algorithm>
#include <utility>

#include "framework/mill/attempts.h"
#include "framework/mill/hours_policy.h"
#include "framework/mill/permits.h"
#include "framework/mill/starts.h"

namespace millrace::engine {
namespace {

constexpr unsigned kAnswersAllTheSame = 10;  // percent of the calls of a partner that is broken
constexpr const char* kPartnerClass = "connection";
constexpr std::uint64_t kLongestStep = 2'000;  // microseconds between the check and the handler's first line

}  // namespace

LaneRoom ModelledRunner::Room(const std::string&, const AttemptHost&, std::uint32_t) {
  return {queue_.size() > parts_.model.room / 2 ? 0 : parts_.model.room - queue_.size()};
}

Micros ModelledRunner::BusyFor() {
  Micros longest{0};
  for (const Place& place : places_) longest = std::max(longest, place.busy_until - parts_.timeline.Now());
  return longest;
}

bool ModelledRunner::Take(const std::string&, std::vector<AttemptPtr>& attempts) {
  for (AttemptPtr& attempt : attempts) {
    queue_.push_back({std::move(attempt), parts_.timeline.Now()});
    WakeOne();
  }
  return true;
}

void ModelledRunner::WakeOne() {
  for (Place& place : places_) {
    if (!place.resting) continue;
    place.resting = false;
    parts_.timeline.After(kWaking, &parts_.process.On(place.thread), [this, &place] { Next(place); });
    return;
  }
}

void ModelledRunner::SendBackUnwanted() {
  for (Queued& queued : std::exchange(queue_, {})) {
    if (queued.attempt->host->StartDecisionOf(*queued.attempt) == StartDecision::Start) {
      queue_.push_back(std::move(queued));
    } else {
      GiveBack(queued.attempt);
    }
  }
}

void ModelledRunner::GiveBackQueued() {
  for (const Queued& queued : std::exchange(queue_, {})) GiveBack(queued.attempt);
}

void ModelledRunner::Watch() {
  const BootTime now = parts_.timeline.Now();
  for (Place& place : places_) {
    if (!place.running) continue;
    const bool asked = place.running->stop_by.load() != 0;
    if ((asked || !place.running->lease->Alive()) && std::exchange(place.heeds, false)) {
      parts_.timeline.After(kWaking, &parts_.process.On(place.thread),
                            [this, &place, run = place.run] { Return(place, run); });
    } else if (asked && now >= BootTime(Micros(place.running->stop_by.load()))) {
      const AttemptPtr attempt = std::exchange(place.running, nullptr);
      attempt->given_up.store(true);
      parts_.checks.GivenUp(place.run);
      attempt->host->Ended({attempt, Settle({}, attempt->task, GivenBack(), 0)});
    }
  }
  StartsAgain();
}

std::size_t ModelledRunner::ShardOf(const Attempt& attempt) const {
  return static_cast<std::size_t>(std::find(parts_.shards.begin(), parts_.shards.end(), attempt.shard) -
                                  parts_.shards.begin());
}

std::optional<ModelledRunner::Queued> ModelledRunner::TakeNext() {
  for (auto next = queue_.begin(); next != queue_.end(); ++next) {
    std::vector<AttemptPtr> one{next->attempt};
    if (!TakeStarts(one, parts_.timeline.Now()).empty()) continue;
    Queued taken = std::move(*next);
    queue_.erase(next);
    return taken;
  }
  return std::nullopt;
}

void ModelledRunner::Next(Place& place) {
  while (std::optional<Queued> queued = TakeNext()) {
    const AttemptPtr& attempt = queued->attempt;
    if (queue_.size() == parts_.model.room / 2) attempt->host->RoomAgain();
    if (!Starts(attempt)) continue;
    const Micros step(static_cast<std::int64_t>(parts_.timeline.random().Below(kLongestStep)));
    parts_.timeline.After(step, &parts_.process.On(place.thread),
                          [this, &place, queued = std::move(*queued)] { Run(place, queued); });
    return;
  }
  place.resting = true;
}

bool ModelledRunner::Starts(const AttemptPtr& attempt) {
  const BootTime now = parts_.timeline.Now();
  BreakerPolicy* const breaker = attempt->gate ? attempt->gate->breaker() : nullptr;
  const bool open = breaker != nullptr && breaker->View(now).open;
  if (!ReadyToStart(attempt, RetryOf(*attempt), now)) return false;
  if (open && !attempt->pass.Mark().probe) {
    parts_.journal.Violation("task " + ToString(attempt->task.key) +
                             " may start and is no probe, though the breaker of " + attempt->task.handler +
                             " is open");
  }
  if (const auto& hours = config_->HandlerFor(attempt->task.handler).hours) {
    const std::string closed = ClosedBy(*hours, TimelineClock(parts_.timeline).WallNow());
    if (!closed.empty())
      parts_.journal.Violation("task " + ToString(attempt->task.key) + " may start, " + closed);
  }
  const std::string& life = attempt->lease->incarnation();
  if (!parts_.databases[ShardOf(*attempt)].checked().MayStart(life)) {
    parts_.journal.Violation("task " + ToString(attempt->task.key) + " may start under " + life +
                             ", which is marked dead");
  }
  return true;
}

void ModelledRunner::Run(Place& place, const Queued& queued) {
  const AttemptPtr& attempt = queued.attempt;
  attempt->started.store(true);
  if (parts_.model.forgets_in_flight) {
    const TaskKey& key = attempt->task.key;
    static_cast<Attempts&>(*attempt->host).in_flight().Leave(key.table, std::array{key.id});
  }
  const auto longest = static_cast<std::uint64_t>(parts_.model.longest_run.count());
  const Micros took(static_cast<std::int64_t>(parts_.timeline.random().Below(longest)));
  place.busy_until = parts_.timeline.Now() + took;
  place.running = attempt;
  place.heeds = !Percent(parts_.model.deaf);
  const auto& limit = config_->HandlerFor(attempt->task.handler).limit;
  place.run = parts_.checks.Began({.process = &parts_.process,
                                   .shard = ShardOf(*attempt),
                                   .task = attempt->task.key,
                                   .attempt = attempt->task.attempt,
                                   .type = attempt->task.handler,
                                   .life = attempt->lease->incarnation(),
                                   .home = attempt->home ? attempt->home->incarnation() : "",
                                   .thread = place.thread,
                                   .handed = queued.since,
                                   .limit = limit.value_or(LimitConfig{})});
  parts_.timeline.After(took, &parts_.process.On(place.thread),
                        [this, &place, run = place.run] { Return(place, run); });
}

// A run that was asked to stop has returned already when its time comes.
void ModelledRunner::Return(Place& place, std::uint64_t run) {
  if (place.run != run) return;
  parts_.checks.Returned(std::exchange(place.run, 0));
  const AttemptPtr attempt = std::exchange(place.running, nullptr);
  if (!attempt) {  // it was given up
    Next(place);
    return;
  }
  if (parts_.model.frees_before_settle && attempt->home) parts_.admission.permits()->Ended(*attempt);
  if (Percent(parts_.model.with_sql)) {
    EndWithSql(place, attempt, attempt->stop_by.load() == 0 ? Ran(*attempt) : GivenBack());
  } else {
    End(attempt, Ran(*attempt));
    Next(place);
  }
}

void ModelledRunner::EndWithSql(Place& place, const AttemptPtr& attempt, const Outcome& outcome) {
  CallEnd end;
  end.state = TransactionState::Open;
  end.tasks.push_back({.outcome = outcome.kind, .sent = true, .kept = true});
  const bool spoiled = parts_.model.snooze_commits && outcome.kind == OutcomeKind::Snooze;
  if (!Decide(end).commit && !spoiled) {
    End(attempt, outcome);
    Next(place);
    return;
  }
  const Settlement sent = Settle(RetryOf(*attempt), attempt->task, outcome, parts_.timeline.random().Unit());
  const std::size_t shard = ShardOf(*attempt);
  parts_.databases[shard].Write<Result<CommitVerdict>>(
      parts_.process.databases.at(shard), parts_.process.On(place.thread),
      [life = attempt->lease->incarnation(), sent](CheckedShard& shard) { return shard.Commit(life, sent); },
      [this, &place, attempt, end, sent](const Result<CommitVerdict>& verdict) {
        Committed(attempt, end, sent, verdict);
        Next(place);
      });
}

void ModelledRunner::Committed(const AttemptPtr& attempt, CallEnd end, const Settlement& sent,
                               const Result<CommitVerdict>& verdict) {
  if (verdict && *verdict == CommitVerdict::Committed) {
    attempt->host->Settled(*attempt, sent);
    return;
  }
  const Settlement again = Settle({}, attempt->task, GivenBack(), 0);
  if (!verdict && verdict.error().code == ErrorCode::Unknown) {
    attempt->host->Ended({attempt, again, true, std::make_shared<const Settlement>(sent)});
    return;
  }
  end.last_run = true;
  const Decision after = AfterCommit(end, verdict ? *verdict : CommitVerdict::Unavailable);
  if (after.next != engine::Next::Settle || after.endings.at(0) != Ending::GivenBack) {
    parts_.journal.Violation("task " + ToString(attempt->task.key) +
                             " is not given back though its transaction was rolled back");
  }
  attempt->host->Ended({attempt, again});
}

RetryPolicy ModelledRunner::RetryOf(const Attempt& attempt) const {
  RetryPolicy retry = config_->HandlerFor(attempt.task.handler).retry;
  if (parts_.model.gives_up_early) retry.max_failures = 1;
  return retry;
}

Outcome ModelledRunner::Ran(const Attempt& attempt) {
  Outcome outcome = Draw(attempt.task.handler);
  parts_.databases[ShardOf(attempt)].checked().Said(attempt.lease->incarnation(), attempt.task.key,
                                                    attempt.task.attempt, outcome.kind);
  return outcome;
}

Outcome ModelledRunner::Draw(const std::string& type) {
  if (parts_.broken(type) && !Percent(kAnswersAllTheSame)) {
    return FailedOnce("its partner is broken", kPartnerClass);
  }
  Outcome outcome;
  const auto dice = parts_.timeline.random().Below(100);
  if (dice < parts_.model.retries) {
    outcome.kind = OutcomeKind::Retry;
  } else if (dice < parts_.model.retries + parts_.model.snoozes) {
    outcome.kind = OutcomeKind::Snooze;
    outcome.delay = std::chrono::milliseconds(500);
  }
  return outcome;
}

// What ends while the breaker is open is nobody's failure but the partner's; the one that opens it is
// charged.
void ModelledRunner::End(const AttemptPtr& attempt, const Outcome& outcome) {
  const BootTime now = parts_.timeline.Now();
  const double unit = parts_.timeline.random().Unit();
  BreakerPolicy* const breaker = attempt->gate ? attempt->gate->breaker() : nullptr;
  const bool open = breaker != nullptr && attempt->pass.Given() && breaker->View(now).open;
  Settlement end = EndOf(*attempt, RetryOf(*attempt), outcome, unit, now);
  if (parts_.model.charges_failures) end = Settle(RetryOf(*attempt), attempt->task, outcome, unit);
  if (open && end.failed_attempt && end.error_class == kPartnerClass) {
    parts_.journal.Violation("a failure is charged to task " + ToString(attempt->task.key) +
                             (attempt->pass.Mark().probe ? ", which is a probe" : "") +
                             ", though the breaker of " + attempt->task.handler + " is open");
  }
  attempt->host->Ended({attempt, std::move(end)});
}

}  // namespace millrace::engine
