#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using To = Settlement::To;

TEST_P(StoreContract, SucceededTaskMovesToTheFinishedPoolWhole) {
  const auto id = Add({.handler = "award", .params = R"({"a":1})", .slice = 2, .priority = 3, .batch = "b"});
  const Task task = ClaimOne(id);
  const auto report = Settle({End(task, To::Succeeded, "42 points")});
  EXPECT_EQ(report.verdicts[0], SettleVerdict::Settled);
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Succeeded);
  EXPECT_EQ(record.result, "42 points");
  EXPECT_TRUE(record.finished_at.has_value());
  EXPECT_EQ(record.task.params, R"({"a":1})");
  EXPECT_EQ(record.task.slice, 2U);
  EXPECT_EQ(record.task.priority, 3U);
  EXPECT_EQ(record.task.batch, "b");
  EXPECT_EQ(record.task.attempt, 1U);
  EXPECT_EQ(record.task.failures, 0U);
  EXPECT_EQ(record.task.claimed_by, "w.1");
  EXPECT_EQ(record.task.created_at, task.created_at);
  EXPECT_EQ(record.task.run_at, task.run_at);
  EXPECT_TRUE(Due().groups.empty());
}

TEST_P(StoreContract, OfASucceededTaskThatIsNotKeptOnlyItsCountersAreLeft) {
  const auto ids = AddDue(6);
  std::vector<Settlement> ends;
  for (const Task& task : Claim(ids)) ends.push_back(End(task, To::Succeeded, "42 points"));
  for (std::size_t i = 0; i < 4; ++i) ends[i].kept = false;
  ends[0].attempt = 7;  // another's by now
  ends[1].failed_attempt = true;
  ends[1].to = To::Failed;    // what did not succeed is kept, whatever is said
  ends[2].progress = "half";  // and goes with the row
  const auto report = Settle(ends);
  EXPECT_EQ(report.verdicts[0], SettleVerdict::Refused);
  for (std::size_t i = 1; i < ends.size(); ++i) EXPECT_EQ(report.verdicts[i], SettleVerdict::Settled) << i;
  EXPECT_EQ(Get(ids[0]).task.state, TaskState::Running);
  EXPECT_EQ(Get(ids[1]).task.state, TaskState::Failed);
  for (const std::size_t i : {2, 3}) {
    const auto record = operations().Get({"tasks", ids[i]});
    EXPECT_TRUE(!record && record.error().code == ErrorCode::NotFound) << i;
  }
  ends[0].attempt = 1;
  const auto running = store().OpenTasks()->StillRunning("w.1", ends);
  ASSERT_TRUE(running) << running.error().message;
  EXPECT_EQ(*running, (std::vector{true, false, false, false, false, false}));
  for (const std::size_t i : {4, 5}) EXPECT_EQ(Get(ids[i]).task.state, TaskState::Succeeded) << i;
  const auto totals = operations().Totals();
  ASSERT_TRUE(totals && totals->size() == 1U);
  EXPECT_EQ(totals->front().succeeded, 4U);
  EXPECT_EQ(totals->front().failed, 1U);
}

TEST_P(StoreContract, FailedTaskMovesToTheFailedPoolWithItsReason) {
  const auto id = AddDue(1)[0];
  Settlement failed = End(ClaimOne(id), To::Failed, "no such account");
  failed.error_class = "http_404";
  EXPECT_EQ(Settle({failed}).verdicts[0], SettleVerdict::Settled);
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Failed);
  EXPECT_EQ(record.task.last_error, "no such account");
  EXPECT_EQ(record.task.failures, 1U);
  EXPECT_TRUE(record.finished_at.has_value());
  ASSERT_EQ(record.attempts.size(), 1U);
  EXPECT_EQ(record.attempts[0].attempt, 1U);
  EXPECT_EQ(record.attempts[0].kind, "failed");
  EXPECT_EQ(record.attempts[0].error_class, "http_404");
  EXPECT_EQ(record.attempts[0].message, "no such account");
  EXPECT_EQ(record.attempts[0].incarnation, "w.1");
}

TEST_P(StoreContract, SkippedTaskMovesToTheFinishedPoolAsCancelled) {
  const auto id = AddDue(1)[0];
  Settle({End(ClaimOne(id), To::Cancelled, "duplicate of tasks/1")});
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Cancelled);
  EXPECT_EQ(record.task.last_error, "duplicate of tasks/1");
  EXPECT_TRUE(record.attempts.empty());
}

TEST_P(StoreContract, RetriedTaskWaitsUnclaimedUntilItsDelayHasPassed) {
  const auto id = AddDue(1)[0];
  Settlement retry = End(ClaimOne(id), To::Waiting, "try later");
  retry.failed_attempt = true;
  retry.delay = minutes(5);
  Settle({retry});
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Waiting);
  EXPECT_EQ(record.task.claimed_by, "");
  EXPECT_EQ(record.task.failures, 1U);
  EXPECT_EQ(record.task.attempt, 1U);
  EXPECT_EQ(record.task.last_error, "try later");
  EXPECT_GT(record.task.run_at, Now() + minutes(4));
  EXPECT_LE(record.task.run_at, Now() + minutes(5));
  ASSERT_EQ(record.attempts.size(), 1U);
  EXPECT_TRUE(Claim({id}, 1).empty());
}

TEST_P(StoreContract, AHeldTaskIsNobodysUntilItIsReleasedAndKeepsItsReason) {
  const auto ids = AddDue(2);
  const Task before = ClaimOne(ids[0]);
  Settlement held = End(before, To::Held, "what is this?");
  held.failed_attempt = true;
  Settlement retried = End(ClaimOne(ids[1]), To::Waiting, "try later");
  retried.failed_attempt = true;
  const auto report = Settle({held, retried});
  EXPECT_EQ(report.verdicts, (std::vector{SettleVerdict::Settled, SettleVerdict::Settled}));
  const TaskRecord record = Get(ids[0]);
  EXPECT_EQ(record.task.state, TaskState::Held);
  EXPECT_EQ(record.task.claimed_by, "");
  EXPECT_EQ(record.task.failures, 1U);
  EXPECT_EQ(record.task.attempt, 1U);
  EXPECT_EQ(record.task.last_error, "what is this?");
  EXPECT_EQ(record.task.run_at, before.run_at);
  EXPECT_EQ(record.attempts.size(), 1U);
  EXPECT_EQ(Get(ids[1]).task.state, TaskState::Waiting);
  EXPECT_TRUE(Claim({ids[0]}, 1).empty());
  EXPECT_EQ(Due().groups.size(), 1U) << "the other's alone";
}

TEST_P(StoreContract, SnoozedTaskWaitsUntilTheTimeGivenWithoutAFailure) {
  const auto id = AddDue(1)[0];
  const WallTime until = Now() + hours(2) + Micros(123'456);
  Settlement snooze = End(ClaimOne(id), To::Waiting);
  snooze.run_at = until;
  Settle({snooze});
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.run_at, until);
  EXPECT_EQ(record.task.failures, 0U);
  EXPECT_TRUE(record.attempts.empty());
}

TEST_P(StoreContract, GivenBackTaskKeepsItsPlaceAndCanBeClaimedAtOnce) {
  const auto id = AddDue(1)[0];
  const Task task = ClaimOne(id);
  Settle({End(task, To::Waiting)});
  EXPECT_EQ(Get(id).task.run_at, task.run_at);
  EXPECT_EQ(ClaimOne(id, 1).attempt, 2U);
}

TEST_P(StoreContract, WhatIsNotWrittenYetOfAProgressIsWrittenWithTheEndWhateverThatIs) {
  for (const To to : {To::Waiting, To::Held, To::Succeeded, To::Cancelled, To::Failed}) {
    const auto ids = AddDue(3);
    const std::vector<Task> claimed = Claim(ids);
    ASSERT_EQ(claimed.size(), 3U);
    const std::vector<TaskProgress> written{{claimed[0].key, 1, "half"}, {claimed[1].key, 1, "half"}};
    ASSERT_TRUE(tasks().SaveProgress("w.1", written));
    std::vector<Settlement> ends;
    for (const Task& task : claimed) ends.push_back(End(task, to));
    ends[0].progress = "all";
    Settle(ends);
    EXPECT_EQ(Get(ids[0]).task.progress, "all");
    EXPECT_EQ(Get(ids[1]).task.progress, "half") << "what was written before stays";
    EXPECT_EQ(Get(ids[2]).task.progress, "");
  }
}

TEST_P(StoreContract, StaleAttemptIsRefusedWhileTheRestSettles) {
  const auto ids = AddDue(4);
  Register("w.2");
  auto claimed = Claim({ids[0], ids[1], ids[2]});
  ASSERT_EQ(claimed.size(), 3U);
  const Task foreign = ClaimOne(ids[3], 0, "w.2");
  Settlement stale = End(claimed[1], To::Succeeded);
  stale.attempt = 7;
  const auto report = Settle(
      {End(claimed[0], To::Succeeded), stale, End(foreign, To::Succeeded), End(claimed[2], To::Failed, "x")});
  EXPECT_EQ(report.verdicts, (std::vector{SettleVerdict::Settled, SettleVerdict::Refused,
                                          SettleVerdict::Refused, SettleVerdict::Settled}));
  EXPECT_EQ(StateOf(ids[0]), TaskState::Succeeded);
  EXPECT_EQ(StateOf(ids[1]), TaskState::Running);
  EXPECT_EQ(StateOf(ids[2]), TaskState::Failed);
  EXPECT_EQ(Get(ids[3]).task.claimed_by, "w.2");
}

TEST_P(StoreContract, SecondSettleOfAnAttemptIsRefused) {
  const Task task = ClaimOne(AddDue(1)[0]);
  Settle({End(task, To::Succeeded)});
  EXPECT_EQ(Settle({End(task, To::Failed, "late")}).verdicts[0], SettleVerdict::Refused);
  const auto totals = operations().Totals();
  ASSERT_TRUE(totals);
  ASSERT_EQ(totals->size(), 1U);
  EXPECT_EQ((*totals)[0].failed, 0U);
}

TEST_P(StoreContract, ARowTheDatabaseRefusesIsSplitOut) {
  const auto claimed = Claim(AddDue(3));
  ASSERT_EQ(claimed.size(), 3U);
  const auto report =
      Settle({End(claimed[0], To::Succeeded), End(claimed[1], To::Succeeded, "not UTF-8: \xff\xfe"),
              End(claimed[2], To::Succeeded)});
  EXPECT_EQ(report.verdicts,
            (std::vector{SettleVerdict::Settled, SettleVerdict::Broken, SettleVerdict::Settled}));
  EXPECT_FALSE(report.errors[1].empty());
  EXPECT_TRUE(report.errors[0].empty());
  EXPECT_EQ(StateOf(claimed[1].key.id), TaskState::Running);
  EXPECT_EQ(StateOf(claimed[2].key.id), TaskState::Succeeded);
}

TEST_P(StoreContract, CountersAddUpOverAMixedFullBatch) {
  std::vector<NewTask> added(kMaxBatchRows, NewTask{.handler = "noop", .batch = "mixed"});
  auto submitted = operations().Submit("tasks", added);
  ASSERT_TRUE(submitted) << submitted.error().message;
  const auto claimed = Claim(submitted->ids);
  ASSERT_EQ(claimed.size(), kMaxBatchRows);
  std::vector<Settlement> batch;
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    const To to = std::array{To::Succeeded, To::Cancelled, To::Failed, To::Waiting}[i % 4];
    batch.push_back(End(claimed[i], to, "text of " + std::to_string(i)));
    if (to == To::Waiting) batch.back().failed_attempt = i % 8 == 3;
  }
  const auto report = Settle(batch);
  for (const SettleVerdict verdict : report.verdicts) EXPECT_EQ(verdict, SettleVerdict::Settled);
  const auto totals = operations().Totals();
  ASSERT_TRUE(totals);
  ASSERT_EQ(totals->size(), 1U);
  const TaskTotals& total = (*totals)[0];
  EXPECT_EQ(total.table, "tasks");
  EXPECT_EQ(total.handler, "noop");
  EXPECT_EQ(total.batch, "mixed");
  EXPECT_EQ(total.succeeded, 250U);
  EXPECT_EQ(total.cancelled, 250U);
  EXPECT_EQ(total.failed, 250U);
  EXPECT_EQ(total.attempts_failed, 250U + 125U);
  EXPECT_EQ(Get(batch[4].key.id).result, "text of 4");
  EXPECT_EQ(Get(batch[998].key.id).task.last_error, "text of 998");
}

TEST_P(StoreContract, OfManyDifferentResultsEachReachesItsOwnTask) {
  std::vector<Settlement> batch;
  const auto result = [](std::uint64_t id) { return id % 7 == 0 ? "" : "result " + std::to_string(id); };
  const auto ids = AddDue(200);
  for (const Task& task : Claim(ids)) batch.push_back(End(task, To::Succeeded, result(task.key.id)));
  ASSERT_EQ(batch.size(), 200U);
  Settle(batch);
  for (const std::uint64_t id : ids) EXPECT_EQ(Get(id).result, result(id));
}

TEST_P(StoreContract, StillRunningTellsWhichAttemptsHaveNotEnded) {
  const auto claimed = Claim(AddDue(2));
  ASSERT_EQ(claimed.size(), 2U);
  Settlement other = End(claimed[1], To::Succeeded);
  other.attempt = 2;
  Settle({End(claimed[0], To::Succeeded)});
  const std::vector<Settlement> asked{End(claimed[0], To::Succeeded), End(claimed[1], To::Succeeded), other};
  auto running = store().OpenTasks()->StillRunning("w.1", asked);
  ASSERT_TRUE(running) << running.error().message;
  EXPECT_EQ(*running, (std::vector{false, true, false}));
}

TEST_P(StoreContract, SettlesOfARescuedAttemptAreRefused) {
  const Task task = ClaimOne(AddDue(1)[0]);
  ASSERT_TRUE(incarnations().Retire("w.1"));
  ASSERT_TRUE(tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {task.key.id}}));
  EXPECT_EQ(Settle({End(task, To::Succeeded)}).verdicts[0], SettleVerdict::Refused);
  EXPECT_EQ(StateOf(task.key.id), TaskState::Waiting);
}

TEST_P(StoreContract, ATextThatIsTooLongIsCut) {
  const auto ids = AddDue(2);
  const auto claimed = Claim(ids);
  ASSERT_EQ(claimed.size(), 2U);
  const std::string text(kMaxText + 100, 'x');
  Settlement retry = End(claimed[0], To::Waiting, text);
  retry.failed_attempt = true;
  retry.error_class = std::string(100, 'c');
  Settle({retry, End(claimed[1], To::Succeeded, text)});
  const TaskRecord waiting = Get(ids[0]);
  EXPECT_EQ(waiting.task.last_error.size(), kMaxText);
  ASSERT_EQ(waiting.attempts.size(), 1U);
  EXPECT_EQ(waiting.attempts[0].message.size(), kMaxText);
  EXPECT_EQ(waiting.attempts[0].error_class.size(), 64U);
  EXPECT_EQ(Get(ids[1]).result.size(), kMaxText);
}

}  // namespace
}  // namespace millrace::engine
