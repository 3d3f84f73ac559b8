#include "framework/task/transaction_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace millrace::engine {
namespace {

constexpr OutcomeKind kOutcomes[] = {OutcomeKind::Done,   OutcomeKind::Retry, OutcomeKind::Fail,
                                     OutcomeKind::Snooze, OutcomeKind::Skip,  OutcomeKind::GiveBack,
                                     OutcomeKind::Cancel};
constexpr CallStyle kStyles[] = {CallStyle::Unsaid, CallStyle::Together, CallStyle::Each};
constexpr TransactionState kStates[] = {TransactionState::Idle,         TransactionState::Open,
                                        TransactionState::NoConnection, TransactionState::Transient,
                                        TransactionState::Poisoned,     TransactionState::Lost,
                                        TransactionState::Escaped};

}  // namespace
}  // namespace millrace::engine

namespace rc {

template <>
struct Arbitrary<millrace::engine::TaskEnd> {
  static Gen<millrace::engine::TaskEnd> arbitrary() {
    using millrace::engine::kOutcomes;
    return gen::map(gen::tuple(gen::elementOf(std::vector(std::begin(kOutcomes), std::end(kOutcomes))),
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
    using millrace::engine::kStates;
    using millrace::engine::kStyles;
    return gen::build<millrace::engine::CallEnd>(
        gen::set(&millrace::engine::CallEnd::style,
                 gen::elementOf(std::vector(std::begin(kStyles), std::end(kStyles)))),
        gen::set(&millrace::engine::CallEnd::state,
                 gen::elementOf(std::vector(std::begin(kStates), std::end(kStates)))),
        gen::set(&millrace::engine::CallEnd::threw), gen::set(&millrace::engine::CallEnd::last_run),
        gen::set(&millrace::engine::CallEnd::overran),
        gen::set(&millrace::engine::CallEnd::tasks, gen::mapcat(gen::inRange(3, 7), [](int count) {
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

// What holds of every call: a rule says whether it does of this one.
using Rule = bool (*)(const CallEnd& call);

bool CommitsNothingButSqlOfTasksThatAreDone(const CallEnd& call) {
  const Decision decision = Decide(call);
  return !decision.commit || (call.state == TransactionState::Open && decision.next == Next::Settle &&
                              !HoldsOthersSql(call) && (Alone(call) || !call.threw));
}

bool EndsEachTaskOrRunsThemAllAgain(const CallEnd& call) {
  const Decision decision = Decide(call);
  if (decision.endings.size() != (decision.next == Next::Settle ? call.tasks.size() : 0)) return false;
  if (Alone(call) && decision.next != Next::Settle && decision.next != Next::RunAgain) return false;
  return !call.last_run || decision.next != Next::RunAgain;
}

bool RunsNothingAgainThatMayHaveTakenEffect(const CallEnd& call) {
  if (call.state != TransactionState::Escaped) return true;
  const Decision decision = Decide(call);
  if (decision.commit || decision.next != Next::Settle) return false;
  for (std::size_t i = 0; i < call.tasks.size(); ++i) {
    const bool innocent = !Alone(call) && call.style == CallStyle::Each && !call.tasks[i].sent;
    if (decision.endings[i] != (innocent ? Ending::GivenBack : Ending::InDoubt)) return false;
  }
  return true;
}

bool OnlyAnEarlyEndLeavesADoubt(const CallEnd& call) {
  const Decision decision = Decide(call);
  return call.state == TransactionState::Escaped ||
         std::count(decision.endings.begin(), decision.endings.end(), Ending::InDoubt) == 0;
}

// No task is charged for what happened to the call: only one that says it is done, whose own SQL failed.
bool ChargesNoTaskForAnother(const CallEnd& call) {
  const Decision decision = Decide(call);
  for (std::size_t i = 0; i < decision.endings.size(); ++i) {
    if (decision.endings[i] != Ending::Failed) continue;
    if (!Is(call.tasks[i], OutcomeKind::Done)) return false;
    if (!Alone(call) && (call.style != CallStyle::Each || !call.tasks[i].failed)) return false;
  }
  return true;
}

bool OfSeveralThatOverranTogetherEachRunsAlone(const CallEnd& call) {
  const bool certain = call.state == TransactionState::Idle || call.state == TransactionState::Open;
  if (Alone(call) || !call.overran || call.threw || !certain) return true;
  return Decide(call).next == Next::OneByOne;
}

bool NothingIsDoneWhoseSqlIsNotCommitted(const CallEnd& call) {
  const Decision decision = Decide(call);
  if (decision.commit || call.state == TransactionState::Idle) return true;
  for (std::size_t i = 0; i < decision.endings.size(); ++i) {
    if (!Is(call.tasks[i], OutcomeKind::Done) || decision.endings[i] != Ending::AsSaid) continue;
    if (Alone(call) || call.style != CallStyle::Each || call.tasks[i].sent) return false;
  }
  return true;
}

bool WithoutAConnectionNobodyIsCharged(const CallEnd& call) {
  if (call.state != TransactionState::NoConnection) return true;
  const Decision decision = Decide(call);
  if (decision.next != Next::Settle) return false;
  for (std::size_t i = 0; i < call.tasks.size(); ++i) {
    const bool ended = Is(call.tasks[i], OutcomeKind::Cancel) || Is(call.tasks[i], OutcomeKind::GiveBack);
    if (decision.endings[i] != (ended ? Ending::AsSaid : Ending::GivenBack)) return false;
  }
  return true;
}

bool AfterAFailedCommitNothingIsCommitted(const CallEnd& call) {
  if (call.state != TransactionState::Open) return true;
  for (const CommitVerdict verdict :
       {CommitVerdict::Refused, CommitVerdict::Transient, CommitVerdict::Escaped, CommitVerdict::Broken,
        CommitVerdict::Unavailable}) {
    CallEnd ended = call;
    const Decision decision = AfterCommit(ended, verdict);
    const bool escaped = verdict == CommitVerdict::Escaped;
    if (decision.commit || (escaped && decision.next != Next::Settle)) return false;
    if (!escaped && std::count(decision.endings.begin(), decision.endings.end(), Ending::InDoubt) > 0)
      return false;
  }
  return true;
}

constexpr std::pair<const char*, Rule> kRules[] = {
    {"commits nothing but SQL of tasks that are done", CommitsNothingButSqlOfTasksThatAreDone},
    {"ends each task, or runs them all again", EndsEachTaskOrRunsThemAllAgain},
    {"runs nothing again that may have taken effect", RunsNothingAgainThatMayHaveTakenEffect},
    {"only an early end leaves a doubt", OnlyAnEarlyEndLeavesADoubt},
    {"charges no task for another", ChargesNoTaskForAnother},
    {"of several that overran together each runs alone", OfSeveralThatOverranTogetherEachRunsAlone},
    {"nothing is done whose SQL is not committed", NothingIsDoneWhoseSqlIsNotCommitted},
    {"without a connection nobody is charged", WithoutAConnectionNobodyIsCharged},
    {"after a failed commit nothing is committed", AfterAFailedCommitNothingIsCommitted},
};

std::vector<TaskEnd> AllTaskEnds() {
  std::vector<TaskEnd> ends;
  for (const OutcomeKind kind : kOutcomes) {
    ends.push_back({kind, false, false, false});
    ends.push_back({kind, true, true, false});
    ends.push_back({kind, true, false, false});
    ends.push_back({kind, true, false, true});
  }
  return ends;
}

// All calls of these tasks.
void ExpectRulesHold(const std::vector<TaskEnd>& tasks) {
  for (const CallStyle style : kStyles) {
    for (const TransactionState state : kStates) {
      for (int flags = 0; flags < 8; ++flags) {
        const CallEnd call{style, state, (flags & 1) != 0, (flags & 2) != 0, tasks, (flags & 4) != 0};
        for (const auto& [name, rule] : kRules) {
          ASSERT_TRUE(rule(call)) << name << ": style " << static_cast<int>(style) << ", state "
                                  << static_cast<int>(state) << ", flags " << flags << ", "
                                  << testing::PrintToString(tasks);
        }
      }
    }
  }
}

TEST(TransactionPolicyTest, TheRulesHoldOfEveryCallOfOneTaskAndOfTwo) {
  const std::vector<TaskEnd> ends = AllTaskEnds();
  for (const TaskEnd& first : ends) {
    ExpectRulesHold({first});
    for (const TaskEnd& second : ends) {
      ExpectRulesHold({first, second});
      if (HasFatalFailure()) return;
    }
  }
}

RC_GTEST_PROP(TransactionPolicy, TheRulesHoldOfCallsOfSeveral, (const CallEnd& call)) {
  for (const auto& [name, rule] : kRules) {
    if (!rule(call)) RC_FAIL(name);
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
