#include "framework/task/transaction_policy.h"

#include <algorithm>
#include <optional>

namespace millrace::engine {
namespace {

bool IsDone(const TaskEnd& task) { return task.outcome == OutcomeKind::Done; }

// The engine has ended it already, for a reason of its own: a cancel, or a stop.
bool IsEnded(const TaskEnd& task) {
  return task.outcome == OutcomeKind::Cancel || task.outcome == OutcomeKind::GiveBack;
}

Decision Again(Next next) { return {false, next, {}}; }

// Every task ends, by what `ending` says of it.
template <class EndingOf>
Decision Settled(const CallEnd& call, bool commit, EndingOf ending) {
  Decision decision{commit, Next::Settle, {}};
  for (const TaskEnd& task : call.tasks) decision.endings.push_back(ending(task));
  return decision;
}

Decision AsSaid(const CallEnd& call, bool commit) {
  return Settled(call, commit, [](const TaskEnd&) { return Ending::AsSaid; });
}

Decision GivenBack(const CallEnd& call) {
  return Settled(call, false,
                 [](const TaskEnd& task) { return IsEnded(task) ? Ending::AsSaid : Ending::GivenBack; });
}

// What it says of its work is not true: its SQL is rolled back.
Decision NothingCommitted(const CallEnd& call) {
  return Settled(call, false,
                 [](const TaskEnd& task) { return IsDone(task) ? Ending::Failed : Ending::AsSaid; });
}

bool Alone(const CallEnd& call) { return call.tasks.size() == 1; }

// The call is rolled back, and whose fault that was must show.
Decision Apart(const CallEnd& call) {
  if (Alone(call)) return NothingCommitted(call);
  return Again(call.style == CallStyle::Each ? Next::OneByOne : Next::Halve);
}

Decision InDoubt(const CallEnd& call) {
  const bool known = !Alone(call) && call.style == CallStyle::Each;
  return Settled(call, false, [known](const TaskEnd& task) {
    return known && !task.sent ? Ending::GivenBack : Ending::InDoubt;
  });
}

Decision AfterConflict(const CallEnd& call) {
  if (Alone(call) && IsEnded(call.tasks.front())) return AsSaid(call, false);
  if (!Alone(call) && call.style == CallStyle::Each) return Again(Next::OneByOne);
  return call.last_run ? GivenBack(call) : Again(Next::RunAgain);
}

Decision AfterLoss(const CallEnd& call) {
  const bool again = Alone(call) && !call.last_run && !IsEnded(call.tasks.front());
  return again ? Again(Next::RunAgain) : Apart(call);
}

// Its word on a task must agree with what became of the task's SQL, whenever it was given.
bool Agrees(const TaskEnd& task) {
  if (task.kept) return IsDone(task);
  return !task.sent || task.failed || !IsDone(task);
}

Decision OfEach(const CallEnd& call) {
  if (!std::all_of(call.tasks.begin(), call.tasks.end(), Agrees)) return Again(Next::OneByOne);
  const bool any = std::any_of(call.tasks.begin(), call.tasks.end(), [](const auto& t) { return t.kept; });
  return Settled(call, any, [](const TaskEnd& task) {
    return task.failed && IsDone(task) ? Ending::Failed : Ending::AsSaid;
  });
}

// Where the call as a whole failed or overran, nobody is charged for that beside others.
std::optional<Decision> OfCall(const CallEnd& call) {
  if (Alone(call)) return std::nullopt;
  if (call.threw) return Apart(call);
  if (call.overran) return Again(Next::OneByOne);
  return std::nullopt;
}

Decision OfOpen(const CallEnd& call) {
  const auto done = std::count_if(call.tasks.begin(), call.tasks.end(), IsDone);
  const bool all = done == static_cast<std::ptrdiff_t>(call.tasks.size());
  if (Alone(call)) return AsSaid(call, all);
  if (call.style == CallStyle::Each) return OfEach(call);
  // Where nobody says whose SQL it was, that of a task which is not done may be in it.
  if (call.style == CallStyle::Unsaid && done > 0 && !all) return Again(Next::OneByOne);
  return AsSaid(call, done > 0);
}

}  // namespace

Decision Decide(const CallEnd& call) {
  switch (call.state) {
    case TransactionState::Idle:
      return OfCall(call).value_or(AsSaid(call, false));
    case TransactionState::Open:
      return OfCall(call).value_or(OfOpen(call));
    case TransactionState::NoConnection:
      return GivenBack(call);
    case TransactionState::Transient:
      return AfterConflict(call);
    case TransactionState::Poisoned:
      return Apart(call);
    case TransactionState::Lost:
      return AfterLoss(call);
    case TransactionState::Escaped:
      break;
  }
  return InDoubt(call);
}

Decision AfterCommit(CallEnd& call, CommitVerdict verdict) {
  switch (verdict) {
    case CommitVerdict::Refused:
      // One of them is another worker's by now; alone, the settler finds and counts the refusal.
      return Alone(call) ? GivenBack(call) : Again(Next::OneByOne);
    case CommitVerdict::Transient:
      call.state = TransactionState::Transient;
      break;
    case CommitVerdict::Escaped:
      call.state = TransactionState::Escaped;
      break;
    case CommitVerdict::Broken:
      call.state = TransactionState::Poisoned;
      break;
    case CommitVerdict::Unavailable:
    case CommitVerdict::Unknown:
    case CommitVerdict::Committed:
      call.state = TransactionState::NoConnection;
      break;
  }
  return Decide(call);
}

}  // namespace millrace::engine
