#include "framework/worker/attempt.h"

#include <algorithm>

#include "framework/exec/signal.h"
#include "framework/worker/engine_outcome.h"

namespace millrace {
namespace {

constexpr int kUncountedRuns = 3;  // after a deadlock, a lock wait or a lost connection
constexpr Micros kLookForBeat = std::chrono::milliseconds(20);
constexpr Micros kRunAgainLater = std::chrono::seconds(1);

bool WantsCommit(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::Done || outcome.kind == OutcomeKind::Skip ||
         outcome.kind == OutcomeKind::Snooze;
}

Outcome Escaped(const std::string& how) {
  return FailedForGood("may have taken effect: its transaction was ended behind the context's back (" + how +
                           "); look at what it wrote before you retry it",
                       "escaped");
}

// As the plugin's side reports an exception: for the whole call, since it can't know whose it was.
bool Threw(const Outcome& outcome) {
  return outcome.error_class == "exception" || outcome.error_class == "bad_params";
}

// A failed attempt as the engine sees it: it may have been asked to end, or its exception be final.
Outcome Adjusted(const Flight& flight, OnException on_exception, Outcome outcome) {
  if (outcome.kind != OutcomeKind::Retry) return outcome;
  if (flight.cancel.load(std::memory_order_relaxed)) {
    outcome.kind = OutcomeKind::Cancel;
    outcome.text = "cancelled while it ran: " + outcome.text;
  } else if (flight.host->StopAsked()) {
    outcome.kind = OutcomeKind::GiveBack;  // cut short by the stop, not by itself
    outcome.at.reset();
    outcome.delay = Micros(0);
  } else if (outcome.error_class == "exception" && on_exception == OnException::Fail) {
    outcome.kind = OutcomeKind::Fail;
  }
  return outcome;
}

}  // namespace

bool AttemptRunner::Run(const LaneSetup& setup, const std::vector<FlightPtr>& flights,
                        TaskTransaction& transaction) {
  Round round{setup, flights, transaction};
  for (int run = 1; run <= kUncountedRuns; ++run) {
    round.last = run == kUncountedRuns;
    const Next next = RunOnce(round);
    if (next != Next::RunAgain) return next != Next::OneByOne;
    if (flights.front()->host->StopAsked() || !flights.front()->standing->MayStart(clock_.Now())) break;
  }
  LandAll(round, GivenBack("its transaction met locks of others or a lost connection", kRunAgainLater));
  return true;
}

AttemptRunner::Next AttemptRunner::RunOnce(const Round& round) {
  const auto& [setup, flights, transaction, last] = round;
  std::vector<const Task*> tasks;
  tasks.reserve(flights.size());
  for (const FlightPtr& flight : flights) tasks.push_back(&flight->task);
  if (transaction.state() != TransactionState::Idle) transaction.Rollback();  // what an earlier call left
  const BootTime deadline = clock_.Now() + setup.config.timeout;
  Call call(clock_, flights, transaction, deadline);
  watch_.Begin(flights, deadline);
  std::vector<Outcome> outcomes = setup.handler->Run(flights.front()->shard, tasks, call);
  if (!watch_.Finish()) {
    transaction.Rollback();
    return Next::GivenUp;
  }
  return Conclude(round, std::move(outcomes), call.sql_error());
}

AttemptRunner::Next AttemptRunner::Conclude(const Round& round, std::vector<Outcome> outcomes,
                                            const std::string& sql_error) {
  const auto& [setup, flights, transaction, last] = round;
  for (std::size_t i = 0; i < flights.size(); ++i)
    outcomes[i] = Adjusted(*flights[i], setup.config.on_exception, std::move(outcomes[i]));
  const TransactionState state = transaction.state();
  if (state == TransactionState::Open && std::any_of(outcomes.begin(), outcomes.end(), WantsCommit)) {
    return Commit(round, outcomes);
  }
  const bool threw = flights.size() > 1 && std::any_of(outcomes.begin(), outcomes.end(), Threw);
  if (state != TransactionState::Idle) {
    const bool intact = transaction.Intact();
    transaction.Rollback();
    if (!intact) {
      LandAll(round, Escaped("found when it was rolled back"));
      return Next::Ended;
    }
  }
  if (state == TransactionState::Transient) return Next::RunAgain;
  if (threw) return Next::OneByOne;  // one of them threw, and all of them were told so
  if (state == TransactionState::Poisoned || state == TransactionState::Lost) {
    if (flights.size() > 1) return Next::OneByOne;
    // Nothing was committed, whatever the handler says of it. While the shard is away, or takes no writes,
    // the attempt is nobody's fault; if the shard answers time and again, it is this task's SQL.
    if (state == TransactionState::Lost && !ShardAnswers(*flights.front())) {
      outcomes.front() = GivenBack("the database went away: " + sql_error, kRunAgainLater);
    } else if (state == TransactionState::Lost && !last && outcomes.front().kind != OutcomeKind::Cancel) {
      return Next::RunAgain;
    } else if (WantsCommit(outcomes.front())) {
      outcomes.front() = FailedOnce("its transaction failed, nothing was committed: " + sql_error, "sql");
    }
  }
  LandAll(round, outcomes);
  return Next::Ended;
}

// A connection is lost before the beat knows that its shard is away: waits for the next beat to tell.
bool AttemptRunner::ShardAnswers(const Flight& flight) const {
  const BootTime failed = clock_.Now();
  Signal pause;
  while (!flight.standing->RenewedSince(failed)) {
    const BootTime now = clock_.Now();
    if (flight.host->StopAsked() || !flight.standing->Alive() || flight.standing->IsLate(now)) return false;
    pause.WaitFor(kLookForBeat);
  }
  return true;
}

AttemptRunner::Next AttemptRunner::Commit(const Round& round, const std::vector<Outcome>& outcomes) {
  const auto& [setup, flights, transaction, last] = round;
  std::vector<Settlement> batch;
  batch.reserve(flights.size());
  for (std::size_t i = 0; i < flights.size(); ++i) {
    batch.push_back(Settle(setup.config.retry, flights[i]->task, outcomes[i], random_.Unit()));
  }
  const CommitReport report = transaction.Commit(flights.front()->standing->incarnation(), batch);
  switch (report.verdict) {
    case CommitVerdict::Committed:
      for (std::size_t i = 0; i < flights.size(); ++i) flights[i]->host->Settled(*flights[i], batch[i]);
      return Next::Ended;
    case CommitVerdict::Transient:
      return Next::RunAgain;
    case CommitVerdict::Refused:
      if (flights.size() > 1) return Next::OneByOne;
      // Its SQL is rolled back; the settler finds and counts the refusal.
      LandAll(round, GivenBack("the attempt was no longer this worker's"));
      return Next::Ended;
    case CommitVerdict::Broken:
      if (flights.size() > 1) return Next::OneByOne;
      LandAll(round, FailedOnce("nothing was committed: " + report.message, "sql"));
      return Next::Ended;
    case CommitVerdict::Escaped:
      LandAll(round, Escaped(report.message));
      return Next::Ended;
    case CommitVerdict::Unavailable:
      LandAll(round, GivenBack("the database went away: " + report.message, kRunAgainLater));
      return Next::Ended;
    case CommitVerdict::Unknown:
      for (std::size_t i = 0; i < flights.size(); ++i) {
        const Outcome again = GivenBack("its commit was lost: " + report.message);
        flights[i]->host->Land({flights[i], Settle({}, flights[i]->task, again, 0), true, batch[i]});
      }
      return Next::Ended;
  }
  return Next::Ended;
}

void AttemptRunner::LandAll(const Round& round, const std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < round.flights.size(); ++i) {
    const FlightPtr& flight = round.flights[i];
    flight->host->Land({flight, Settle(round.setup.config.retry, flight->task, outcomes[i], random_.Unit())});
  }
}

void AttemptRunner::LandAll(const Round& round, const Outcome& outcome) {
  LandAll(round, std::vector<Outcome>(round.flights.size(), outcome));
}

}  // namespace millrace
