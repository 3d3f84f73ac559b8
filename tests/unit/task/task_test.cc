#include "framework/task/task.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "framework/task/expiry.h"
#include "framework/task/retry_ladder.h"

namespace millrace::engine {
namespace {

const TaskName kHome{"main", {"tasks", 0}};

TEST(TaskNameTest, ShortFormsTakeWhatIsMissingFromHome) {
  EXPECT_EQ(ToString(ParseTaskName("17", kHome).value()), "main/tasks/17");
  EXPECT_EQ(ToString(ParseTaskName("tasks_001/17", kHome).value()), "main/tasks_001/17");
  EXPECT_EQ(ToString(ParseTaskName("east/tasks/17", kHome).value()), "east/tasks/17");
}

TEST(TaskNameTest, WhatIsNoNameIsRefused) {
  for (const char* text :
       {"", "x", "17x", "tasks/", "/17", "a/b/c/17", "Tasks/17", "-1", "99999999999999999999"}) {
    EXPECT_FALSE(ParseTaskName(text, kHome)) << text;
  }
}

TEST(TaskTest, HandlerNamesAreCheckedToTheirLimit) {
  EXPECT_TRUE(IsHandlerName("award.points_2"));
  EXPECT_TRUE(IsHandlerName(std::string(64, 'a')));
  for (const std::string& name :
       {std::string(), std::string("Award"), std::string("2a"), std::string("a b"), std::string(65, 'a')}) {
    EXPECT_FALSE(IsHandlerName(name)) << name;
  }
}

TEST(TaskTest, ValidateNamesWhatIsWrong) {
  EXPECT_TRUE(Validate({.handler = "a"}));
  EXPECT_FALSE(Validate({.handler = "A"}));
  EXPECT_FALSE(Validate({.handler = "a", .params = std::string(kMaxParams + 1, 'x')}));
  for (const char* params : {"", "[]", "7", "\"{\"", " null"})
    EXPECT_FALSE(Validate({.handler = "a", .params = params})) << params;
  EXPECT_TRUE(Validate({.handler = "a", .params = "\r\n\t {}"}));
  EXPECT_FALSE(Validate({.handler = "a", .biz_key = std::string(kMaxKey + 1, 'x')}));
  EXPECT_FALSE(Validate({.handler = "a", .batch = std::string(kMaxBatchName + 1, 'x')}));
  EXPECT_FALSE(Validate({.handler = "a", .batch = "june "}));
  EXPECT_FALSE(Validate({.handler = "a", .priority = 10}));
}

TEST(TaskTest, ShortenNeverSplitsASequence) {
  EXPECT_EQ(Shorten("abc", 3), "abc");
  EXPECT_EQ(Shorten("abü", 3), "ab");
  EXPECT_EQ(Shorten("abü", 4), "abü");
}

TEST(StorableTest, KeepsWhatADatabaseTakesAndEscapesWhatNoneDoes) {
  EXPECT_EQ(Storable("two\nlines\x1b[0m é"), "two\nlines\x1b[0m é");
  EXPECT_EQ(Storable("a\xff\n"), "a\\xff\n");
  EXPECT_EQ(Storable(std::string("a\0b", 3)), R"(a\x00b)");
  EXPECT_EQ(Storable("abü", 3), "ab") << "a character that is cut is no broken byte";
  EXPECT_EQ(Storable(std::string(4096, 'x') + "ü", 4097).size(), 4096U);
}

TEST(TaskTest, StatesAreReadBack) {
  EXPECT_EQ(ParseTaskState("failed").value(), TaskState::Failed);
  EXPECT_FALSE(ParseTaskState("done"));
}

Task Failing(std::uint32_t failures) {
  Task task;
  task.attempt = failures + 1;
  task.failures = failures;
  return task;
}

TEST(RetryLadderTest, DelaysClimbAndStayOnTheLastTier) {
  const RetryPolicy policy{.jitter = 0};
  EXPECT_EQ(RetryDelay(policy, 1, 0.5), std::chrono::minutes(1));
  EXPECT_EQ(RetryDelay(policy, 3, 0.5), std::chrono::minutes(20));
  EXPECT_EQ(RetryDelay(policy, 30, 0.5), std::chrono::minutes(20));
}

TEST(RetryLadderTest, JitterSpreadsEvenlyBothWays) {
  const RetryPolicy policy;
  EXPECT_EQ(RetryDelay(policy, 1, 0.0), std::chrono::seconds(54));
  EXPECT_EQ(RetryDelay(policy, 1, 0.5), std::chrono::seconds(60));
  EXPECT_LT(RetryDelay(policy, 1, 0.999), std::chrono::seconds(66));
}

TEST(RetryLadderTest, TheLastFailureEndsInTheFailedPool) {
  const RetryPolicy policy;
  const Outcome retry{.kind = OutcomeKind::Retry, .text = "away"};
  const Settlement third = Settle(policy, Failing(2), retry, 0.5);
  EXPECT_EQ(third.to, Settlement::To::Waiting);
  EXPECT_EQ(third.delay, std::chrono::minutes(20));
  EXPECT_TRUE(third.failed_attempt);
  const Settlement fourth = Settle(policy, Failing(3), retry, 0.5);
  EXPECT_EQ(fourth.to, Settlement::To::Failed);
  EXPECT_EQ(fourth.text, "away");
}

TEST(RetryLadderTest, TheHandlersOwnTimeWinsOverTheLadder) {
  const Outcome retry{.kind = OutcomeKind::Retry, .delay = std::chrono::seconds(3)};
  EXPECT_EQ(Settle({}, Failing(0), retry, 0.9).delay, std::chrono::seconds(3));
}

RetryPolicy WithClasses() {
  using namespace std::chrono_literals;
  return {.jitter = 0,
          .classes = {{"http_429", false, {5s, 1min}}, {"http_4*", true, {}}, {"timeout", false, {10s}}}};
}

Outcome RetryOf(const char* error_class) {
  return {.kind = OutcomeKind::Retry, .text = "away", .error_class = error_class};
}

TEST(RetryLadderTest, AClassMayHaveALadderOfItsOwn) {
  const RetryPolicy policy = WithClasses();
  EXPECT_EQ(Settle(policy, Failing(0), RetryOf("http_429"), 0.5).delay, std::chrono::seconds(5));
  EXPECT_EQ(Settle(policy, Failing(2), RetryOf("http_429"), 0.5).delay, std::chrono::minutes(1));
  EXPECT_EQ(Settle(policy, Failing(0), RetryOf("timeout"), 0.5).delay, std::chrono::seconds(10));
  EXPECT_EQ(Settle(policy, Failing(0), RetryOf("timeouts"), 0.5).delay, std::chrono::minutes(1));
  EXPECT_EQ(Settle(policy, Failing(0), RetryOf(""), 0.5).delay, std::chrono::minutes(1));
  EXPECT_EQ(Settle(policy, Failing(3), RetryOf("timeout"), 0.5).to, Settlement::To::Failed)
      << "the most failures are those of all classes together";
}

TEST(RetryLadderTest, AClassMayFailAtOnceWhateverItsHandlerWants) {
  Outcome retry = RetryOf("http_404");
  retry.delay = std::chrono::seconds(3);
  const Settlement settlement = Settle(WithClasses(), Failing(0), retry, 0.5);
  EXPECT_EQ(settlement.to, Settlement::To::Failed);
  EXPECT_TRUE(settlement.failed_attempt);
  EXPECT_EQ(settlement.text, "away");
  EXPECT_EQ(settlement.error_class, "http_404");
  EXPECT_FALSE(settlement.delay);
}

TEST(RetryLadderTest, TheHandlersOwnTimeWinsOverTheLadderOfAClass) {
  Outcome retry = RetryOf("timeout");
  retry.delay = std::chrono::seconds(3);
  EXPECT_EQ(Settle(WithClasses(), Failing(0), retry, 0.5).delay, std::chrono::seconds(3));
}

TEST(RetryLadderTest, AHeldTaskHasFailedOnceMoreAndWaitsForAPerson) {
  Outcome hold = RetryOf("http_404");
  hold.kind = OutcomeKind::Hold;
  const Settlement held = Settle(WithClasses(), Failing(0), hold, 0.5);
  EXPECT_EQ(held.to, Settlement::To::Held);
  EXPECT_TRUE(held.failed_attempt);
  EXPECT_FALSE(held.delay || held.run_at);
  const Settlement last = Settle(WithClasses(), Failing(3), hold, 0.5);
  EXPECT_EQ(last.to, Settlement::To::Failed);
}

TEST(RetryLadderTest, EachOutcomeLeadsToOneStateAndTellsWhetherItWasAFailure) {
  using To = Settlement::To;
  const std::tuple<OutcomeKind, To, bool> rules[] = {
      {OutcomeKind::Done, To::Succeeded, false},   {OutcomeKind::Retry, To::Waiting, true},
      {OutcomeKind::Fail, To::Failed, true},       {OutcomeKind::Snooze, To::Waiting, false},
      {OutcomeKind::Skip, To::Cancelled, false},   {OutcomeKind::GiveBack, To::Waiting, false},
      {OutcomeKind::Cancel, To::Cancelled, false}, {OutcomeKind::Hold, To::Held, true}};
  for (const auto& [kind, to, failed] : rules) {
    for (const std::uint32_t failures : {0U, 3U}) {
      const Settlement settlement = Settle({}, Failing(failures), {.kind = kind}, 0.5);
      const bool last = failed && failures == 3;
      EXPECT_EQ(settlement.to, last ? To::Failed : to) << static_cast<int>(kind);
      EXPECT_EQ(settlement.failed_attempt, failed) << static_cast<int>(kind);
      EXPECT_EQ(RuleOf(kind).says_when, kind == OutcomeKind::Retry || kind == OutcomeKind::Snooze);
    }
  }
}

TEST(TaskTest, APoolIsThatOfAState) {
  EXPECT_EQ(PoolOf(TaskState::Waiting), TaskPool::Hot);
  EXPECT_EQ(PoolOf(TaskState::Running), TaskPool::Hot);
  EXPECT_EQ(PoolOf(TaskState::Held), TaskPool::Hot);
  EXPECT_EQ(PoolOf(TaskState::Failed), TaskPool::Failed);
  EXPECT_EQ(PoolOf(TaskState::Succeeded), TaskPool::Done);
  EXPECT_EQ(PoolOf(TaskState::Cancelled), TaskPool::Done);
}

TEST(RetryLadderTest, SnoozeAndGiveBackAreNoFailures) {
  for (const OutcomeKind kind : {OutcomeKind::Snooze, OutcomeKind::GiveBack}) {
    const Settlement settlement = Settle({}, Failing(3), {.kind = kind}, 0.5);
    EXPECT_EQ(settlement.to, Settlement::To::Waiting);
    EXPECT_FALSE(settlement.failed_attempt);
  }
}

TEST(RetryLadderTest, TextsAreMadeFitForTheDatabase) {
  const Outcome outcome{.kind = OutcomeKind::Fail, .text = "caf\xc3\xa9\nfine", .error_class = "bad\xff"};
  EXPECT_EQ(Settle({}, Failing(0), outcome, 0.5).text, "caf\xc3\xa9\nfine");
  EXPECT_EQ(Settle({}, Failing(0), outcome, 0.5).error_class, "bad\\xff");
  const std::string rubbish = "\xe9t\xe9" + std::string(kMaxText, 'x');
  const Settlement cut = Settle({}, Failing(0), {.kind = OutcomeKind::Done, .text = rubbish}, 0.5);
  EXPECT_TRUE(cut.text.starts_with("\\xe9t\\xe9x")) << cut.text;
  EXPECT_EQ(cut.text.size(), kMaxText);
}

TEST(ExpiryTest, ATasksOwnExpiryGoesOverThatOfItsType) {
  Task task;
  task.created_at = WallTime(std::chrono::hours(100));
  EXPECT_EQ(ExpiryOf(task, Micros(0)), std::nullopt);
  EXPECT_EQ(ExpiryOf(task, std::chrono::hours(2)), WallTime(std::chrono::hours(102)));
  task.expires_at = WallTime(std::chrono::hours(200));
  EXPECT_EQ(ExpiryOf(task, std::chrono::hours(2)), WallTime(std::chrono::hours(200)));
  EXPECT_EQ(ExpiryOf(task, Micros(0)), WallTime(std::chrono::hours(200)));
}

TEST(ExpiryTest, WhatWouldExpireBeforeItIsDueIsRefusedWithItsKey) {
  using std::chrono::hours;
  const WallTime now(hours(1000));
  const auto refused = [&](const NewTask& task, const char* key, bool needs_clock) {
    const Status told = CheckExpiry(task, now);
    ASSERT_FALSE(told) << key;
    EXPECT_EQ(told.error().code, ErrorCode::Invalid);
    EXPECT_TRUE(told.error().message.starts_with(key)) << told.error().message;
    EXPECT_EQ(Validate(task).has_value(), needs_clock) << "Validate knows no clock";
  };
  const NewTask plain{.handler = "a"};
  NewTask task = plain;
  task.run_at = now + hours(3);
  task.expires_at = now + hours(3);
  refused(task, "expires_at", false);
  task.expires_at = now + hours(4);
  EXPECT_TRUE(CheckExpiry(task, now));
  task.expires_at.reset();
  task.expires_in = hours(2);
  refused(task, "expires_in", true);
  task = plain;
  task.delay = hours(3);
  task.expires_in = hours(3);
  refused(task, "expires_in", false);
  task.expires_in = hours(4);
  EXPECT_TRUE(CheckExpiry(task, now));
  task = plain;
  task.expires_at = now;
  refused(task, "expires_at", true);
  task.expires_in = hours(1);
  refused(task, "give either", false);
  task = plain;
  task.expires_in = Micros(0);
  refused(task, "expires_in", false);
}

TEST(ExpiryTest, WhatWouldComeDueAgainTooLateEndsAtOnceWithWhatItsAttemptSaid) {
  const WallTime now(std::chrono::hours(1000));
  const Outcome retry{.kind = OutcomeKind::Retry, .text = "no answer", .error_class = "timeout"};
  Task task = Failing(0);
  task.expires_at = now + std::chrono::seconds(30);
  const Settlement ended = Settle({}, task, retry, 0.5, now);
  EXPECT_EQ(ended.to, Settlement::To::Cancelled);
  EXPECT_TRUE(ended.failed_attempt);
  EXPECT_EQ(ended.delay, std::nullopt);
  EXPECT_TRUE(ended.text.starts_with("expired at ")) << ended.text;
  EXPECT_TRUE(ended.text.ends_with("no answer")) << ended.text;
  EXPECT_EQ(Settle({}, task, retry, 0.5).to, Settlement::To::Waiting) << "nobody knows what time it is";
  task.expires_at = now + std::chrono::minutes(2);
  EXPECT_EQ(Settle({}, task, retry, 0.5, now).to, Settlement::To::Waiting);
  const Outcome snooze{.kind = OutcomeKind::Snooze, .at = now + std::chrono::minutes(3)};
  EXPECT_EQ(Settle({}, task, snooze, 0.5, now).to, Settlement::To::Cancelled);
  const Outcome back{.kind = OutcomeKind::GiveBack};
  task.expires_at = now - std::chrono::minutes(2);
  EXPECT_EQ(Settle({}, task, back, 0.5, now).to, Settlement::To::Waiting) << "the next start skips it";
  EXPECT_EQ(Settle({}, Failing(3), retry, 0.5, now).to, Settlement::To::Failed);
}

// A promise to partners: nothing of it may ever change.
TEST(TaskNameTest, TheIdempotencyKeyIsTheNameAndWhenTheTaskWasCreated) {
  Task task;
  task.key = {"tasks_001", 17};
  task.created_at = WallTime(Micros(1'700'000'000'000'001));
  EXPECT_EQ(IdempotencyKey("main", task), "main/tasks_001/17@1700000000000001");
  EXPECT_EQ(NameIn(IdempotencyKey("main", task)), "main/tasks_001/17");
  task.key.id = std::numeric_limits<std::uint64_t>::max();
  task.created_at = WallTime(Micros(-1));  // somebody wrote a time before 1970
  EXPECT_EQ(IdempotencyKey("a@b", task), "a@b/tasks_001/18446744073709551615@-1");
  EXPECT_EQ(NameIn(IdempotencyKey("a@b", task)), "a@b/tasks_001/18446744073709551615");
}

}  // namespace
}  // namespace millrace::engine
