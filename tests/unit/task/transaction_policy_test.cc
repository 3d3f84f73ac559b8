#include "framework/task/transaction_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace rc {

template <>
struct Arbitrary<millrace::engine::TaskEnd> {
  static Gen<millrace::engine::TaskEnd> arbitrary() {
    using millrace::engine::OutcomeKind;
    return gen::map(
        gen::tuple(gen::element(OutcomeKind::Done, OutcomeKind::Retry, OutcomeKind::Fail, OutcomeKind::Snooze,
                                OutcomeKind::Skip, OutcomeKind::GiveBack, OutcomeKind::Cancel),
                   gen::arbitrary<bool>(), gen::arbitrary<bool>(), gen::arbitrary<bool>()),
        [](const auto& all) {
          const auto [outcome, sent, kept, failed] = all;
          return millrace::engine::TaskEnd{outcome, sent, sent && kept, sent && !kept && failed};
        });
  }
};

template <>
struct Arbitrary<millrace::engine::CallEnd> {
  static Gen<millrace::engine::CallEnd> arbitrary() {
    using millrace::engine::CallStyle;
    using millrace::engine::TransactionState;
    return gen::build<millrace::engine::CallEnd>(
        gen::set(&millrace::engine::CallEnd::style,
                 gen::element(CallStyle::Unsaid, CallStyle::Together, CallStyle::Each)),
        gen::set(&millrace::engine::CallEnd::state,
                 gen::element(TransactionState::Idle, TransactionState::Open, TransactionState::NoConnection,
                              TransactionState::Transient, TransactionState::Poisoned, TransactionState::Lost,
                              TransactionState::Escaped)),
        gen::set(&millrace::engine::CallEnd::threw), gen::set(&millrace::engine::CallEnd::last_run),
        gen::set(&millrace::engine::CallEnd::overran),
        gen::set(&millrace::engine::CallEnd::tasks, gen::mapcat(gen::inRange(1, 6), [](int count) {
          return gen::container<std::vector<millrace::engine::TaskEnd>>(
              count, gen::arbitrary<millrace::engine::TaskEnd>());
        })));
  }
};

}  // namespace rc

namespace millrace::engine {
namespace {

bool Alone(const CallEnd& call) { return call.tasks.size() == 1; }
bool Is(const TaskEnd& task, OutcomeKind kind) { return task.outcome == kind; }

// Of the transaction that would be committed: whether SQL of a task that is not done may be in it.
bool HoldsOthersSql(const CallEnd& call) {
  const auto done = [](const TaskEnd& task) { return Is(task, OutcomeKind::Done); };
  const bool all = std::all_of(call.tasks.begin(), call.tasks.end(), done);
  if (Alone(call) || call.style == CallStyle::Unsaid) return !all;
  if (call.style == CallStyle::Together) return std::none_of(call.tasks.begin(), call.tasks.end(), done);
  return std::any_of(call.tasks.begin(), call.tasks.end(),
                     [&](const TaskEnd& task) { return task.kept && !done(task); });
}

RC_GTEST_PROP(TransactionPolicy, CommitsNothingButSqlOfTasksThatAreDone, (const CallEnd& call)) {
  const Decision decision = Decide(call);
  if (!decision.commit) return;
  RC_ASSERT(call.state == TransactionState::Open);
  RC_ASSERT(decision.next == Next::Settle);
  RC_ASSERT(!HoldsOthersSql(call));
  RC_ASSERT(Alone(call) || !call.threw);
}

RC_GTEST_PROP(TransactionPolicy, EndsEachTaskOrRunsThemAllAgain, (const CallEnd& call)) {
  const Decision decision = Decide(call);
  RC_ASSERT(decision.endings.size() == (decision.next == Next::Settle ? call.tasks.size() : 0));
  if (Alone(call)) RC_ASSERT(decision.next == Next::Settle || decision.next == Next::RunAgain);
  if (call.last_run) RC_ASSERT(decision.next != Next::RunAgain);
}

RC_GTEST_PROP(TransactionPolicy, RunsNothingAgainThatMayHaveTakenEffect, (CallEnd call)) {
  call.state = TransactionState::Escaped;
  const Decision decision = Decide(call);
  RC_ASSERT(!decision.commit);
  RC_ASSERT(decision.next == Next::Settle);
  for (std::size_t i = 0; i < call.tasks.size(); ++i) {
    const bool innocent = !Alone(call) && call.style == CallStyle::Each && !call.tasks[i].sent;
    RC_ASSERT(decision.endings[i] == (innocent ? Ending::GivenBack : Ending::InDoubt));
  }
}

RC_GTEST_PROP(TransactionPolicy, OnlyAnEarlyEndLeavesADoubt, (const CallEnd& call)) {
  if (call.state == TransactionState::Escaped) return;
  for (const Ending ending : Decide(call).endings) RC_ASSERT(ending != Ending::InDoubt);
}

// No task is charged for what happened to the call: only one that says it is done, whose own SQL failed.
RC_GTEST_PROP(TransactionPolicy, ChargesNoTaskForAnother, (const CallEnd& call)) {
  const Decision decision = Decide(call);
  for (std::size_t i = 0; i < decision.endings.size(); ++i) {
    if (decision.endings[i] != Ending::Failed) continue;
    RC_ASSERT(Is(call.tasks[i], OutcomeKind::Done));
    RC_ASSERT(Alone(call) || (call.style == CallStyle::Each && call.tasks[i].failed));
  }
}

RC_GTEST_PROP(TransactionPolicy, OfSeveralThatOverranTogetherEachRunsAlone, (CallEnd call)) {
  call.overran = true;
  call.threw = false;
  call.state = *rc::gen::element(TransactionState::Idle, TransactionState::Open);
  if (!Alone(call)) RC_ASSERT(Decide(call).next == Next::OneByOne);
}

RC_GTEST_PROP(TransactionPolicy, NothingIsDoneWhoseSqlIsNotCommitted, (const CallEnd& call)) {
  const Decision decision = Decide(call);
  if (decision.commit || call.state == TransactionState::Idle) return;
  for (std::size_t i = 0; i < decision.endings.size(); ++i) {
    if (!Is(call.tasks[i], OutcomeKind::Done) || decision.endings[i] != Ending::AsSaid) continue;
    RC_ASSERT(!Alone(call) && call.style == CallStyle::Each && !call.tasks[i].sent);
  }
}

RC_GTEST_PROP(TransactionPolicy, WithoutAConnectionNobodyIsCharged, (CallEnd call)) {
  call.state = TransactionState::NoConnection;
  const Decision decision = Decide(call);
  RC_ASSERT(decision.next == Next::Settle);
  for (std::size_t i = 0; i < call.tasks.size(); ++i) {
    const bool ended = Is(call.tasks[i], OutcomeKind::Cancel) || Is(call.tasks[i], OutcomeKind::GiveBack);
    RC_ASSERT(decision.endings[i] == (ended ? Ending::AsSaid : Ending::GivenBack));
  }
}

RC_GTEST_PROP(TransactionPolicy, AfterAFailedCommitNothingIsCommitted, (CallEnd call)) {
  call.state = TransactionState::Open;
  for (const CommitVerdict verdict :
       {CommitVerdict::Refused, CommitVerdict::Transient, CommitVerdict::Escaped, CommitVerdict::Broken,
        CommitVerdict::Unavailable}) {
    CallEnd ended = call;
    const Decision decision = AfterCommit(ended, verdict);
    RC_ASSERT(!decision.commit);
    if (verdict == CommitVerdict::Escaped) RC_ASSERT(decision.next == Next::Settle);
    for (const Ending ending : decision.endings) {
      RC_ASSERT((ending == Ending::InDoubt) <= (verdict == CommitVerdict::Escaped));
    }
  }
}

CallEnd EndOf(CallStyle style, TransactionState state, std::vector<TaskEnd> tasks) {
  return {style, state, false, false, std::move(tasks), false};
}

TEST(TransactionPolicyTest, ADeadlockSendsTheTasksOfAPlainHandlerOneByOneAndRunsABatchAgain) {
  const std::vector<TaskEnd> two(2);
  EXPECT_EQ(Decide(EndOf(CallStyle::Each, TransactionState::Transient, two)).next, Next::OneByOne);
  EXPECT_EQ(Decide(EndOf(CallStyle::Together, TransactionState::Transient, two)).next, Next::RunAgain);
}

TEST(TransactionPolicyTest, ABatchThatFailsAsAWholeIsHalved) {
  const std::vector<TaskEnd> two(2);
  EXPECT_EQ(Decide(EndOf(CallStyle::Together, TransactionState::Poisoned, two)).next, Next::Halve);
  EXPECT_EQ(Decide(EndOf(CallStyle::Together, TransactionState::Lost, two)).next, Next::Halve);
  CallEnd threw = EndOf(CallStyle::Together, TransactionState::Open, two);
  threw.threw = true;
  EXPECT_EQ(Decide(threw).next, Next::Halve);
}

TEST(TransactionPolicyTest, SqlThatNobodyToldApartCommitsOnlyWhereAllAreDone) {
  CallEnd call = EndOf(CallStyle::Unsaid, TransactionState::Open, std::vector<TaskEnd>(2));
  EXPECT_TRUE(Decide(call).commit);
  call.tasks[1].outcome = OutcomeKind::Snooze;
  EXPECT_EQ(Decide(call).next, Next::OneByOne);
}

}  // namespace
}  // namespace millrace::engine
