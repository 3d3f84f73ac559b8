#include "coordinator/app/task_why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;

WallTime At(const char* text) { return ParseTime(text).value(); }

constexpr const char* kNobody =
    "No worker is running on this store: start one with `millrace run` or `millrace worker`.";
constexpr const char* kOneWorker = "1 worker is registered on this store.";

// A task that is due, with one worker at hand that can run it.
WhyFacts Facts(TaskState state = TaskState::Waiting) {
  WhyFacts facts;
  facts.shard = "main";
  facts.now = At("2026-11-20T18:00:00Z");
  facts.workers = {"w1.a"};
  facts.plugin_handlers = {{"noop"}};
  Task& task = facts.record.task;
  task.key = {"tasks", 17};
  task.handler = "noop";
  task.state = state;
  task.run_at = At("2026-11-20T17:55:00Z");
  return facts;
}

TEST(TaskWhyTest, ADueTaskWaitsForAWorker) {
  EXPECT_THAT(
      ExplainTask(Facts()),
      ElementsAre("It has been due since 2026-11-20T17:55:00Z (5 min 0 s ago) and waits for a worker.",
                  kOneWorker));
}

TEST(TaskWhyTest, APauseThatCoversItIsNamed) {
  WhyFacts facts = Facts();
  facts.pauses = {"cluster", "handler:send_mail", "handler:noop", "shard:east"};
  EXPECT_THAT(
      ExplainTask(facts),
      ElementsAre("It has been due since 2026-11-20T17:55:00Z (5 min 0 s ago) and waits for a worker.",
                  "It is paused (cluster): nothing of it starts until `millrace cluster resume cluster`.",
                  "It is paused (handler:noop): nothing of it starts until `millrace cluster resume "
                  "handler:noop`.",
                  kOneWorker));
}

TEST(TaskWhyTest, InAClusterTheOwnerOfItsSliceIsTold) {
  WhyFacts facts = Facts();
  facts.plugin_handlers = {{"other"}};  // of this host, which has no say there
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w2", .owner_there = true};
  EXPECT_THAT(ExplainTask(facts), ElementsAre(testing::_, kOneWorker, "Its slice main/tasks/17 is with w2."));
  facts.cluster->owner_there = false;
  EXPECT_THAT(ExplainTask(facts).back(), testing::HasSubstr("w2, who is not there"));
  facts.cluster->owner.clear();
  EXPECT_THAT(ExplainTask(facts).back(), testing::HasSubstr("cluster slices --why main/tasks/17"));
  facts.cluster->type_runs = false;
  EXPECT_EQ(ExplainTask(facts).back(), "No worker of the cluster runs its type 'noop'.");
}

TEST(TaskWhyTest, AClusterThatIsAwayIsToldAsThat) {
  WhyFacts facts = Facts();
  facts.cluster = ClusterFacts{.unreached = "no server"};
  EXPECT_THAT(ExplainTask(facts),
              ElementsAre(testing::_, kOneWorker,
                          "The cluster could not be asked who owns its slice, and what it has paused: no "
                          "server."));
}

TEST(TaskWhyTest, ATaskOfTheFutureIsNotDue) {
  WhyFacts facts = Facts();
  facts.record.task.run_at = At("2026-11-20T18:00:30Z");
  EXPECT_EQ(ExplainTask(facts).front(),
            "It waits until 2026-11-20T18:00:30Z (in 30 s): it is not due before.");
}

TEST(TaskWhyTest, AFailedAttemptWaitsForItsStepOfTheLadder) {
  WhyFacts facts = Facts();
  Task& task = facts.record.task;
  task.run_at = At("2026-11-20T18:00:30Z");
  task.attempt = 2;
  task.failures = 1;
  task.crashes = 1;
  facts.record.attempts = {{1, At("2026-11-20T17:59:30Z"), "w1.a", "failed", "http_503", "no answer"}};
  EXPECT_THAT(
      ExplainTask(facts),
      ElementsAre("It waits until 2026-11-20T18:00:30Z (in 30 s): the next step of its retry ladder.",
                  kOneWorker,
                  "So far 2 attempts, of which 1 failure counts towards the limit of 4; 1 time its worker "
                  "died under it.",
                  "Attempt 1 failed 30 s ago on w1.a: no answer"));
}

TEST(TaskWhyTest, OfManyAttemptsTheLastFiveAreTold) {
  WhyFacts facts = Facts();
  for (std::uint32_t n = 1; n <= 8; ++n)
    facts.record.attempts.push_back({n, facts.now, "w1.a", "failed", "", "why"});
  const auto sentences = ExplainTask(facts);
  ASSERT_EQ(sentences.size(), 8U);
  EXPECT_EQ(sentences[3], "Attempt 4 failed now on w1.a: why");
  EXPECT_EQ(sentences[7], "Attempt 8 failed now on w1.a: why");
}

TEST(TaskWhyTest, WithoutAWorkerItSaysHowToStartOne) {
  WhyFacts facts = Facts();
  facts.workers.clear();
  EXPECT_EQ(ExplainTask(facts).back(), kNobody);
}

TEST(TaskWhyTest, AHandlerThatNoPluginHas) {
  WhyFacts facts = Facts();
  facts.record.task.handler = "greet";
  EXPECT_EQ(ExplainTask(facts).back(),
            "No plugin at hand has its handler 'greet': see `millrace handler list`, or name the folder with "
            "--plugins.");
  facts.config.uses = "noop";  // served by another handler
  EXPECT_EQ(ExplainTask(facts).back(), kOneWorker);
  facts.config.uses.clear();
  facts.plugin_handlers.reset();  // nothing is known of plugins here
  EXPECT_EQ(ExplainTask(facts).back(), kOneWorker);
}

TEST(TaskWhyTest, AKeyThatBelongsToAnother) {
  WhyFacts facts = Facts();
  facts.record.task.biz_key = "p-1";
  facts.key_holder = "main/tasks/3";
  EXPECT_THAT(ExplainTask(facts),
              testing::Contains("Its key 'p-1' belongs to main/tasks/3: when its turn comes it "
                                "is skipped as a duplicate."));
}

TEST(TaskWhyTest, ARunningTaskNamesItsWorker) {
  WhyFacts facts = Facts(TaskState::Running);
  Task& task = facts.record.task;
  task.claimed_by = "w1.a";
  task.claimed_at = At("2026-11-20T17:59:58Z");
  EXPECT_THAT(
      ExplainTask(facts),
      ElementsAre("It is with w1.a since 2026-11-20T17:59:58Z (2 s ago): running, or next in its queue."));
  task.cancel = true;
  EXPECT_EQ(ExplainTask(facts).back(),
            "It was asked to stop; its handler ends it at the next point where it looks.");
}

TEST(TaskWhyTest, ARunningTaskOfADeadWorkerIsRescued) {
  WhyFacts facts = Facts(TaskState::Running);
  facts.record.task.claimed_by = "w0.z";
  const char* rescue =
      "It was claimed by w0.z, which is dead or gone: the next worker that scans its slice sets it "
      "waiting again.";
  EXPECT_THAT(ExplainTask(facts), ElementsAre(rescue));
  facts.workers.clear();
  EXPECT_THAT(ExplainTask(facts), ElementsAre(rescue, kNobody));
  facts.record.task.claimed_by.clear();
  EXPECT_THAT(ExplainTask(facts).front(), testing::HasSubstr("claimed by nobody"));
}

TEST(TaskWhyTest, AHeldTaskIsReleasedByItsName) {
  EXPECT_THAT(ExplainTask(Facts(TaskState::Held)),
              ElementsAre("It is held: nothing happens to it until `millrace task release main/tasks/17`."));
}

TEST(TaskWhyTest, EndedTasksSayHowTheyEnded) {
  WhyFacts facts = Facts(TaskState::Succeeded);
  facts.record.finished_at = At("2026-11-20T17:59:00Z");
  EXPECT_THAT(ExplainTask(facts),
              ElementsAre("It succeeded at 2026-11-20T17:59:00Z (1 min 0 s ago), so there is "
                          "nothing left to run."));
  facts.record.task.state = TaskState::Cancelled;
  EXPECT_THAT(ExplainTask(facts),
              ElementsAre("It was cancelled or skipped at 2026-11-20T17:59:00Z (1 min 0 s ago)."));
  facts.record.task.last_error = "duplicate of tasks/3";
  EXPECT_THAT(ExplainTask(facts),
              ElementsAre("It was cancelled or skipped at 2026-11-20T17:59:00Z (1 min 0 s ago): "
                          "duplicate of tasks/3"));
}

TEST(TaskWhyTest, AFailedTaskSaysWhyAndHowToRunItAgain) {
  WhyFacts facts = Facts(TaskState::Failed);
  EXPECT_THAT(ExplainTask(facts),
              ElementsAre("It failed for good and needs a person: no reason is noted.",
                          "When the cause is gone: `millrace task retry main/tasks/17`."));
  facts.record.task.last_error = "no such customer";
  EXPECT_EQ(ExplainTask(facts).front(), "It failed for good and needs a person: no such customer");
}

}  // namespace
}  // namespace millrace::engine
