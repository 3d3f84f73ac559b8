#include "framework/worker/attempt_runner.h"

#include <algorithm>

#include "framework/mill/attempt.h"
#include "framework/mill/mill_counters.h"
#include "framework/plugin/handler_instance.h"
#include "framework/threads/signal.h"

namespace millrace::engine {
namespace {

constexpr int kUncountedRuns = 3;  // after a deadlock, a lock wait or a lost connection
constexpr Micros kLookForBeat = std::chrono::milliseconds(20);
constexpr Micros kRunAgainLater = std::chrono::seconds(1);

Outcome GivenBackAfter(TransactionState state, const std::string& why) {
  if (state == TransactionState::Open) return GivenBack("the attempt was no longer this worker's");
  if (state == TransactionState::Escaped) {
    return GivenBack("a task that shared its call ended their transaction; this one had sent no SQL");
  }
  const std::string met = state == TransactionState::Transient ? "its transaction met locks of others: "
                                                               : "the database could not be had: ";
  return GivenBack(met + why, kRunAgainLater);
}

// How a task ends by the policy's word, `state` being its call's transaction and `why` the first error of its
// SQL or commit.
Outcome EndedBy(Ending ending, TransactionState state, const std::string& why, Outcome said) {
  switch (ending) {
    case Ending::AsSaid:
      return said;
    case Ending::Failed:
      return FailedOnce("its transaction failed, nothing was committed: " + why, "sql");
    case Ending::GivenBack:
      return GivenBackAfter(state, why);
    case Ending::InDoubt:
      break;
  }
  return FailedForGood("may have taken effect: its transaction was ended behind the context's back (" + why +
                           "); look at what it wrote before you retry it",
                       kEscapedClass);
}

// A failed attempt as the engine sees it: it may have been asked to end, or its exception be final. `over`:
// the time limit, where the handler came back after it: then that is why, whatever else it says, unless it
// failed the task for good with a class of its own.
Outcome Adjusted(const Attempt& attempt, OnException on_exception, std::optional<Micros> over,
                 Outcome outcome) {
  if (outcome.kind != OutcomeKind::Retry) return outcome;
  if (attempt.cancel.load(std::memory_order_relaxed)) {
    outcome.kind = OutcomeKind::Cancel;
    outcome.text = "cancelled while it ran: " + outcome.text;
  } else if (attempt.host->StopAsked() || attempt.stop_by.load(std::memory_order_relaxed) != 0) {
    outcome.kind = OutcomeKind::GiveBack;  // cut short by the stop, not by itself
    outcome.at.reset();
    outcome.delay = Micros(0);
  } else if (outcome.error_class == "exception" && on_exception != OnException::Retry) {
    outcome.kind = on_exception == OnException::Fail ? OutcomeKind::Fail : OutcomeKind::Hold;
  }
  const bool for_good =
      outcome.kind == OutcomeKind::Fail && !outcome.error_class.empty() && outcome.error_class != "exception";
  if (over && RuleOf(outcome.kind).failed_attempt && !for_good) {
    outcome.error_class = "timeout";
    outcome.text = "ran over its time limit of " + FormatDuration(*over) +
                   (outcome.text.empty() ? "" : ": " + outcome.text);
  }
  return outcome;
}

// What was written of a former attempt goes with the task's row when that is pruned; and whoever meets its
// key, or fired it by a schedule, looks for the row.
bool IsNamedElsewhere(const Settlement& end) { return end.attempt > 1 || !end.biz_key.empty(); }

// By the time of their COMMIT others may run what only one may.
void WithdrawWithoutPermit(const std::vector<AttemptPtr>& attempts, std::vector<Outcome>& outcomes) {
  const bool withdrawn = std::any_of(attempts.begin(), attempts.end(), [](const AttemptPtr& attempt) {
    return attempt->stop_by.load(std::memory_order_relaxed) != 0;
  });
  if (!withdrawn) return;
  for (Outcome& outcome : outcomes) {
    outcome = GivenBack("its permit could not be counted upon any more; its SQL was rolled back");
  }
}

std::vector<CallPart> Singles(const std::vector<AttemptPtr>& attempts) {
  std::vector<CallPart> parts;
  for (const AttemptPtr& attempt : attempts) parts.push_back({{attempt}});
  return parts;
}

// Within the one time limit: where too little of it is left for half of the call, each task runs alone. So do
// two or three: halves of them would save nothing.
std::vector<CallPart> Halves(const std::vector<AttemptPtr>& attempts, BootTime began, BootTime ended,
                             BootTime deadline) {
  if (attempts.size() < 4 || deadline - ended < ended - began) return Singles(attempts);
  const auto middle = attempts.begin() + static_cast<std::ptrdiff_t>(attempts.size() / 2);
  return {{{attempts.begin(), middle}, deadline}, {{middle, attempts.end()}, deadline}};
}

}  // namespace

WorkerContext::WorkerContext(const Clock& clock, CallWatch& watch, std::span<const AttemptPtr> attempts,
                             TaskTransaction& transaction, BootTime deadline)
    : clock_(clock),
      watch_(watch),
      attempts_(attempts),
      transaction_(transaction, attempts.size(), attempts.front()->task.key.table),
      deadline_(deadline) {}

bool WorkerContext::ShouldStop() const {
  if (attempts_.front()->host->StopAsked() || clock_.Now() >= deadline_) return true;
  // A batch is one transaction: it goes on while any of its tasks is still wanted.
  return std::all_of(attempts_.begin(), attempts_.end(), [](const AttemptPtr& attempt) {
    return attempt->cancel.load(std::memory_order_relaxed) || !attempt->lease->Alive() ||
           attempt->stop_by.load(std::memory_order_relaxed) != 0;
  });
}

Micros WorkerContext::TimeLeft() const { return std::max(Micros(0), deadline_ - clock_.Now()); }

void WorkerContext::Log(std::size_t index, LogLevel level, std::string_view message) {
  const Attempt& attempt = *attempts_[index];
  attempt.host->Log(attempt, level, Shorten(message));
}

Status WorkerContext::SaveProgress(std::size_t index, std::string_view progress) {
  if (index >= attempts_.size()) {
    return Fail(ErrorCode::Invalid, "this call has no task " + std::to_string(index));
  }
  if (progress.size() > kMaxText) {
    return Fail(ErrorCode::Invalid, "progress is limited to " + std::to_string(kMaxText) + " bytes");
  }
  watch_.Save(*attempts_[index], std::string(progress));
  return {};
}

Micros GraceAfter(Micros timeout) {
  return std::clamp<Micros>(timeout / 10, std::chrono::seconds(1), std::chrono::seconds(10));
}

std::vector<CallPart> AttemptRunner::Run(const LaneSetup& setup, const CallPart& part,
                                         TaskTransaction& transaction) {
  for (Round round{setup, part.attempts, transaction};; ++round.run) {
    round.began = clock_.Now();
    round.deadline = part.deadline.value_or(round.began + setup.config.timeout);
    switch (RunOnce(round)) {
      case Next::Settle:
        return {};
      case Next::RunAgain:
        if (TypeCounters* type = part.attempts.front()->counters) type->run_again.Add();
        break;
      case Next::OneByOne:
        return Singles(part.attempts);
      case Next::Halve:
        return Halves(part.attempts, round.began, clock_.Now(), round.deadline);
    }
  }
}

Next AttemptRunner::RunOnce(const Round& round) {
  const auto& [setup, attempts, transaction, run, began, deadline] = round;
  std::vector<const Task*> tasks;
  tasks.reserve(attempts.size());
  for (const AttemptPtr& attempt : attempts) tasks.push_back(&attempt->task);
  if (transaction.state() != TransactionState::Idle) transaction.Rollback();  // what an earlier call left
  WorkerContext call(clock_, watch_, attempts, transaction, deadline);
  watch_.Begin(attempts, began, deadline);
  std::vector<Outcome> outcomes = setup.handler->Run(attempts.front()->shard, tasks, call);
  const BootTime ended = clock_.Now();
  const auto over = ended >= deadline ? std::optional(setup.config.timeout) : std::nullopt;
  bool overran = false;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    outcomes[i] = Adjusted(*attempts[i], setup.config.on_exception, over, std::move(outcomes[i]));
    overran =
        overran || (over && RuleOf(outcomes[i].kind).failed_attempt && outcomes[i].error_class == "timeout");
    outcomes[i] = AskNextRetry(*setup.handler, setup.config, attempts[i]->shard, attempts[i]->task,
                               std::move(outcomes[i]), random_.Unit());
  }
  if (!watch_.Finish(ended)) {  // not before: NextRetry is foreign code as well, and may hang
    transaction.Rollback();
    return Next::Settle;  // the watchdog has ended them
  }
  if (transaction.state() != TransactionState::Idle) WithdrawWithoutPermit(attempts, outcomes);
  CallEnd end = call.transaction().End(outcomes);
  const bool away = end.state == TransactionState::Lost || end.state == TransactionState::NoConnection;
  // Without a connection the next call would fare no better: the wait for the beat spares it, too.
  if (away && !ShardAnswers(*attempts.front())) end.state = TransactionState::NoConnection;
  end.overran = overran;
  end.last_run = !MayRunAgain(round);
  const Decision decision = Decide(end);
  const std::string& sql_error = call.transaction().error();
  if (decision.commit) return Commit(round, end, decision, sql_error, std::move(outcomes));
  if (end.state != TransactionState::Idle) {
    watch_.EndsTransaction();
    transaction.Rollback();
  }
  return Apply(round, end, decision, sql_error, std::move(outcomes));
}

bool AttemptRunner::MayRunAgain(const Round& round) const {
  const Attempt& first = *round.attempts.front();
  return round.run < kUncountedRuns && !first.host->StopAsked() &&
         first.stop_by.load(std::memory_order_relaxed) == 0 && first.lease->MayStart(clock_.Now());
}

// A connection is lost before the beat knows that its shard is away: waits for the next beat to tell.
bool AttemptRunner::ShardAnswers(const Attempt& attempt) const {
  const BootTime failed = clock_.Now();
  Signal pause;
  while (!attempt.lease->RenewedSince(failed)) {
    const BootTime now = clock_.Now();
    if (attempt.host->StopAsked() || !attempt.lease->Alive() || attempt.lease->IsLate(now)) return false;
    pause.WaitFor(kLookForBeat);
  }
  return true;
}

Next AttemptRunner::Commit(const Round& round, CallEnd& end, const Decision& decision,
                           const std::string& sql_error, std::vector<Outcome> outcomes) {
  const auto& attempts = round.attempts;
  std::vector<Settlement> batch;
  batch.reserve(attempts.size());
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const Outcome outcome = EndedBy(decision.endings[i], end.state, sql_error, outcomes[i]);
    batch.push_back(SettlementOf(round, i, outcome));
    batch.back().progress = attempts[i]->host->UnsavedProgress(*attempts[i]);
  }
  watch_.EndsTransaction();
  const CommitReport report = round.transaction.Commit(attempts.front()->lease->incarnation(), batch);
  if (report.verdict == CommitVerdict::Committed) {
    for (std::size_t i = 0; i < attempts.size(); ++i) attempts[i]->host->Settled(*attempts[i], batch[i]);
    return Next::Settle;
  }
  if (report.verdict == CommitVerdict::Unknown) {
    Verify(round, batch, report.message);
    return Next::Settle;
  }
  const Decision after = AfterCommit(end, report.verdict);
  return Apply(round, end, after, report.message, std::move(outcomes));
}

void AttemptRunner::Verify(const Round& round, const std::vector<Settlement>& sent, const std::string& why) {
  for (std::size_t i = 0; i < round.attempts.size(); ++i) {
    const AttemptPtr& attempt = round.attempts[i];
    const Outcome again = GivenBack("its commit was lost: " + why);
    attempt->host->Ended(
        {attempt, Settle({}, attempt->task, again, 0), true, std::make_shared<const Settlement>(sent[i])});
  }
}

Next AttemptRunner::Apply(const Round& round, const CallEnd& end, const Decision& decision,
                          const std::string& why, std::vector<Outcome> outcomes) {
  if (decision.next != Next::Settle) return decision.next;
  for (std::size_t i = 0; i < round.attempts.size(); ++i) {
    const AttemptPtr& attempt = round.attempts[i];
    const Outcome outcome = EndedBy(decision.endings[i], end.state, why, std::move(outcomes[i]));
    attempt->host->Ended({attempt, SettlementOf(round, i, outcome)});
  }
  return Next::Settle;
}

Settlement AttemptRunner::SettlementOf(const Round& round, std::size_t index, const Outcome& outcome) {
  const HandlerConfig& config = round.setup.config;
  Settlement end = EndOf(*round.attempts[index], config.retry, outcome, random_.Unit(), clock_.Now());
  end.kept = config.KeepsFinished() || IsNamedElsewhere(end);
  return end;
}

}  // namespace millrace::engine
