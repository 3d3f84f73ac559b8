#include "framework/worker/attempt.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr int kUncountedRuns = 3;  // after a deadlock or a lock wait
constexpr Micros kRunAgainLater = std::chrono::seconds(1);

bool WantsCommit(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::Done || outcome.kind == OutcomeKind::Skip ||
         outcome.kind == OutcomeKind::Snooze;
}

Outcome GiveBack(std::string why, Micros delay) {
  Outcome outcome;
  outcome.kind = OutcomeKind::GiveBack;
  outcome.text = std::move(why);
  outcome.delay = delay;
  return outcome;
}

Outcome RetryFor(std::string why, std::string error_class) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Retry;
  outcome.text = std::move(why);
  outcome.error_class = std::move(error_class);
  return outcome;
}

Outcome FailWith(std::string why, std::string error_class) {
  Outcome outcome = RetryFor(std::move(why), std::move(error_class));
  outcome.kind = OutcomeKind::Fail;
  return outcome;
}

Outcome Escaped(const std::string& how) {
  return FailWith("may have taken effect: its transaction was ended behind the context's back (" + how +
                      "); look at what it wrote before you retry it",
                  "escaped");
}

// As the plugin's side reports an exception: for the whole call, since it can't know whose it was.
bool Threw(const Outcome& outcome) {
  return outcome.error_class == "exception" || outcome.error_class == "bad_params";
}

}  // namespace

bool AttemptRunner::Run(const std::vector<FlightPtr>& flights, TaskTransaction& transaction) {
  for (int run = 0; run < kUncountedRuns; ++run) {
    const Next next = RunOnce(flights, transaction);
    if (next != Next::RunAgain) return next != Next::OneByOne;
    if (flights.front()->host.StopAsked() || !flights.front()->standing->MayStart(clock_.Now())) break;
  }
  LandAll(flights, GiveBack("its transaction met locks of others", kRunAgainLater));
  return true;
}

AttemptRunner::Next AttemptRunner::RunOnce(const std::vector<FlightPtr>& flights,
                                           TaskTransaction& transaction) {
  std::vector<Task> tasks;
  tasks.reserve(flights.size());
  for (const FlightPtr& flight : flights) tasks.push_back(flight->task);
  if (transaction.state() != TransactionState::Idle) transaction.Rollback();  // what an earlier call left
  const BootTime deadline = clock_.Now() + config_.timeout;
  Call call(clock_, flights, transaction, deadline);
  watch_.Begin(flights, deadline);
  std::vector<Outcome> outcomes = handler_.Run(flights.front()->shard, tasks, call);
  if (!watch_.Finish()) {
    transaction.Rollback();
    return Next::GivenUp;
  }
  return Conclude(flights, std::move(outcomes), call.sql_error(), transaction);
}

AttemptRunner::Next AttemptRunner::Conclude(const std::vector<FlightPtr>& flights,
                                            std::vector<Outcome> outcomes, const std::string& sql_error,
                                            TaskTransaction& transaction) {
  for (std::size_t i = 0; i < flights.size(); ++i)
    outcomes[i] = Adjusted(*flights[i], std::move(outcomes[i]));
  const TransactionState state = transaction.state();
  if (state == TransactionState::Open && std::any_of(outcomes.begin(), outcomes.end(), WantsCommit)) {
    return Commit(flights, outcomes, transaction);
  }
  const bool threw = flights.size() > 1 && std::any_of(outcomes.begin(), outcomes.end(), Threw);
  if (state != TransactionState::Idle) {
    const bool intact = transaction.Intact();
    transaction.Rollback();
    if (!intact) {
      LandAll(flights, Escaped("found when it was rolled back"));
      return Next::Ended;
    }
  }
  if (state == TransactionState::Transient) return Next::RunAgain;
  if (threw) return Next::OneByOne;  // one of them threw, and all of them were told so
  if (state == TransactionState::Poisoned || state == TransactionState::Lost) {
    if (flights.size() > 1) return Next::OneByOne;
    // Nothing was committed, whatever the handler says of it. While the shard itself is away the attempt is
    // nobody's fault; otherwise it is this task's SQL.
    if (state == TransactionState::Lost && !flights.front()->standing->MayStart(clock_.Now())) {
      outcomes.front() = GiveBack("the database went away: " + sql_error, kRunAgainLater);
    } else if (WantsCommit(outcomes.front())) {
      outcomes.front() = RetryFor("its transaction failed, nothing was committed: " + sql_error, "sql");
    }
  }
  LandAll(flights, outcomes);
  return Next::Ended;
}

AttemptRunner::Next AttemptRunner::Commit(const std::vector<FlightPtr>& flights,
                                          const std::vector<Outcome>& outcomes,
                                          TaskTransaction& transaction) {
  std::vector<Settlement> batch;
  batch.reserve(flights.size());
  for (std::size_t i = 0; i < flights.size(); ++i) {
    batch.push_back(Settle(config_.retry, flights[i]->task, outcomes[i], random_.Unit()));
  }
  const CommitReport report = transaction.Commit(flights.front()->standing->incarnation(), batch);
  switch (report.verdict) {
    case CommitVerdict::Committed:
      for (std::size_t i = 0; i < flights.size(); ++i) flights[i]->host.Settled(*flights[i], batch[i]);
      return Next::Ended;
    case CommitVerdict::Transient:
      return Next::RunAgain;
    case CommitVerdict::Refused:
      if (flights.size() > 1) return Next::OneByOne;
      // Its SQL is rolled back; the settler finds and counts the refusal.
      LandAll(flights, GiveBack("the attempt was no longer this worker's", Micros(0)));
      return Next::Ended;
    case CommitVerdict::Broken:
      if (flights.size() > 1) return Next::OneByOne;
      LandAll(flights, RetryFor("nothing was committed: " + report.message, "sql"));
      return Next::Ended;
    case CommitVerdict::Escaped:
      LandAll(flights, Escaped(report.message));
      return Next::Ended;
    case CommitVerdict::Unavailable:
      LandAll(flights, GiveBack("the database went away: " + report.message, kRunAgainLater));
      return Next::Ended;
    case CommitVerdict::Unknown:
      LandAll(flights, GiveBack("its commit was lost: " + report.message, Micros(0)), true);
      return Next::Ended;
  }
  return Next::Ended;
}

Outcome AttemptRunner::Adjusted(const Flight& flight, Outcome outcome) const {
  if (outcome.kind != OutcomeKind::Retry) return outcome;
  if (flight.cancel.load(std::memory_order_relaxed)) {
    outcome.kind = OutcomeKind::Cancel;
    outcome.text = "cancelled while it ran: " + outcome.text;
  } else if (flight.host.StopAsked()) {
    outcome.kind = OutcomeKind::GiveBack;  // cut short by the stop, not by itself
    outcome.at.reset();
    outcome.delay = Micros(0);
  } else if (outcome.error_class == "exception" && config_.on_exception == OnException::Fail) {
    outcome.kind = OutcomeKind::Fail;
  }
  return outcome;
}

void AttemptRunner::LandAll(const std::vector<FlightPtr>& flights, const std::vector<Outcome>& outcomes,
                            bool verify) {
  for (std::size_t i = 0; i < flights.size(); ++i) {
    flights[i]->host.Land(
        {flights[i], Settle(config_.retry, flights[i]->task, outcomes[i], random_.Unit()), verify});
  }
}

void AttemptRunner::LandAll(const std::vector<FlightPtr>& flights, const Outcome& outcome, bool verify) {
  LandAll(flights, std::vector<Outcome>(flights.size(), outcome), verify);
}

}  // namespace millrace
