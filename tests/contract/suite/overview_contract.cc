#include <algorithm>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using To = Settlement::To;

std::map<std::string, HandlerOverview> Overview(StoreTest& test, std::vector<TableName> tables = {"tasks"}) {
  auto waiting = test.store().OpenOverview()->Waiting(tables);
  EXPECT_TRUE(waiting) << waiting.error().message;
  return waiting ? ByHandler(*waiting) : std::map<std::string, HandlerOverview>{};
}

FailedOverview Failures(StoreTest& test) {
  const auto totals = test.operations().Totals();
  EXPECT_TRUE(totals) << totals.error().message;
  const TableName table = "tasks";
  auto failed = test.store().OpenOverview()->Failed(std::span(&table, 1), *totals);
  EXPECT_TRUE(failed) << failed.error().message;
  return failed ? *failed : FailedOverview{};
}

void AddMany(StoreTest& test, std::size_t count, const std::string& handler,
             const TableName& table = "tasks") {
  const std::vector<NewTask> tasks(count, NewTask{.handler = handler});
  const auto added = test.operations().Submit(table, tasks);
  ASSERT_TRUE(added) << added.error().message;
}

void FailOne(StoreTest& test, const std::string& handler, const std::string& error_class,
             const std::string& why) {
  Settlement end = End(test.ClaimOne(test.AddDue(1, handler)[0]), To::Failed, why);
  end.error_class = error_class;
  test.Settle({end});
}

TEST_P(StoreContract, AnOverviewTellsTheStatesOfEachHandler) {
  const WallTime now = Now();
  Add({.handler = "a", .slice = 0, .run_at = now - hours(2)});
  Add({.handler = "a", .slice = 3, .run_at = now - hours(1)});
  Add({.handler = "a", .slice = 3, .run_at = now + hours(1)});
  Add({.handler = "b", .slice = 3, .run_at = now + hours(3)});
  Add({.handler = "b", .slice = 2, .run_at = now + hours(2)});
  Add({.handler = "b", .state = 3});
  Add({.handler = "c", .state = 3});
  Add({.handler = "c", .state = 3});
  ClaimOne(AddDue(1, "d")[0]);
  const auto all = Overview(*this);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all.at("a").waiting, (Counted{3, false}));
  EXPECT_EQ(all.at("a").running, Counted{});
  EXPECT_EQ(all.at("a").held, Counted{});
  EXPECT_EQ(all.at("a").oldest_due, now - hours(2));
  EXPECT_EQ(all.at("a").next_due, std::nullopt);
  EXPECT_EQ(all.at("b").waiting, (Counted{2, false}));
  EXPECT_EQ(all.at("b").held, (Counted{1, false}));
  EXPECT_EQ(all.at("b").oldest_due, std::nullopt);
  EXPECT_EQ(all.at("b").next_due, now + hours(2));
  EXPECT_EQ(all.at("c").waiting, Counted{});
  EXPECT_EQ(all.at("c").held, (Counted{2, false}));
  EXPECT_EQ(all.at("d").waiting, Counted{});
  EXPECT_EQ(all.at("d").running, (Counted{1, false}));
  EXPECT_EQ(all.at("d").oldest_due, std::nullopt);
}

TEST_P(StoreContract, TheOldestDueOfAnOverviewWaits) {
  const WallTime now = Now();
  const auto running = Add({.handler = "a", .slice = 1, .run_at = now - hours(5)});
  Add({.handler = "a", .slice = 1, .run_at = now - hours(2)});
  Add({.handler = "a", .slice = 2, .run_at = now - hours(1)});
  ClaimOne(running);
  const auto all = Overview(*this);
  EXPECT_EQ(all.at("a").oldest_due, now - hours(2)) << "a long run is no lag";
  EXPECT_EQ(all.at("a").waiting, (Counted{2, false}));
  EXPECT_EQ(all.at("a").running, (Counted{1, false}));
}

TEST_P(StoreContract, AnOverviewCountsExactlyBelowTenThousandOfEachHandler) {
  AddMany(*this, kExactBacklog - 1, "a");
  AddMany(*this, kExactBacklog + 1, "b");
  AddMany(*this, 401, "c");
  const auto all = Overview(*this);
  EXPECT_EQ(all.at("a").waiting, (Counted{kExactBacklog - 1, false}));
  EXPECT_EQ(all.at("b").waiting, (Counted{kExactBacklog, true}));
  EXPECT_EQ(all.at("c").waiting, (Counted{401, false}));
}

TEST_P(StoreContract, AnOverviewOfSeveralTablesIsTheirSum) {
  made_ = GetParam().make({.tables = 3, .slices = 4});
  Begin(*made_);
  AddMany(*this, 5'000, "a", "tasks_000");
  AddMany(*this, 4'000, "a", "tasks_002");
  AddMany(*this, 6'000, "b", "tasks_000");
  AddMany(*this, 6'000, "b", "tasks_001");
  const std::vector<TableName> tables{"tasks_000", "tasks_001", "tasks_002"};
  const auto all = Overview(*this, tables);
  EXPECT_EQ(all.at("a").waiting, (Counted{9'000, false}));
  EXPECT_EQ(all.at("b").waiting, (Counted{kExactBacklog, true}));
  const auto one = Overview(*this, {"tasks_002"});
  EXPECT_EQ(one.at("a").waiting, (Counted{4'000, false}));
  EXPECT_FALSE(one.contains("b"));
}

// More groups than heads are looked at: what was not seen is not told as if it were.
TEST_P(StoreContract, AnOverviewSaysWhereItDidNotLook) {
  std::vector<NewTask> tasks;
  for (int handler = 0; handler < 250; ++handler) tasks.push_back({.handler = "h" + std::to_string(handler)});
  ASSERT_TRUE(operations().Submit("tasks", tasks));
  const auto all = Overview(*this);
  ASSERT_EQ(all.size(), 250U);
  const auto unknown =
      std::count_if(all.begin(), all.end(), [](const auto& one) { return one.second.running.more; });
  EXPECT_EQ(unknown, 50);
  for (const auto& [handler, one] : all) {
    EXPECT_EQ(one.waiting, (Counted{1, false})) << handler;
    EXPECT_TRUE(one.oldest_due) << handler;
  }
}

// More parts than a statement of SQLite may have: 100 urgencies leave room for ten slices in each.
TEST_P(StoreContract, AnOverviewCountsWhatStandsInThousandsOfSlices) {
  constexpr std::uint32_t kSlices = 5'200;
  made_ = GetParam().make({.tables = 1, .slices = kSlices});
  Begin(*made_);
  std::vector<NewTask> tasks(kSlices, NewTask{.handler = "a", .delay = hours(1)});
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) tasks[slice].slice = slice;
  const auto added = operations().Submit("tasks", tasks);
  ASSERT_TRUE(added) << added.error().message;
  for (int priority = 0; priority < 10; ++priority) {
    for (std::uint32_t failures = 0; failures < 10; ++failures)
      Add({.handler = "a",
           .slice = 0,
           .priority = priority,
           .run_at = Now() + hours(1),
           .failures = failures});
  }
  Add({.handler = "b", .slice = 1});
  const auto all = Overview(*this);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at("a").waiting, (Counted{kSlices + 100, false}));
  EXPECT_EQ(all.at("b").waiting, (Counted{1, false}));
}

TEST_P(StoreContract, AnOverviewOfNothingIsEmpty) {
  EXPECT_TRUE(Overview(*this).empty());
  const FailedOverview failed = Failures(*this);
  EXPECT_TRUE(failed.classes.empty());
  EXPECT_TRUE(failed.all);
}

TEST_P(StoreContract, FailuresAreToldByHandlerAndClass) {
  FailOne(*this, "a", "timeout", "the partner is slow");
  FailOne(*this, "a", "timeout", "the partner is slower");
  FailOne(*this, "a", "", "no such customer");
  FailOne(*this, "b", "timeout", std::string(300, 'x'));
  const FailedOverview failed = Failures(*this);
  EXPECT_EQ(failed.looked_at, 4U);
  EXPECT_TRUE(failed.all);
  ASSERT_EQ(failed.classes.size(), 3U);
  EXPECT_EQ(failed.classes[0].handler, "a");
  EXPECT_EQ(failed.classes[0].error_class, "timeout");
  EXPECT_EQ(failed.classes[0].count, 2U);
  EXPECT_EQ(failed.classes[0].error, "the partner is slower") << "the newest is the example";
  EXPECT_EQ(StateOf(failed.classes[0].newest), TaskState::Failed);
  const auto b = std::find_if(failed.classes.begin(), failed.classes.end(),
                              [](const FailedClass& one) { return one.handler == "b"; });
  ASSERT_NE(b, failed.classes.end());
  EXPECT_EQ(b->error, std::string(200, 'x'));
}

TEST_P(StoreContract, OfManyFailuresTheNewestAreLookedAt) {
  AddMany(*this, 2'100, "a");
  std::vector<std::uint64_t> ids;
  for (const ScanRow& row : ScanAll()) ids.push_back(row.id);
  ASSERT_EQ(ids.size(), 2'100U);
  std::sort(ids.begin(), ids.end());
  for (std::size_t from = 0; from < ids.size(); from += 700) {
    const std::vector<std::uint64_t> some(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                          ids.begin() + static_cast<std::ptrdiff_t>(from + 700));
    std::vector<Settlement> ends;
    for (const Task& task : Claim(some)) {
      ends.push_back(End(task, To::Failed, "no"));
      ends.back().error_class = task.key.id == ids.front() ? "first" : "other";
    }
    Settle(ends);
  }
  const FailedOverview failed = Failures(*this);
  EXPECT_EQ(failed.looked_at, 2'000U);
  EXPECT_FALSE(failed.all);
  ASSERT_EQ(failed.classes.size(), 1U) << "the oldest is not among them";
  EXPECT_EQ(failed.classes[0].newest, ids.back());
}

TEST_P(StoreContract, TablesWithoutFailedTasksAreNotLookedInto) {
  FailOne(*this, "a", "timeout", "no");
  const TableName table = "tasks";
  const auto failed = store().OpenOverview()->Failed(std::span(&table, 1), {});
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_TRUE(failed->classes.empty());
  const TaskTotals dropped{.table = "tasks_of_old", .handler = "a", .failed = 1};
  EXPECT_TRUE(store().OpenOverview()->Failed(std::span(&table, 1), std::span(&dropped, 1)));
}

TaskCount CountOf(StoreTest& test, TaskPool pool, const TaskFilter& filter, std::uint64_t limit = 100,
                  Micros time = hours(1)) {
  auto count = test.operations().Count("tasks", pool, filter, limit, BootClock::now() + time);
  EXPECT_TRUE(count) << count.error().message;
  return count ? *count : TaskCount{};
}

TEST_P(StoreContract, ACountIsOfOnePoolByEachFilter) {
  Add({.handler = "a", .slice = 1, .batch = "x"});
  Add({.handler = "b", .slice = 2, .state = 3});
  const auto running = Add({.handler = "a", .slice = 1, .run_at = Now() - hours(1)});
  ClaimOne(running);
  FailOne(*this, "a", "timeout", "no");
  Settle({End(ClaimOne(AddDue(1, "a")[0]), To::Succeeded)});
  Settle({End(ClaimOne(AddDue(1, "a")[0]), To::Cancelled)});
  using States = std::map<TaskState, std::uint64_t>;
  EXPECT_EQ(CountOf(*this, TaskPool::Hot, {}).states,
            (States{{TaskState::Waiting, 1}, {TaskState::Running, 1}, {TaskState::Held, 1}}));
  EXPECT_EQ(CountOf(*this, TaskPool::Hot, {.handler = "a", .slice = 1}).states,
            (States{{TaskState::Waiting, 1}, {TaskState::Running, 1}}));
  EXPECT_EQ(CountOf(*this, TaskPool::Hot, {.batch = "x"}).Sum(), 1U);
  EXPECT_EQ(CountOf(*this, TaskPool::Failed, {.error_class = "timeout"}).Sum(), 1U);
  EXPECT_EQ(CountOf(*this, TaskPool::Failed, {.error_class = "other"}).Sum(), 0U);
  EXPECT_EQ(CountOf(*this, TaskPool::Done, {}).states,
            (States{{TaskState::Succeeded, 1}, {TaskState::Cancelled, 1}}));
  EXPECT_EQ(CountOf(*this, TaskPool::Done, {.state = TaskState::Succeeded}).Sum(), 1U);
  EXPECT_EQ(CountOf(*this, TaskPool::Hot, {.state = TaskState::Succeeded}).Sum(), 0U) << "none is there";
}

TEST_P(StoreContract, ACountEndsAtItsLimitAndAtItsDeadline) {
  AddMany(*this, 25'000, "a");
  const TaskCount limited = CountOf(*this, TaskPool::Hot, {}, 10'000);
  EXPECT_EQ(limited.Sum(), 10'000U);
  EXPECT_TRUE(limited.more);
  const TaskCount all = CountOf(*this, TaskPool::Hot, {}, 30'000);
  EXPECT_EQ(all.Sum(), 25'000U) << "over several looks";
  EXPECT_FALSE(all.more);
  const TaskCount late = CountOf(*this, TaskPool::Hot, {}, 30'000, Micros(0));
  EXPECT_EQ(late.Sum(), 0U);
  EXPECT_TRUE(late.more);
}

}  // namespace
}  // namespace millrace::engine
