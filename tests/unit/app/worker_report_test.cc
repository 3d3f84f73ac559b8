#include "coordinator/app/process/worker_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const WallTime kEnded = ParseTime("2026-11-20T18:00:00Z").value();

TEST(TaskSummaryTest, WhereNothingIsLeftNothingIsSaid) {
  TaskSummary summary;
  summary.succeeded = 5;
  WorkerTotals run;
  run.succeeded = 5;
  EXPECT_EQ(SummaryText(summary, run), "5 succeeded, 0 failed");
  run.succeeded = 2;
  run.cancelled = 1;
  summary.cancelled = 1;
  EXPECT_EQ(SummaryText(summary, run),
            "this run: 2 succeeded, 0 failed, 1 cancelled or skipped; in all: 5 succeeded, 0 failed, 1 "
            "cancelled or skipped");
  EXPECT_THAT(LeftTexts(summary, "", kEnded), IsEmpty());
}

TEST(TaskSummaryTest, WhatWaitsForLaterIsToldWithTheTimeOfTheFirst) {
  TaskSummary summary;
  summary.backlog.waiting = 2;
  summary.backlog.next_due = kEnded + minutes(5);
  EXPECT_THAT(LeftTexts(summary, "", kEnded),
              ElementsAre("2 tasks wait, the first until 2026-11-20T18:05:00Z (in 5 min 0 s): millrace task "
                          "list --state waiting"));
}

TEST(TaskSummaryTest, WhatIsDueAndDidNotRunIsToldWithTheWayToAskWhy) {
  TaskSummary summary;
  summary.backlog.waiting = 1;
  summary.backlog.next_due = kEnded - minutes(5);
  summary.unrunnable = {{"typo", ""}};
  EXPECT_THAT(LeftTexts(summary, " --store 'sqlite:x.db'", kEnded),
              ElementsAre(AllOf(HasSubstr("1 task waits, the first has been due for 5 min 0 s"),
                                HasSubstr("millrace task why NAME --store 'sqlite:x.db'")),
                          HasSubstr("the handler of type typo")));
}

TEST(TaskSummaryTest, AHandlerThatDoesNotOpenIsToldWithItsOwnWords) {
  WorkerStatus last;
  last.shards = {{.shard = "main", .unrunnable = {"exec", "typo"}}};
  last.unopened = {{"exec", "'program' is missing"}, {"quiet", "nothing of it is due"}};
  const auto summary = ReadSummary({}, last);
  ASSERT_TRUE(summary);
  EXPECT_THAT(LeftTexts(*summary, "", kEnded),
              ElementsAre("tasks of exec are due and can't be run here: 'program' is missing",
                          "no plugin here has the handler of type typo, whose tasks are due"));
  const nlohmann::ordered_json json = ToJson(*summary);
  EXPECT_EQ(json["unrunnable"].dump(), R"(["exec","typo"])");
  EXPECT_EQ(json["cannot_open"].dump(), R"({"exec":"'program' is missing"})");
}

TEST(TaskSummaryTest, HeldAndFailedTasksAreToldWithTheCommandToLookAtThem) {
  TaskSummary summary;
  summary.held = 1000;
  summary.held_or_more = true;
  summary.failed = 1;
  EXPECT_THAT(LeftTexts(summary, "", kEnded),
              ElementsAre("1,000 or more tasks are held: millrace task list --state held",
                          "1 task failed and needs a person: millrace task list --state failed"));
}

TEST(TaskSummaryTest, WhatIsNotKnownIsNotTold) {
  TaskSummary summary;
  summary.backlog.or_more = true;
  summary.held_or_more = true;
  EXPECT_THAT(LeftTexts(summary, "", kEnded), IsEmpty());
}

// A store with one table and these tasks.
class TaskSummaryStoreTest : public testing::Test {
 protected:
  void Submit(bool held, Micros delay, std::size_t count) {
    NewTask task;
    task.handler = "noop";
    task.held = held;
    task.delay = delay;
    const std::vector<NewTask> tasks(count, task);
    ASSERT_TRUE(operations_->Submit("tasks", tasks));
  }
  TaskSummary Summary(BootTime deadline) {
    TaskSummary summary;
    EXPECT_TRUE(AddShard(store_, *store_.OpenSchema()->Tables(), deadline, summary));
    return summary;
  }

  ManualClock clock_;
  ScratchStore store_{clock_};
  std::unique_ptr<TaskOperations> operations_ = store_.OpenOperations();
};

TEST_F(TaskSummaryStoreTest, WaitingAndHeldTasksAreCountedApart) {
  Submit(false, minutes(5), 2);
  Submit(false, minutes(3), 1);
  Submit(true, Micros(0), 4);
  const TaskSummary summary = Summary(BootTime::max());
  EXPECT_EQ(summary.backlog.waiting, 3u);
  EXPECT_EQ(summary.backlog.next_due, clock_.WallNow() + minutes(3));
  EXPECT_EQ(summary.held, 4u);
  EXPECT_FALSE(summary.held_or_more);
}

TEST_F(TaskSummaryStoreTest, PastTheDeadlineNothingIsCountedAnyMore) {
  Submit(false, Micros(0), 1);
  const TaskSummary summary = Summary(BootTime{});
  EXPECT_TRUE(summary.backlog.or_more && summary.held_or_more);
  EXPECT_EQ(summary.backlog.waiting, 0u);
}

TEST_F(TaskSummaryStoreTest, HeldTasksAreCountedUpToABound) {
  for (std::uint64_t i = 0; i <= kExactBacklog / 999; ++i) Submit(true, Micros(0), 999);
  const TaskSummary summary = Summary(BootTime::max());
  EXPECT_TRUE(summary.held_or_more);
  EXPECT_EQ(summary.held, kExactBacklog);
}

}  // namespace
}  // namespace millrace::engine
