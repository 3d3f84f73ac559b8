#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using To = Settlement::To;

// Claims the task and asks for its key. Empty: it has it.
std::string HolderFor(StoreTest& test, std::uint64_t id, Task* claimed = nullptr, std::uint32_t attempt = 0) {
  const Task task = test.ClaimOne(id, attempt);
  if (claimed != nullptr) *claimed = task;
  auto verdicts = test.tasks().ConfirmKeys("w.1", std::span(&task, 1));
  EXPECT_TRUE(verdicts) << verdicts.error().message;
  if (!verdicts || verdicts->size() != 1) return "no verdict";
  EXPECT_EQ((*verdicts)[0].mine, (*verdicts)[0].holder.empty());
  return (*verdicts)[0].holder;
}

SubmitReport SubmitKey(StoreTest& test, const std::string& key, const std::string& handler = "noop") {
  const NewTask task{.handler = handler, .biz_key = key};
  auto report = test.operations().Submit("tasks", std::span(&task, 1));
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : SubmitReport{.ids = {0}, .duplicates = {""}};
}

TEST_P(StoreContract, SubmitLeavesOutTasksWhoseKeyIsTakenAlsoWithinTheBatch) {
  const std::vector<NewTask> batch{{.handler = "a", .biz_key = "k"},
                                   {.handler = "a", .biz_key = "k"},
                                   {.handler = "b", .biz_key = "k"},
                                   {.handler = "a"},
                                   {.handler = "a"}};
  auto report = operations().Submit("tasks", batch);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->added, 4U);
  ASSERT_EQ(report->ids.size(), 5U);
  EXPECT_EQ(report->ids[1], 0U);
  EXPECT_EQ(report->duplicates[1], TaskName(report->ids[0]));
  EXPECT_EQ(report->duplicates[0], "");
  EXPECT_NE(report->ids[2], 0U) << "a key is a handler's own";
  auto again = operations().Submit("tasks", batch);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->added, 2U);
  EXPECT_EQ(again->duplicates[0], TaskName(report->ids[0]));
  EXPECT_EQ(again->duplicates[2], TaskName(report->ids[2]));
}

TEST_P(StoreContract, OfTwoPlainInsertsWithOneKeyTheFirstStartedHasIt) {
  const auto first = Add({.slice = 1, .biz_key = "k"});
  const auto second = Add({.slice = 1, .biz_key = "k"});
  EXPECT_EQ(HolderFor(*this, second), "");
  EXPECT_EQ(HolderFor(*this, first), TaskName(second));
}

TEST_P(StoreContract, AKeyIsFoundWithWhoeverHasItAndNotWithATwinThatWaits) {
  const auto failed = Add({.handler = "a", .slice = 1, .biz_key = "k"});
  Task task;
  ASSERT_EQ(HolderFor(*this, failed, &task), "");
  Settle({End(task, To::Failed, "no")});
  Add({.handler = "a", .slice = 1, .biz_key = "k"});
  for (const char* handler : {"a", ""}) {
    const auto found = operations().Find("tasks", handler, "k");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->id, failed) << "handler '" << handler << "'";
  }
}

TEST_P(StoreContract, AKeyWhoseEntryIsVoidIsFoundWithWhoWaitsForIt) {
  const auto find = [&](const char* handler) {
    const auto found = operations().Find("tasks", handler, "k");
    return found ? found->id : 0;
  };
  const auto lost = SubmitKey(*this, "k", "a").ids[0];
  ASSERT_TRUE(fixture().Remove("tasks", lost));
  EXPECT_EQ(find("a"), 0U) << "a failover took it";
  const auto other = SubmitKey(*this, "k", "b").ids[0];
  const auto twin = Add({.handler = "a", .biz_key = "k"});
  EXPECT_EQ(find("a"), twin);
  EXPECT_EQ(find("b"), other);
  EXPECT_EQ(find(""), other) << "of the handlers the one whose entry holds";
  const auto kept = Add({.handler = "c", .slice = 1, .biz_key = "k"});
  Task task;
  ASSERT_EQ(HolderFor(*this, kept, &task), "");
  Settle({End(task, To::Succeeded)});
  EXPECT_EQ(find("c"), kept);
  ASSERT_TRUE(fixture().ExpireKeys());
  EXPECT_EQ(find("c"), kept) << "nobody else has it";
  const auto next = Add({.handler = "c", .biz_key = "k"});
  EXPECT_EQ(find("c"), next) << "it may have it";
}

TEST_P(StoreContract, KeysThatAreEnteredAreConfirmedAgain) {
  const auto id = SubmitKey(*this, "k").ids[0];
  Task task;
  EXPECT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Waiting)});
  EXPECT_EQ(HolderFor(*this, id, nullptr, 1), "");
}

TEST_P(StoreContract, ATaskThatIsNoLongerMineGetsNoVerdictAndEntersNothing) {
  const auto id = Add({.biz_key = "k"});
  Task task = ClaimOne(id);
  task.attempt = 5;
  auto verdicts = tasks().ConfirmKeys("w.1", std::span(&task, 1));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_TRUE(verdicts->empty());
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], "");
}

TEST_P(StoreContract, AKeyStaysTakenAfterItsTaskFinishedAndItsRowWasPruned) {
  const auto id = Add({.biz_key = "k"});
  Task task;
  ASSERT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Succeeded)});
  ASSERT_TRUE(fixture().Remove("tasks", id));
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(id));
  EXPECT_EQ(HolderFor(*this, Add({.biz_key = "k"})), TaskName(id));
}

TEST_P(StoreContract, AKeyIsFreeOnceItsRetentionHasPassed) {
  const auto id = SubmitKey(*this, "k").ids[0];
  Task task;
  ASSERT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Succeeded)});
  ASSERT_TRUE(fixture().ExpireKeys());
  const auto other = Add({.biz_key = "k"});
  EXPECT_EQ(HolderFor(*this, other), "");
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(other));
}

TEST_P(StoreContract, AnEntryWhoseTaskWasLostBeforeItEndedIsVoid) {
  const auto lost = SubmitKey(*this, "k").ids[0];
  ASSERT_TRUE(fixture().Remove("tasks", lost));
  const auto next = SubmitKey(*this, "k");
  EXPECT_EQ(next.duplicates[0], "");
  EXPECT_NE(next.ids[0], 0U);
  EXPECT_NE(next.ids[0], lost);
  ASSERT_TRUE(fixture().Remove("tasks", next.ids[0]));
  EXPECT_EQ(HolderFor(*this, Add({.biz_key = "k"})), "");
}

TEST_P(StoreContract, CancellingATaskThatNeverStartedFreesItsKey) {
  const auto id = SubmitKey(*this, "k").ids[0];
  ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", std::span(&id, 1), "me"));
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], "");
}

TEST_P(StoreContract, CancellingATaskThatHasStartedKeepsItsKey) {
  const auto id = SubmitKey(*this, "k").ids[0];
  Task task;
  ASSERT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Waiting)});
  ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", std::span(&id, 1), "me"));
  ASSERT_EQ(StateOf(id), TaskState::Cancelled);
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(id));
}

TEST_P(StoreContract, ATaskThatWasClaimedAndNeverStartedFreesItsKeyHoweverItIsCancelled) {
  for (const bool by_person : {true, false}) {
    const auto id = SubmitKey(*this, "k").ids[0];
    ASSERT_NE(id, 0U);
    Task task;
    ASSERT_EQ(HolderFor(*this, id, &task), "");
    Settlement back = End(task, To::Waiting);  // a worker that stops gives it back
    back.started = false;
    Settle({back});
    if (by_person) {
      ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", std::span(&id, 1), "me"));
    } else {
      ASSERT_EQ(HolderFor(*this, id, &task, 1), "");
      Settlement cancelled = End(task, To::Cancelled, "cancelled before it started");
      cancelled.started = false;
      Settle({cancelled});
    }
    ASSERT_EQ(StateOf(id), TaskState::Cancelled);
    const SubmitReport next = SubmitKey(*this, "k");
    EXPECT_EQ(next.duplicates[0], "") << by_person;
    ASSERT_TRUE(fixture().Remove("tasks", next.ids[0]));
  }
}

TEST_P(StoreContract, ATaskThatStartedInAnEarlierAttemptKeepsItsKeyWhenItIsCancelledBeforeTheNext) {
  const auto id = SubmitKey(*this, "k").ids[0];
  Task task;
  ASSERT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Waiting)});
  ASSERT_EQ(HolderFor(*this, id, &task, 1), "");
  Settlement cancelled = End(task, To::Cancelled);
  cancelled.started = false;
  Settle({cancelled});
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(id));
}

// Nobody can tell how far a worker got that died with the task in its hands.
TEST_P(StoreContract, ATaskThatWasRescuedKeepsItsKeyWhenItIsCancelled) {
  const auto id = SubmitKey(*this, "k").ids[0];
  ASSERT_EQ(HolderFor(*this, id), "");
  ASSERT_TRUE(incarnations().Retire("w.1"));
  ASSERT_TRUE(tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}}));
  ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", std::span(&id, 1), "me"));
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(id));
}

TEST_P(StoreContract, SkippingADuplicateLeavesTheHoldersEntryAlone) {
  const auto holder = Add({.biz_key = "k"});
  const auto copy = Add({.biz_key = "k"});
  ASSERT_EQ(HolderFor(*this, holder), "");
  Task task;
  ASSERT_EQ(HolderFor(*this, copy, &task), TaskName(holder));
  Settle({End(task, To::Cancelled, "duplicate of " + TaskName(holder))});
  ASSERT_TRUE(fixture().ExpireKeys());
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(holder));
}

TEST_P(StoreContract, AFailedTaskKeepsItsKeyAndHasItWhenItIsRetried) {
  const auto id = SubmitKey(*this, "k").ids[0];
  Task task;
  ASSERT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Failed, "no")});
  ASSERT_TRUE(fixture().ExpireKeys());
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], TaskName(id));
  ASSERT_TRUE(operations().Apply(TaskAction::Retry, "tasks", std::span(&id, 1), "me"));
  EXPECT_EQ(HolderFor(*this, id, nullptr, 1), "");
}

TEST_P(StoreContract, ADuplicateIsToldTheParamsThatStandWhereTheyAreOthers) {
  const std::vector<NewTask> first{{.handler = "a", .params = R"({"n":1})", .biz_key = "k"},
                                   {.handler = "a", .params = R"({"n":2})", .biz_key = "k"}};
  const auto twins = operations().Submit("tasks", first);
  ASSERT_TRUE(twins) << twins.error().message;
  EXPECT_EQ(twins->standing, (std::vector<std::string>{"", R"({"n":1})"}));
  const std::vector<NewTask> again{{.handler = "a", .params = R"({"n":1})", .biz_key = "k"},
                                   {.handler = "a", .params = R"({"n":3})", .biz_key = "k"},
                                   {.handler = "b", .params = R"({"n":3})", .biz_key = "k"}};
  for (int i = 0; i < 2; ++i) {  // the second time the keys are looked up first
    const auto report = operations().Submit("tasks", again);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->standing, (std::vector<std::string>{"", R"({"n":1})", ""}));
  }
}

// Nobody reads its rows any more, and its keys stay what they are until their time has passed.
TEST_P(SqlStoreContract, AKeyOfATaskWhoseTableWasDroppedIsADuplicateUntilItsTimeHasPassed) {
  const auto id = SubmitKey(*this, "k").ids[0];
  Task task;
  ASSERT_EQ(HolderFor(*this, id, &task), "");
  Settle({End(task, To::Succeeded)});
  const auto moved = sql().NewClient()->Run("UPDATE tasks_keys SET task_table='tasks_999'");
  ASSERT_TRUE(moved) << moved.error().message;
  const std::string holder = "tasks_999/" + std::to_string(id);
  for (int i = 0; i < 2; ++i) {  // the second time the keys are looked up first
    const SubmitReport report = SubmitKey(*this, "k");
    EXPECT_EQ(report.duplicates[0], holder);
    EXPECT_EQ(report.standing, std::vector<std::string>{""});
  }
  ASSERT_TRUE(fixture().ExpireKeys());
  EXPECT_EQ(SubmitKey(*this, "k").duplicates[0], "");
}

}  // namespace
}  // namespace millrace::engine
