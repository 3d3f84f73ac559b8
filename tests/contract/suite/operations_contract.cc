#include <algorithm>
#include <map>
#include <set>

#include "framework/base/time_text.h"
#include "framework/task/expiry.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using To = Settlement::To;

std::vector<std::uint64_t> Act(StoreTest& test, TaskAction action, std::vector<std::uint64_t> ids) {
  auto changed = test.operations().Apply(action, "tasks", ids, "me");
  EXPECT_TRUE(changed) << changed.error().message;
  return changed ? IdsOf(*changed) : std::vector<std::uint64_t>{};
}

// The ids of all pages, with pages of two.
std::vector<std::uint64_t> ListAll(StoreTest& test, const TaskFilter& filter) {
  std::vector<std::uint64_t> ids;
  std::string after;
  do {
    auto page = test.operations().List("tasks", filter, after, 2);
    EXPECT_TRUE(page) << page.error().message;
    if (!page) return ids;
    EXPECT_LE(page->records.size(), 2U);
    for (const TaskRecord& record : page->records) ids.push_back(record.task.key.id);
    after = page->next;
  } while (!after.empty() && ids.size() < 100);
  return ids;
}

TaskTotals TotalOf(StoreTest& test, const std::string& handler) {
  auto totals = test.operations().Totals();
  EXPECT_TRUE(totals) << totals.error().message;
  for (const TaskTotals& total : *totals) {
    if (total.handler == handler) return total;
  }
  return {};
}

void SettleOneOf(StoreTest& test, const std::string& handler, const std::string& batch, To to) {
  const auto id = test.Add({.handler = handler, .slice = 1, .run_at = test.Now() - hours(1), .batch = batch});
  test.Settle({End(test.ClaimOne(id), to, "no")});
}

TEST_P(StoreContract, TotalsOfTypesTellApartTheBatchesThatAreNamedAlone) {
  for (const char* batch : {"x", "y", "z"}) SettleOneOf(*this, "a", batch, To::Succeeded);
  SettleOneOf(*this, "a", "y", To::Failed);
  SettleOneOf(*this, "b", "z", To::Cancelled);
  const auto lines = [&](const std::vector<std::string>& batches) {
    const auto totals = operations().TypeTotals(batches);
    EXPECT_TRUE(totals) << totals.error().message;
    std::vector<std::string> out;
    for (const TaskTotals& one : *totals) {
      out.push_back(one.table + " " + one.handler + " " + one.batch + " " + std::to_string(one.succeeded) +
                    std::to_string(one.cancelled) + std::to_string(one.failed));
    }
    return out;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines({}), (Lines{"tasks a  301", "tasks b  010"}));
  EXPECT_EQ(lines({"y", "none"}), (Lines{"tasks a  200", "tasks a y 101", "tasks b  010"}));
  EXPECT_EQ(operations().Totals()->size(), 4U) << "and by each";
}

TEST_P(StoreContract, AGlanceAtBatchesIsOfThoseThatHaveNotEndedThenOfTheNewest) {
  const auto batches = store().OpenBatches();
  const auto glance = [&](std::size_t limit) {
    const auto seen = operations().GlanceAtBatches(limit);
    EXPECT_TRUE(seen) << seen.error().message;
    return seen ? *seen : BatchGlance{};
  };
  EXPECT_TRUE(glance(5).batches.empty());
  EXPECT_EQ(glance(5).all, 0U);
  for (const char* name : {"b1", "b2", "b3", "b4", "b5"}) {
    ASSERT_TRUE(batches->Make({.name = name, .home = {"main", "tasks"}, .made_by = "me"}));
    const std::string text = name;
    if (text == "b2" || text == "b5") continue;
    ASSERT_TRUE(batches->Close(name, "me"));
    if (text == "b3") continue;
    ASSERT_TRUE(batches->End({.name = name, .table = "tasks", .sums = {.succeeded = 1}}));
  }
  for (const char* plain : {"p1", "p2", "p3"}) SettleOneOf(*this, "a", plain, To::Succeeded);
  SettleOneOf(*this, "a", "b1", To::Succeeded);
  const auto names = [](const BatchGlance& seen) {
    std::string text;
    for (const auto& one : seen.batches)
      text += one.name + (one.state ? std::string(":") + ToString(*one.state) : "") + " ";
    return text;
  };
  const BatchGlance all = glance(10);
  EXPECT_EQ(names(all), "b5:open b3:closed b2:open b4:ended b1:ended p1 p2 p3 ");
  EXPECT_EQ(all.all, 8U);
  EXPECT_FALSE(all.more);
  EXPECT_TRUE(all.batches[0].created_at);
  const BatchGlance some = glance(2);
  EXPECT_EQ(names(some), "b5:open b3:closed p1 p2 ");
  EXPECT_EQ(some.all, 7U);
  EXPECT_TRUE(some.more) << "of those without a row there are more";
}

TEST_P(StoreContract, SubmitTakesEveryMember) {
  const WallTime at = Now() + hours(3) + Micros(7);
  const std::vector<NewTask> batch{{.handler = "a",
                                    .params = R"({"x":"ü"})",
                                    .biz_key = "k",
                                    .batch = "b",
                                    .priority = 0,
                                    .run_at = at,
                                    .held = true},
                                   {.handler = "a", .delay = hours(1)},
                                   {.handler = "a"}};
  auto report = operations().Submit("tasks", batch);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->added, 3U);
  const Task first = Get(report->ids[0]).task;
  EXPECT_EQ(first.params, R"({"x":"ü"})");
  EXPECT_EQ(first.biz_key, "k");
  EXPECT_EQ(first.batch, "b");
  EXPECT_EQ(first.priority, 0U);
  EXPECT_EQ(first.run_at, at);
  EXPECT_EQ(first.state, TaskState::Held);
  const Task second = Get(report->ids[1]).task;
  EXPECT_GT(second.run_at, Now() + hours(1) - std::chrono::minutes(1));
  EXPECT_LE(second.run_at, Now() + hours(1));
  EXPECT_EQ(second.priority, 5U);
  EXPECT_LE(Get(report->ids[2]).task.run_at, Now());
}

TEST_P(StoreContract, SubmitAddsNothingWhereOneTaskIsWrong) {
  for (const NewTask& wrong :
       {NewTask{.handler = "Not A Name"}, NewTask{.handler = "a", .params = "{"},
        NewTask{.handler = "a", .params = "[]"},
        NewTask{.handler = "a", .params = "{\"x\":\"" + std::string(kMaxParams, 'x') + "\"}"}}) {
    const std::vector<NewTask> batch{{.handler = "good", .biz_key = "k"}, wrong};
    auto report = operations().Submit("tasks", batch);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::Invalid) << report.error().message;
  }
  EXPECT_TRUE(Due().groups.empty());
  EXPECT_FALSE(operations().Find("tasks", "good", "k")) << "the key went with the task";
}

TEST_P(StoreContract, SubmitSaysWhichTaskIsWrong) {
  const std::vector<NewTask> batch{{.handler = "good"}, {.handler = "Not A Name"}};
  auto report = operations().Submit("tasks", batch);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("task 2 of the batch: "), std::string::npos)
      << report.error().message;
}

TEST_P(StoreContract, SubmitSaysWhichTaskTheDatabaseRefuses) {
  std::vector<NewTask> batch(1500, NewTask{.handler = "good"});
  batch[1].biz_key = batch[2].biz_key = "k";  // of which one is left out
  batch[1199].params = batch[1300].params = "{";
  auto report = operations().Submit("tasks", batch);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::Invalid);
  EXPECT_EQ(report.error().message.substr(0, 24), "task 1200 of the batch: ") << report.error().message;
  EXPECT_TRUE(Due().groups.empty());
}

TEST_P(StoreContract, ABatchHasAtMostSoManyRows) {
  const std::vector<NewTask> batch(kMaxSubmitRows + 1, NewTask{.handler = "a"});
  auto report = operations().Submit("tasks", batch);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::Invalid);
  EXPECT_TRUE(Due().groups.empty());
  auto changed =
      operations().Apply(TaskAction::Hold, "tasks", std::vector<std::uint64_t>(kMaxBatchRows + 1, 1), "me");
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::Invalid);
}

TEST_P(StoreContract, ATimeBeyondTheTablesIsMovedToTheirEnd) {
  using namespace std::chrono;
  const NewTask task{.handler = "a", .run_at = WallTime(sys_days(year(12000) / 1 / 1))};
  auto report = operations().Submit("tasks", std::span(&task, 1));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(Get(report->ids[0]).task.run_at, WallTime(sys_days(year(9999) / 12 / 31)));
}

TEST_P(StoreContract, OutcomesAreThoseOfTasksInEveryPool) {
  const auto waiting = Add();
  const auto held = Add({.state = 3});
  const auto done = AddDue(1)[0];
  Settle({End(ClaimOne(done), Settlement::To::Succeeded, "fine")});
  const auto skipped = AddDue(1)[0];
  Settle({End(ClaimOne(skipped), Settlement::To::Cancelled, "not needed")});
  const auto failed = AddDue(1)[0];
  Settle({End(ClaimOne(failed), Settlement::To::Failed, "no such customer")});
  const auto running = AddDue(1)[0];
  ClaimOne(running);
  const std::vector<std::uint64_t> ids{failed, 4'711, waiting, held, done, skipped, running};
  auto outcomes = operations().Outcomes("tasks", ids);
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  std::map<std::uint64_t, std::pair<TaskState, std::string>> by_id;
  for (const TaskOutcome& one : *outcomes) by_id[one.id] = {one.state, one.why};
  EXPECT_EQ(by_id, (decltype(by_id){{waiting, {TaskState::Waiting, ""}},
                                    {held, {TaskState::Held, ""}},
                                    {done, {TaskState::Succeeded, ""}},
                                    {skipped, {TaskState::Cancelled, "not needed"}},
                                    {failed, {TaskState::Failed, "no such customer"}},
                                    {running, {TaskState::Running, ""}}}));
  EXPECT_TRUE(operations().Outcomes("tasks", {})->empty());
  EXPECT_FALSE(operations().Outcomes("tasks", std::vector<std::uint64_t>(kMaxBatchRows + 1, 1)));
}

TEST_P(StoreContract, GetOfAnUnknownTaskSaysSo) {
  auto record = operations().Get({"tasks", 4711});
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::NotFound);
}

TEST_P(StoreContract, FindAsksTheLedgerAndTheWaitingRows) {
  const NewTask task{.handler = "a", .biz_key = "submitted"};
  auto report = operations().Submit("tasks", std::span(&task, 1));
  ASSERT_TRUE(report);
  const auto plain = Add({.handler = "b", .biz_key = "plain"});
  auto found = operations().Find("tasks", "a", "submitted");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->id, report->ids[0]);
  found = operations().Find("tasks", "", "plain");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, plain);
  EXPECT_EQ(operations().Find("tasks", "a", "plain").error().code, ErrorCode::NotFound);
}

TEST_P(StoreContract, FindTellsTheHolderOfAKeyInWhateverTable) {
  const auto two = GetParam().make({.tables = 2, .slices = 4});
  const auto operations = two->store().OpenOperations();
  const NewTask task{.handler = "a", .biz_key = "k"};
  auto report = operations->Submit("tasks_001", std::span(&task, 1));
  ASSERT_TRUE(report) << report.error().message;
  auto found = operations->Find("tasks_000", "a", "k");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (TaskKey{"tasks_001", report->ids[0]})) << "a key is the shard's";
}

// Whoever has it by the ledger, and whoever waits with one that nobody has entered.
TEST_P(StoreContract, AKeyOfTwoHandlersIsFoundByItsHandlerAlone) {
  const std::vector<NewTask> entered{{.handler = "a", .biz_key = "k"}, {.handler = "b", .biz_key = "k"}};
  const auto report = operations().Submit("tasks", entered);
  ASSERT_TRUE(report) << report.error().message;
  const auto third = Add({.handler = "a", .biz_key = "plain"});
  const auto fourth = Add({.handler = "b", .biz_key = "plain"});
  const std::pair<std::string, std::vector<std::uint64_t>> keys[] = {{"k", report->ids},
                                                                     {"plain", {third, fourth}}};
  for (const auto& [key, ids] : keys) {
    const auto found = operations().Find("tasks", "b", key);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->id, ids[1]);
    const auto any = operations().Find("tasks", "", key);
    ASSERT_FALSE(any) << key;
    EXPECT_EQ(any.error().code, ErrorCode::Invalid);
    for (const auto id : ids)
      EXPECT_NE(any.error().message.find(TaskName(id)), std::string::npos) << any.error().message;
  }
}

TEST_P(StoreContract, APageOfNoTasksIsRefused) {
  auto page = operations().List("tasks", {}, "", 0);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::Invalid);
}

TEST_P(StoreContract, ListPagesThroughAllPoolsByEachFilter) {
  const auto first = Add({.handler = "a", .slice = 1, .batch = "x"});
  const auto held = Add({.handler = "b", .slice = 2, .state = 3});
  const auto failing = Add({.handler = "a", .slice = 3, .biz_key = "k"});
  const auto done = Add({.handler = "b", .slice = 1, .batch = "x"});
  const auto last = Add({.handler = "c", .slice = 1});
  Settlement failed = End(ClaimOne(failing), To::Failed, "no");
  failed.error_class = "timeout";
  Settle({failed, End(ClaimOne(done), To::Succeeded)});
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ListAll(*this, {}), (Ids{first, held, last, failing, done}));
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Waiting}), (Ids{first, last}));
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Held}), (Ids{held}));
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Failed}), (Ids{failing}));
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Succeeded}), (Ids{done}));
  EXPECT_EQ(ListAll(*this, {.handler = "a"}), (Ids{first, failing}));
  EXPECT_EQ(ListAll(*this, {.batch = "x"}), (Ids{first, done}));
  EXPECT_EQ(ListAll(*this, {.key = "k"}), (Ids{failing}));
  EXPECT_EQ(ListAll(*this, {.error_class = "timeout"}), (Ids{failing}));
  EXPECT_EQ(ListAll(*this, {.error_class = "other"}), (Ids{}));
  EXPECT_EQ(ListAll(*this, {.slice = 1}), (Ids{first, last, done}));
  EXPECT_EQ(ListAll(*this, {.without_finished = true}), (Ids{first, held, last, failing}));
}

TEST_P(SqlStoreContract, NewestFirstWhatHasEndedComesByTheTimeOfItsEnd) {
  const auto waits = Add();
  const auto client = sql().NewClient();
  const auto ended = [&](To to, const char* at) {
    const auto id = Add();
    Settle({End(ClaimOne(id), to, "no")});
    const std::string pool = to == To::Failed ? "tasks_failed" : "tasks_done";
    EXPECT_TRUE(client->Run("UPDATE " + pool + " SET finished_at='2026-11-2" + at +
                            " 10:00:00.000000' WHERE id=" + std::to_string(id)));
    return id;
  };
  const auto second = ended(To::Failed, "2");
  const auto last = ended(To::Failed, "0");
  const auto first = ended(To::Failed, "3");
  const auto also_second = ended(To::Failed, "2");
  const auto old = ended(To::Succeeded, "0");
  const auto done = ended(To::Succeeded, "2");
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ListAll(*this, {.newest_first = true}),
            (Ids{waits, first, also_second, second, last, done, old}));
  const WallTime since = ParseTime("2026-11-22T10:00:00Z").value();
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Failed, .since = since, .newest_first = true}),
            (Ids{first, also_second, second}));
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Failed, .since = since}), (Ids{second, first, also_second}));
  EXPECT_EQ(ListAll(*this, {.state = TaskState::Waiting, .since = Now() + hours(1)}), Ids{});
}

TEST_P(StoreContract, RetryBringsAFailedTaskBackWithItsIdAndAttempt) {
  const auto id = Add({.slice = 1, .run_at = Now() - hours(1), .batch = "b"});
  Settle({End(ClaimOne(id), To::Failed, "no")});
  EXPECT_EQ(TotalOf(*this, "noop").failed, 1U);
  EXPECT_EQ(Act(*this, TaskAction::Retry, {id}), std::vector{id});
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.state, TaskState::Waiting);
  EXPECT_EQ(record.task.attempt, 1U);
  EXPECT_EQ(record.task.failures + record.task.crashes, 0U);
  EXPECT_EQ(record.task.slice, 1U);
  EXPECT_EQ(record.task.batch, "b");
  EXPECT_EQ(record.attempts.size(), 1U) << "the history stays";
  EXPECT_EQ(TotalOf(*this, "noop").failed, 0U);
  Settle({End(ClaimOne(id, 1), To::Succeeded)});
  EXPECT_EQ(StateOf(id), TaskState::Succeeded);
}

TEST_P(StoreContract, AnExpiryIsKeptInEveryPool) {
  const WallTime later = Now() + hours(3);
  const NewTask tasks[] = {{.handler = "noop", .slice = 1, .expires_at = later},
                           {.handler = "noop", .slice = 1, .expires_in = hours(2)},
                           {.handler = "noop", .slice = 1}};
  const WallTime before = Now();
  const auto added = operations().Submit("tasks", tasks);
  ASSERT_TRUE(added) << added.error().message;
  ASSERT_EQ(added->ids.size(), 3U);
  EXPECT_EQ(Get(added->ids[0]).task.expires_at, later);
  const auto in = Get(added->ids[1]).task.expires_at;
  ASSERT_TRUE(in);
  EXPECT_GE(*in, before + hours(2));
  EXPECT_LE(*in, Now() + hours(2));
  EXPECT_EQ(Get(added->ids[2]).task.expires_at, std::nullopt);
  std::vector<ScanRow> rows = ScanAll();
  ASSERT_EQ(rows.size(), 3U);
  const Task done = ClaimOne(added->ids[0]);
  const Task failed = ClaimOne(added->ids[1]);
  EXPECT_EQ(done.expires_at, later);
  EXPECT_EQ(failed.expires_at, in);
  Settle({End(done, To::Succeeded), End(failed, To::Failed, "no")});
  EXPECT_EQ(Get(added->ids[0]).task.expires_at, later);
  EXPECT_EQ(Get(added->ids[1]).task.expires_at, in);
  EXPECT_EQ(Act(*this, TaskAction::Cancel, {added->ids[1]}), std::vector{added->ids[1]});
  EXPECT_EQ(Get(added->ids[1]).task.expires_at, in);
}

TEST_P(StoreContract, WhatIsRetriedDoesNotExpireUnlessItsTimeIsYetToCome) {
  const WallTime later = Now() + hours(3);
  const NewTask tasks[] = {{.handler = "noop", .slice = 1, .expires_at = later},
                           {.handler = "noop", .slice = 1, .expires_in = std::chrono::milliseconds(1)},
                           {.handler = "noop", .slice = 1}};
  const auto added = operations().Submit("tasks", tasks);
  ASSERT_TRUE(added) << added.error().message;
  const std::vector<std::uint64_t> ids = added->ids;
  std::vector<Settlement> ends;
  for (const std::uint64_t id : ids) ends.push_back(End(ClaimOne(id), To::Failed, "no"));
  Settle(ends);
  EXPECT_EQ(Act(*this, TaskAction::Retry, ids), ids);
  EXPECT_EQ(Get(ids[0]).task.expires_at, later);
  EXPECT_EQ(Get(ids[1]).task.expires_at, kNeverExpires);
  EXPECT_EQ(Get(ids[2]).task.expires_at, kNeverExpires) << "its handler's configuration might say otherwise";
}

TEST_P(StoreContract, RetryMakesAWaitingTaskDueNow) {
  const auto id = AddDue(1)[0];
  Settlement retry = End(ClaimOne(id), To::Waiting, "no");
  retry.failed_attempt = true;
  retry.delay = hours(1);
  Settle({retry});
  EXPECT_EQ(Act(*this, TaskAction::Retry, {id}), std::vector{id});
  const Task task = Get(id).task;
  EXPECT_LE(task.run_at, Now());
  EXPECT_EQ(task.failures, 0U);
}

TEST_P(StoreContract, RetryLeavesADueTaskItsPlaceInTheOrder) {
  const auto id = AddDue(1)[0];
  const WallTime due = Get(id).task.run_at;
  EXPECT_EQ(Act(*this, TaskAction::Retry, {id}), std::vector{id});
  EXPECT_EQ(Get(id).task.run_at, due);
}

TEST_P(StoreContract, RetryTakesBackACancelThatHasNotComeTrue) {
  const auto id = AddDue(1)[0];
  const Task running = ClaimOne(id);
  Act(*this, TaskAction::Cancel, {id});
  Settlement retry = End(running, To::Waiting, "no");
  retry.failed_attempt = true;
  Settle({retry});
  EXPECT_TRUE(Get(id).task.cancel) << "it is heeded before the next start";
  EXPECT_EQ(Act(*this, TaskAction::Retry, {id}), std::vector{id});
  EXPECT_FALSE(Get(id).task.cancel);
}

// A new task, brought into this state.
std::uint64_t TaskIn(StoreTest& test, TaskState state) {
  if (state == TaskState::Held) return test.Add({.slice = 1, .state = 3});
  const auto id = test.AddDue(1)[0];
  if (state == TaskState::Waiting) return id;
  const Task running = test.ClaimOne(id);
  if (state == TaskState::Succeeded) test.Settle({End(running, To::Succeeded)});
  if (state == TaskState::Cancelled) test.Settle({End(running, To::Cancelled)});
  if (state == TaskState::Failed) test.Settle({End(running, To::Failed, "no")});
  return id;
}

TEST_P(StoreContract, EachActionChangesTheTasksOfThoseStatesThatItFitsAndNoOthers) {
  for (const TaskAction action :
       {TaskAction::Retry, TaskAction::Cancel, TaskAction::Hold, TaskAction::Release}) {
    std::map<std::uint64_t, TaskState> before;
    std::vector<std::uint64_t> ids{4711};  // in no pool
    std::vector<std::uint64_t> fit;
    for (const TaskState state : {TaskState::Waiting, TaskState::Running, TaskState::Held,
                                  TaskState::Succeeded, TaskState::Cancelled, TaskState::Failed}) {
      const auto id = TaskIn(*this, state);
      ASSERT_EQ(StateOf(id), state);
      before[id] = state;
      ids.push_back(id);
      if (StateAfter(action, state)) fit.push_back(id);
    }
    EXPECT_EQ(Act(*this, action, ids), fit) << ToString(action);
    for (const auto& [id, state] : before)
      EXPECT_EQ(StateOf(id), StateAfter(action, state).value_or(state))
          << ToString(action) << " " << ToString(state);
  }
}

TEST_P(StoreContract, CancelEndsWhatWaitsOrFailedAndAsksWhatRuns) {
  const auto ids = AddDue(4);
  const auto held = Add({.slice = 1, .state = 3});
  const Task running = ClaimOne(ids[1]);
  Settle({End(ClaimOne(ids[2]), To::Failed, "no"), End(ClaimOne(ids[3]), To::Succeeded)});
  EXPECT_EQ(Act(*this, TaskAction::Cancel, {ids[0], ids[1], ids[2], ids[3], held}),
            (std::vector{ids[0], ids[1], ids[2], held}));
  EXPECT_EQ(StateOf(ids[0]), TaskState::Cancelled);
  EXPECT_EQ(StateOf(ids[1]), TaskState::Running);
  EXPECT_TRUE(Get(ids[1]).task.cancel);
  EXPECT_EQ(StateOf(ids[2]), TaskState::Cancelled);
  EXPECT_EQ(StateOf(ids[3]), TaskState::Succeeded);
  EXPECT_EQ(StateOf(held), TaskState::Cancelled);
  const TaskTotals total = TotalOf(*this, "noop");
  EXPECT_EQ(total.cancelled, 3U);
  EXPECT_EQ(total.failed, 0U);
  EXPECT_EQ(total.succeeded, 1U);
}

// Between the look and the act it was claimed: whoever chose what waits did not mean to cut off what runs.
TEST_P(StoreContract, WhatWasChosenByItsStateIsLeftAloneOnceItHasAnother) {
  const auto ids = AddDue(2);
  const auto held = Add({.slice = 1, .state = 3});
  ClaimOne(ids[0]);
  Author waiting("me", "all that match state=waiting");
  waiting.state = TaskState::Waiting;
  const std::vector<std::uint64_t> chosen{ids[0], ids[1], held};
  auto cancelled = operations().Apply(TaskAction::Cancel, "tasks", chosen, waiting);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(IdsOf(*cancelled), std::vector{ids[1]});
  EXPECT_FALSE(Get(ids[0]).task.cancel);
  EXPECT_EQ(StateOf(held), TaskState::Held);
  auto edited = operations().Edit({.priority = 1}, "tasks", chosen, waiting);
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_TRUE(edited->empty());
  waiting.state = TaskState::Succeeded;
  auto none = operations().Apply(TaskAction::Cancel, "tasks", chosen, waiting);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->empty());
}

TEST_P(StoreContract, AnActTellsWhatItsTasksWere) {
  const auto ids = AddDue(2);
  ClaimOne(ids[1]);
  auto changed = operations().Apply(TaskAction::Cancel, "tasks", ids, "me");
  ASSERT_TRUE(changed) << changed.error().message;
  ASSERT_EQ(IdsOf(*changed), ids);
  EXPECT_EQ((*changed)[0].before, TaskState::Waiting);
  EXPECT_EQ((*changed)[1].before, TaskState::Running);
}

TEST_P(StoreContract, APauseShowsInEveryDueMapUntilItIsLifted) {
  const auto set = [&](const char* what, bool on) {
    auto changed = operations().SetPause(what, "me", on);
    EXPECT_TRUE(changed) << changed.error().message;
    return changed && *changed;
  };
  EXPECT_TRUE(Due().pauses.empty());
  EXPECT_TRUE(set("shard:main", true));
  EXPECT_TRUE(set("handler:award_points", true));
  EXPECT_FALSE(set("shard:main", true)) << "it stands already";
  EXPECT_EQ(Due().pauses, (std::vector<std::string>{"handler:award_points", "shard:main"}));
  auto map = tasks().Due({});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->pauses.size(), 2U) << "also for who owns nothing";
  auto pauses = operations().Pauses();
  ASSERT_TRUE(pauses) << pauses.error().message;
  ASSERT_EQ(pauses->size(), 2U);
  EXPECT_EQ((*pauses)[1].what, "shard:main");
  EXPECT_EQ((*pauses)[1].actor, "me");
  EXPECT_LE((*pauses)[1].since, Now());
  EXPECT_TRUE(set("shard:main", false));
  EXPECT_FALSE(set("shard:main", false));
  EXPECT_EQ(Due().pauses, std::vector<std::string>{"handler:award_points"});
  for (const std::string& wrong : {std::string(), std::string(kMaxPauseName + 1, 'x')}) {
    auto refused = operations().SetPause(wrong, "me", true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::Invalid);
  }
}

TEST_P(StoreContract, AnOverlongActorIsCut) {
  ASSERT_TRUE(operations().SetPause("cluster", std::string(300, 'a'), true));
  auto pauses = operations().Pauses();
  ASSERT_TRUE(pauses) << pauses.error().message;
  ASSERT_EQ(pauses->size(), 1U);
  EXPECT_EQ(pauses->front().actor, std::string(190, 'a'));
}

}  // namespace
}  // namespace millrace::engine
