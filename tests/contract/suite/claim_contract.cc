#include <algorithm>
#include <thread>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;

TEST_P(StoreContract, ClaimReturnsWholeTasksAndRaisesTheAttempt) {
  const auto id = Add({.handler = "award.points",
                       .params = R"({"payment_id":1})",
                       .slice = 3,
                       .priority = 2,
                       .biz_key = "pay-1",
                       .batch = "november"});
  const Task task = ClaimOne(id);
  EXPECT_EQ(task.key, (TaskKey{"tasks", id}));
  EXPECT_EQ(task.slice, 3U);
  EXPECT_EQ(task.state, TaskState::Running);
  EXPECT_EQ(task.handler, "award.points");
  EXPECT_EQ(task.params, R"({"payment_id":1})");
  EXPECT_EQ(task.priority, 2U);
  EXPECT_EQ(task.biz_key, "pay-1");
  EXPECT_EQ(task.batch, "november");
  EXPECT_EQ(task.attempt, 1U);
  EXPECT_EQ(task.failures, 0U);
  EXPECT_EQ(task.claimed_by, "w.1");
  EXPECT_TRUE(task.claimed_at.has_value());
}

TEST_P(StoreContract, ClaimTakesOnlyRowsThatWait) {
  const auto held = Add({.state = 3});
  const auto running = AddDue(1)[0];
  ClaimOne(running);
  EXPECT_TRUE(Claim({held, running, 999'999}).empty());
  EXPECT_EQ(StateOf(held), TaskState::Held);
  EXPECT_TRUE(Claim({running}, 1).empty()) << "a running row has the attempt, but does not wait";
}

TEST_P(StoreContract, ClaimTakesOnlyTheAttemptSeen) {
  const auto id = AddDue(1)[0];
  EXPECT_TRUE(Claim({id}, 1).empty());
  EXPECT_EQ(Claim({id}, 0).size(), 1U);
}

TEST_P(StoreContract, ClaimTakesOnlyRowsThatAreDue) {
  const auto id = Add({.run_at = Now() + hours(1)});
  EXPECT_TRUE(Claim({id}).empty());
}

TEST_P(StoreContract, DeadOrUnknownIncarnationClaimsNothing) {
  const auto id = AddDue(1)[0];
  const auto unknown = tasks().Claim({.table = "tasks", .incarnation = "w.9", .ids = {id}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::Cancelled);
  ASSERT_TRUE(incarnations().Retire("w.1"));
  const auto dead = tasks().Claim({.table = "tasks", .incarnation = "w.1", .ids = {id}});
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, ErrorCode::Cancelled);
  EXPECT_EQ(StateOf(id), TaskState::Waiting);
}

TEST_P(StoreContract, ClaimOfAFullBatchInAnyOrderTakesAll) {
  std::vector<NewTask> added(kMaxBatchRows, NewTask{.handler = "noop"});
  auto report = operations().Submit("tasks", added);
  ASSERT_TRUE(report) << report.error().message;
  auto ids = report->ids;
  std::reverse(ids.begin(), ids.end());
  EXPECT_EQ(Claim(ids).size(), kMaxBatchRows);
  ids.push_back(1);
  const auto over = tasks().Claim({.table = "tasks", .incarnation = "w.1", .ids = ids});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ErrorCode::Invalid);
}

TEST_P(StoreContract, WhatCannotBeClaimedGoesToTheFailedPoolWithItsReason) {
  const auto id = Add({.biz_key = "k", .attempt = kLastAttempt});
  const auto other = Add({});
  const ClaimRequest request{
      .table = "tasks", .incarnation = "w.1", .attempt = kLastAttempt, .ids = {id, other}};
  auto failed = tasks().FailUnclaimed(request, "no more numbers");
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(*failed, std::vector{id}) << "the other has another attempt";
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Failed);
  EXPECT_EQ(record.task.last_error, "no more numbers");
  EXPECT_EQ(record.task.attempt, kLastAttempt);
  EXPECT_EQ(StateOf(other), TaskState::Waiting);
  auto totals = operations().Totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->at(0).failed, 1U);
  auto page = operations().List("tasks", {.error_class = kUnclaimable}, "", 10);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->records.size(), 1U);
  failed = tasks().FailUnclaimed(request, "again");
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->empty());
}

TEST_P(StoreContract, NewTablesTakeNoNumberThatClaimsAndSettlesCouldNotRaise) {
  EXPECT_FALSE(fixture().Insert("tasks", {.attempt = 4'294'967'295}));
  EXPECT_FALSE(fixture().Insert("tasks", {.failures = 4'294'967'295}));
  EXPECT_TRUE(fixture().Insert("tasks", {.attempt = kMaxCount, .failures = kMaxCount}));
}

TEST_P(StoreContract, RacingClaimersGetEachRowOnce) {
  const auto ids = AddDue(60);
  Register("w.2");
  std::vector<std::uint64_t> taken[2];
  const auto claim = [&](int who) {
    const auto session = store().OpenTasks();
    for (std::size_t i = 0; i < ids.size(); i += 5) {
      ClaimRequest request{.table = "tasks", .incarnation = who == 0 ? "w.1" : "w.2"};
      request.ids.assign(ids.begin() + static_cast<long>(i), ids.begin() + static_cast<long>(i) + 5);
      auto claimed = session->Claim(request);
      // A lock wait is an answer too: nothing was claimed, so the same again.
      while (!claimed && claimed.error().code == ErrorCode::Conflict) claimed = session->Claim(request);
      ASSERT_TRUE(claimed) << claimed.error().message;
      for (const Task& task : *claimed) taken[who].push_back(task.key.id);
    }
  };
  std::thread other([&] { claim(1); });
  claim(0);
  other.join();
  std::vector<std::uint64_t> all = taken[0];
  all.insert(all.end(), taken[1].begin(), taken[1].end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, ids);
}

TEST_P(StoreContract, ResolveMakesALostClaimHarmlessAndAdoptsWhatItReached) {
  const auto ids = AddDue(3);
  Claim({ids[0]});  // the part of the statement that arrived; its reply is taken as lost
  Register("w.2");
  Claim({ids[2]}, 0, "w.2");
  auto adopted = tasks().Resolve({.table = "tasks", .incarnation = "w.1", .attempt = 0, .ids = ids});
  ASSERT_TRUE(adopted) << adopted.error().message;
  ASSERT_EQ(adopted->size(), 1U);
  EXPECT_EQ((*adopted)[0].key.id, ids[0]);
  EXPECT_EQ((*adopted)[0].attempt, 2U);
  EXPECT_TRUE(Claim({ids[1]}, 0).empty()) << "a statement still under way must find nothing";
  EXPECT_EQ(ClaimOne(ids[1], 1).attempt, 2U);
  EXPECT_EQ(Get(ids[2]).task.claimed_by, "w.2");
}

TEST_P(StoreContract, ResolveTwiceAdoptsNothingTheSecondTime) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  const ClaimRequest request{.table = "tasks", .incarnation = "w.1", .attempt = 0, .ids = {id}};
  auto first = tasks().Resolve(request);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), 1U);
  auto second = tasks().Resolve(request);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->empty());
}

TEST_P(StoreContract, AdoptRaisesTheAttemptOfMyRowsAlone) {
  const auto ids = AddDue(2);
  Register("w.2");
  ClaimOne(ids[0]);
  ClaimOne(ids[1], 0, "w.2");
  const auto claimed_at = Get(ids[0]).task.claimed_at;
  auto adopted = tasks().Adopt({.table = "tasks", .incarnation = "w.1", .attempt = 1, .ids = ids});
  ASSERT_TRUE(adopted) << adopted.error().message;
  ASSERT_EQ(adopted->size(), 1U);
  EXPECT_EQ((*adopted)[0].attempt, 2U);
  EXPECT_EQ((*adopted)[0].key.id, ids[0]);
  EXPECT_GT(Get(ids[0]).task.claimed_at, claimed_at) << "a claim of its own";
  adopted = tasks().Adopt({.table = "tasks", .incarnation = "w.1", .attempt = 1, .ids = ids});
  ASSERT_TRUE(adopted);
  EXPECT_TRUE(adopted->empty());
}

TEST_P(StoreContract, RescueFreesRowsOfTheDeadAndNotesIt) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  ASSERT_TRUE(incarnations().Retire("w.1"));
  auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}});
  ASSERT_TRUE(rescued) << rescued.error().message;
  EXPECT_EQ(*rescued, std::vector{id});
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Waiting);
  EXPECT_EQ(record.task.claimed_by, "");
  EXPECT_EQ(record.task.attempt, 1U);
  EXPECT_EQ(record.task.failures, 0U);
  ASSERT_EQ(record.attempts.size(), 1U);
  EXPECT_EQ(record.attempts[0].kind, "rescued");
  EXPECT_EQ(record.attempts[0].incarnation, "w.1");
  const std::uint64_t asked[] = {id, id + 1};
  EXPECT_EQ(operations().Rescues("tasks", asked).value(), (RescueCounts{{id, 1}}));
  EXPECT_EQ(operations().Rescues("tasks", {}).value(), RescueCounts());
  Register("w.2");
  EXPECT_EQ(ClaimOne(id, 1, "w.2").attempt, 2U);
}

TEST_P(StoreContract, RescueLeavesRowsOfTheLiving) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}});
  ASSERT_TRUE(rescued);
  EXPECT_TRUE(rescued->empty());
  EXPECT_EQ(StateOf(id), TaskState::Running);
}

TEST_P(StoreContract, RescueNeedsTheAttemptAndTheClaimerSeen) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  ASSERT_TRUE(incarnations().Retire("w.1"));
  for (const RescueRequest& wrong :
       {RescueRequest{"tasks", "w.1", 2, {id}}, RescueRequest{"tasks", "gone", 1, {id}}}) {
    auto rescued = tasks().Rescue(wrong);
    ASSERT_TRUE(rescued);
    EXPECT_TRUE(rescued->empty());
  }
}

TEST_P(StoreContract, CancelledTellsWhichRunningTasksAreAskedToStop) {
  const auto ids = AddDue(2);
  ASSERT_EQ(Claim(ids).size(), 2U);
  auto asked = operations().Apply(TaskAction::Cancel, "tasks", std::span(&ids[1], 1), "me");
  ASSERT_TRUE(asked) << asked.error().message;
  const std::vector<TaskKey> running{{"tasks", ids[0]}, {"tasks", ids[1]}};
  auto cancelled = tasks().Cancelled("w.1", running);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(*cancelled, (std::vector<TaskKey>{{"tasks", ids[1]}}));
}

TEST_P(StoreContract, ProgressIsSavedForTheAttemptThatRuns) {
  const auto ids = AddDue(2);
  ASSERT_EQ(Claim(ids).size(), 2U);
  const std::vector<TaskProgress> progress{{{"tasks", ids[0]}, 1, "half"},
                                           {{"tasks", ids[1]}, 7, "not this attempt"}};
  auto locked = tasks().SaveProgress("w.1", progress);
  ASSERT_TRUE(locked) << locked.error().message;
  EXPECT_TRUE(locked->empty());
  EXPECT_EQ(Get(ids[0]).task.progress, "half");
  EXPECT_EQ(Get(ids[1]).task.progress, "");
}

}  // namespace
}  // namespace millrace::engine
