#include "coordinator/app/task/task_why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/task/expiry.h"
#include "tests/support/time_of.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

constexpr const char* kNobody =
    "No worker is running on this store: start one with `millrace run` or `millrace worker`.";
constexpr const char* kOneWorker = "1 worker is registered on this store.";

// A task that is due, with one worker at hand that can run it.
WhyFacts Facts(TaskState state = TaskState::Waiting) {
  WhyFacts facts;
  facts.shard = "main";
  facts.now = At("2026-11-20T18:00:00Z");
  facts.workers = {{"w1.a", "w1"}};
  facts.plugin_handlers = {{"noop"}};
  Task& task = facts.record.task;
  task.key = {"tasks", 17};
  task.handler = "noop";
  task.state = state;
  task.run_at = At("2026-11-20T17:55:00Z");
  return facts;
}

std::vector<std::string> Texts(const WhyFacts& facts) {
  std::vector<std::string> texts;
  for (const Reason& reason : ExplainTask(facts)) texts.push_back(reason.text);
  return texts;
}

std::vector<std::string> Codes(const WhyFacts& facts) {
  std::vector<std::string> codes;
  for (const Reason& reason : ExplainTask(facts)) codes.push_back(reason.code);
  return codes;
}

TEST(TaskWhyTest, ADueTaskWaitsForAWorker) {
  EXPECT_THAT(
      Texts(Facts()),
      ElementsAre("It has been due since 2026-11-20T17:55:00Z (5 min 0 s ago) and waits for a worker.",
                  kOneWorker));
}

TEST(TaskWhyTest, APauseThatCoversItComesFirstWithWhoSinceWhenAndWhy) {
  WhyFacts facts = Facts();
  const WallTime since = At("2026-11-20T17:50:00Z");
  facts.pauses = {{"cluster", "", {}},
                  {"handler:send_mail", "ann", since},
                  {"handler:noop", "ann", since, "the partner is down"},
                  {"shard:east", "ann", since}};
  EXPECT_THAT(
      Texts(facts),
      ElementsAre("It is paused (cluster): nothing of it starts until `millrace cluster resume cluster`.",
                  "It is paused (handler:noop) by ann since 2026-11-20T17:50:00Z (10 min 0 s ago), \"the "
                  "partner is down\": nothing of it starts until `millrace cluster resume handler:noop`.",
                  kOneWorker));
  EXPECT_THAT(Codes(facts), ElementsAre("paused", "paused", "workers"));
}

TEST(TaskWhyTest, WhereNothingOfItsTypeStartsItsPlaceInTheOrderIsNotToldOf) {
  WhyFacts facts = Facts();
  facts.ahead.of_priority = {{3, 12}};
  facts.config.limit = LimitConfig{.rate = 2, .concurrency = 1};
  facts.permits = {{"main/tasks/3", "w2"}};
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w1", .owner_there = true};
  facts.cluster->limit_holds = true;
  facts.cluster->scan_speed = 0.5;
  EXPECT_THAT(Codes(facts), ElementsAre("permits", "limit", "behind", "braked", "workers", "owner"));
  WhyFacts paused = facts;
  paused.pauses = {{"handler:noop", "ann", facts.now}};
  EXPECT_THAT(Codes(paused), ElementsAre("paused", "workers", "owner"));
  WhyFacts open = facts;
  open.cluster->breaker = "20 of 20 calls failed within 10s";
  EXPECT_THAT(Codes(open), ElementsAre("breaker", "workers", "owner"));
  WhyFacts closed = facts;
  closed.config.hours = HoursConfig{60, 360, "Europe/Berlin"};
  EXPECT_THAT(Codes(closed), ElementsAre("outside_hours", "workers", "owner"));
}

TEST(TaskWhyTest, OutsideItsHoursItIsSaidWhenTheyOpen) {
  WhyFacts facts = Facts();
  facts.config.hours = HoursConfig{60, 360, "Europe/Berlin"};
  EXPECT_THAT(Codes(facts), ElementsAre("outside_hours", "workers"));
  EXPECT_EQ(Texts(facts).front(),
            "Its type is held back: outside its hours until 01:00 Europe/Berlin (`handlers.noop.hours`).");
  facts.config.hours->from = 18 * 60;
  EXPECT_THAT(Codes(facts), ElementsAre("due", "workers")) << "it is seven in the evening there";
}

TEST(TaskWhyTest, ATaskThatAnExceptionHasHeldSaysSo) {
  WhyFacts facts = Facts(TaskState::Held);
  facts.record.attempts = {
      {.attempt = 1, .kind = "failed", .error_class = "exception", .message = "bad row"}};
  EXPECT_EQ(
      Texts(facts).front(),
      "It is held after its last attempt failed (exception): nothing happens to it until `millrace task "
      "release main/tasks/17`.");
}

TEST(TaskWhyTest, ABreakerThatIsOpenIsAReasonWhoeverOpenedIt) {
  WhyFacts facts = Facts();
  const std::string& type = facts.record.task.handler;
  facts.pauses = {{"breaker:" + type + ":open", "ann", At("2026-11-20T17:50:00Z"), "the partner asked"}};
  EXPECT_EQ(Codes(facts).front(), "breaker");
  EXPECT_EQ(Texts(facts).front(),
            "The breaker of its type " + type +
                " is open by hand, by ann since 2026-11-20T17:50:00Z (10 min 0 s ago), \"the "
                "partner asked\": nothing of it starts until `millrace handler breaker " +
                type + " auto`.");
  facts.pauses = {{"breaker:" + type + ":close", "ann", facts.now}};
  EXPECT_EQ(Codes(facts).front(), "due");
  facts.pauses = {{"breaker:" + type + ":tripped:w1", "w1", facts.now, "20 of 20 calls failed within 10s"}};
  EXPECT_EQ(Codes(facts).front(), "breaker");
  facts.pauses[0].what = "breaker:" + type + ":tripped:gone";
  EXPECT_EQ(Codes(facts).front(), "due") << "that worker lives no more";
  facts.pauses.clear();
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w1", .owner_there = true};
  facts.cluster->breaker = "20 of 20 calls failed within 10s";
  EXPECT_EQ(Codes(facts).front(), "breaker");
  facts.config.breaker.emplace();
  EXPECT_EQ(Texts(facts).front(),
            "The breaker of its type noop is open (20 of 20 calls failed within 10s): it waits until a probe "
            "has succeeded; one is tried every 2s (`handlers.noop.breaker.probe_every`).");
}

TEST(TaskWhyTest, APausedWorkerIsAReasonWhereNobodyElseDoesItsWork) {
  WhyFacts facts = Facts();
  facts.pauses = {{"worker:w1", "ann", facts.now}};
  EXPECT_EQ(Codes(facts).front(), "paused");
  facts.workers.push_back({"w2.b", "w2"});
  EXPECT_EQ(Codes(facts).front(), "due") << "w2 has the same slices";
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w1", .owner_there = true};
  EXPECT_EQ(Codes(facts).front(), "paused") << "in a cluster w1 keeps them";
  facts.cluster->owner = "w2";
  EXPECT_EQ(Codes(facts).front(), "due");
}

TEST(TaskWhyTest, WhatIsDueBeforeItIsCountedByPriority) {
  WhyFacts facts = Facts();
  facts.ahead.of_priority = {{3, 1204}, {5, 20}};
  EXPECT_EQ(Texts(facts).front(),
            "It has been due since 2026-11-20T17:55:00Z (5 min 0 s ago) and waits behind at least 1,204 of "
            "priority 3 and 20 of priority 5, which are due in its slice before it.");
  EXPECT_EQ(Codes(facts).front(), "behind");
}

TEST(TaskWhyTest, WhoHoldsThePermitsOfItsTypeIsToldOnceThereIsNoneLeft) {
  WhyFacts facts = Facts();
  facts.config.limit = LimitConfig{.concurrency = 1};
  EXPECT_EQ(Codes(facts).front(), "due");
  facts.permits = {{"main/tasks/3", "w2", At("2026-11-20T17:59:00Z")}};
  EXPECT_EQ(Texts(facts).front(),
            "It waits for one of 1 permit of its type (`handlers.noop.limit.concurrency`); held by task "
            "main/tasks/3 on worker w2 since 2026-11-20T17:59:00Z (1 min 0 s ago).");
  EXPECT_EQ(Codes(facts).front(), "permits");
  facts.config.limit->concurrency = 2;
  EXPECT_EQ(Codes(facts).front(), "due") << "one is left";
  facts.permits.push_back({"", "w1"});
  EXPECT_EQ(Codes(facts).front(), "permits");
}

TEST(TaskWhyTest, InAClusterTheOwnerOfItsSliceIsTold) {
  WhyFacts facts = Facts();
  facts.plugin_handlers = {{"other"}};  // of this host, which has no say there
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w2", .owner_there = true};
  EXPECT_THAT(Texts(facts), ElementsAre(testing::_, kOneWorker, "Its slice main/tasks/17 is with w2."));
  facts.cluster->cut_off = "Can't connect to server on 'db' (115)";
  EXPECT_THAT(Codes(facts), ElementsAre("owner_cut_off", "workers", "owner"));
  EXPECT_EQ(Texts(facts).front(),
            "w2, which has its slice, can't work in shard main: Can't connect to server on 'db' (115).");
  facts.cluster->cut_off.clear();
  facts.cluster->table_rests = "Lock wait timeout exceeded";
  EXPECT_THAT(Codes(facts), ElementsAre("table_rests", "workers", "owner"));
  EXPECT_EQ(
      Texts(facts).front(),
      "w2, which has its slice, claims nothing of table tasks in shard main until its database lets it: "
      "Lock wait timeout exceeded.");
  facts.cluster->table_rests.clear();
  facts.cluster->draining = true;
  EXPECT_THAT(Codes(facts), ElementsAre("due", "workers", "draining")) << "it works on until then";
  facts.cluster->owner_there = false;
  EXPECT_EQ(Codes(facts).front(), "owner_gone");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("w2, who is not there"));
  facts.cluster->owner.clear();
  facts.cluster->planned_at = At("2026-11-20T17:59:00Z");
  EXPECT_EQ(Codes(facts).front(), "slice_unowned");
  EXPECT_EQ(Texts(facts).front(),
            "Its slice main/tasks/17 is nobody's, by the plan of 2026-11-20T17:59:00Z (1 min 0 s ago): see "
            "`millrace cluster slices --why main/tasks/17`.");
  facts.cluster->drained = {"w1"};
  EXPECT_EQ(Codes(facts).front(), "slice_unowned");
  facts.cluster->all_drained = true;
  EXPECT_EQ(Codes(facts).front(), "draining");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("; w1 gives up all slices: see"));
  facts.cluster->type_runs = false;
  EXPECT_EQ(Codes(facts).front(), "no_handler");
  EXPECT_EQ(Texts(facts).front(), "No worker of the cluster runs its type 'noop'.");
}

TEST(TaskWhyTest, WithoutAClusterWorkersMayHaveOtherNumbers) {
  WhyFacts facts = Facts();
  facts.record.task.slice = 17;
  facts.workers = {{"w1.a", "w1", "0-3"}, {"w2.b", "w2", "4-16,18"}};
  EXPECT_EQ(Codes(facts).front(), "slice_unowned");
  facts.workers[1].slices = "4-17";
  EXPECT_EQ(Codes(facts).front(), "due");
}

TEST(TaskWhyTest, AClusterThatIsAwayIsToldAsThat) {
  WhyFacts facts = Facts();
  facts.cluster = ClusterFacts{.unreached = "no server"};
  EXPECT_THAT(Texts(facts),
              ElementsAre(testing::_,
                          "The cluster could not be asked who owns its slice, and what it has paused: no "
                          "server.",
                          kOneWorker));
}

TEST(TaskWhyTest, ATaskOfTheFutureIsNotDue) {
  WhyFacts facts = Facts();
  facts.record.task.run_at = At("2026-11-20T18:00:30Z");
  EXPECT_EQ(Texts(facts).front(), "It waits until 2026-11-20T18:00:30Z (in 30 s): it is not due before.");
}

TEST(TaskWhyTest, WhatHasExpiredIsSkippedAndWhatWillIsTold) {
  WhyFacts facts = Facts();
  facts.record.task.expires_at = At("2026-11-20T18:00:30Z");
  EXPECT_THAT(Codes(facts), ElementsAre("due", "expires", "workers"));
  facts.record.task.expires_at = At("2026-11-20T17:59:30Z");
  EXPECT_EQ(Codes(facts).front(), "expired");
  EXPECT_EQ(Texts(facts).front(),
            "It expired at 2026-11-20T17:59:30Z (30 s ago), before it was started: when its turn comes it is "
            "skipped.");
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
      Texts(facts),
      ElementsAre("It waits until 2026-11-20T18:00:30Z (in 30 s): tier 1 of 3 of its retry ladder, after "
                  "\"http_503\".",
                  kOneWorker,
                  "So far 2 attempts, of which 1 failure counts towards the limit of 4; 1 time its worker "
                  "died under it.",
                  "Attempt 1 failed 30 s ago on w1.a: no answer"));
}

TEST(TaskWhyTest, TheTierIsThatOfTheLadderOfTheLastErrorsClass) {
  WhyFacts facts = Facts();
  Task& task = facts.record.task;
  task.run_at = At("2026-11-20T18:00:30Z");
  task.failures = 3;
  facts.config.retry.classes = {
      {.pattern = "time*", .delays = {std::chrono::seconds(5), std::chrono::seconds(9)}},
      {.pattern = "http_4*", .fail = true}};
  facts.record.attempts = {{1, facts.now, "w1.a", "failed", "http_503", "no answer"},
                           {2, facts.now, "w1.a", "failed", "timeout", "too late"},
                           {3, facts.now, "w1.a", "rescued", "", "its worker died"}};
  const std::string until = "It waits until 2026-11-20T18:00:30Z (in 30 s): ";
  EXPECT_THAT(Texts(facts).front(),
              StartsWith(until + "tier 2 of 2 of the ladder of `time*` (`handlers.noop.retry.classes`)"));
  facts.record.attempts[1].error_class = "http_503";
  EXPECT_THAT(Texts(facts).front(), StartsWith(until + "tier 3 of 3 of its retry ladder"));
  facts.record.attempts[1].error_class = "http_404";
  EXPECT_THAT(Texts(facts).front(), StartsWith(until + "it has failed 3 times of at most 4"))
      << "the configuration was another then";
  facts.record.attempts.clear();
  EXPECT_EQ(Texts(facts).front(), until + "it has failed 3 times of at most 4.") << "its class isn't known";
}

TEST(TaskWhyTest, OfManyAttemptsTheLastFiveAreTold) {
  WhyFacts facts = Facts();
  for (std::uint32_t n = 1; n <= 8; ++n)
    facts.record.attempts.push_back({n, facts.now, "w1.a", "failed", "", "why"});
  const auto sentences = Texts(facts);
  ASSERT_EQ(sentences.size(), 8U);
  EXPECT_EQ(sentences[3], "Attempt 4 failed now on w1.a: why");
  EXPECT_EQ(sentences[7], "Attempt 8 failed now on w1.a: why");
}

TEST(TaskWhyTest, WithoutAWorkerItSaysHowToStartOne) {
  WhyFacts facts = Facts();
  facts.workers.clear();
  EXPECT_EQ(Texts(facts).front(), kNobody);
  EXPECT_THAT(Codes(facts), ElementsAre("no_worker", "due"));
}

TEST(TaskWhyTest, AHandlerThatNoPluginHas) {
  WhyFacts facts = Facts();
  facts.record.task.handler = "greet";
  EXPECT_THAT(Codes(facts), ElementsAre("due", "no_plugin", "workers")) << "its worker may know more";
  EXPECT_THAT(Texts(facts)[1], testing::HasSubstr("where its workers have one, give it with --config."));
  facts.has_config = true;
  EXPECT_EQ(Texts(facts).front(),
            "No plugin at hand has its handler 'greet': see `millrace handler list`, or name the folder with "
            "--plugins.");
  facts.config.uses = "gret";
  EXPECT_THAT(Texts(facts).front(),
              StartsWith("No plugin at hand has its handler 'gret' (`handlers.greet.uses`)"));
  facts.cluster.emplace().unreached = "no server answers";
  EXPECT_THAT(Codes(facts), ElementsAre("due", "cluster_away", "workers")) << "its workers are the cluster's";
  facts.cluster->unreached.clear();
  facts.cluster->type_runs = false;
  EXPECT_EQ(Texts(facts).front(),
            "No worker of the cluster runs its type 'greet': none has the handler 'gret' "
            "(`handlers.greet.uses`).");
  facts.cluster.reset();
  facts.config.uses = "noop";  // served by another handler
  EXPECT_EQ(Codes(facts).front(), "due");
  facts.config.uses.clear();
  facts.plugin_handlers.reset();  // nothing is known of plugins here
  EXPECT_EQ(Codes(facts).front(), "due");
}

TEST(TaskWhyTest, AHandlerThatDoesNotOpenIsToldWithItsOwnWords) {
  WhyFacts facts = Facts();
  facts.cannot_open = "'program' is missing";
  EXPECT_THAT(Codes(facts), ElementsAre("cannot_open", "due", "workers")) << "nothing else explains it";
  EXPECT_EQ(Texts(facts).front(),
            "It can't be run without a configuration: 'program' is missing; where its workers have one, give "
            "it with --config.");
  facts.ahead.of_priority = {{3, 7}};
  EXPECT_THAT(Codes(facts), ElementsAre("behind", "cannot_open", "workers")) << "its workers may know more";
  facts.has_config = true;
  EXPECT_THAT(Codes(facts), ElementsAre("cannot_open", "workers"));
  EXPECT_EQ(Texts(facts).front(), "It can't be run: 'program' is missing.");
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w2", .owner_there = true};
  EXPECT_EQ(Texts(facts).front(), "It can't be run by w2: 'program' is missing.");
}

TEST(TaskWhyTest, AFullQueueOfItsOwnerIsNamed) {
  WhyFacts facts = Facts();
  facts.cluster =
      ClusterFacts{.slice = "main/tasks/17", .owner = "w1", .owner_there = true, .queue_full = true};
  EXPECT_EQ(Codes(facts).front(), "queue_full");
  EXPECT_THAT(Texts(facts).front(),
              testing::HasSubstr("waits for room in the queue of w1 (`handlers.noop.queue`"));
}

TEST(TaskWhyTest, AKeyThatBelongsToAnother) {
  WhyFacts facts = Facts();
  facts.record.task.biz_key = "p-1";
  facts.key_holder = "main/tasks/3";
  EXPECT_THAT(Texts(facts), testing::Contains("Its key 'p-1' belongs to main/tasks/3: when its turn comes it "
                                              "is skipped as a duplicate."));
}

TEST(TaskWhyTest, ARunningTaskNamesItsWorker) {
  WhyFacts facts = Facts(TaskState::Running);
  Task& task = facts.record.task;
  task.claimed_by = "w1.a";
  task.claimed_at = At("2026-11-20T17:59:58Z");
  EXPECT_THAT(
      Texts(facts),
      ElementsAre("It is with w1.a since 2026-11-20T17:59:58Z (2 s ago), which is alive: running, or next "
                  "in its queue."));
  task.cancel = true;
  EXPECT_EQ(Texts(facts).back(),
            "It was asked to stop; its handler ends it at the next point where it looks.");
}

TEST(TaskWhyTest, WhereNoPermitCanBeHadItSaysWhy) {
  WhyFacts facts = Facts();
  facts.permits_held_up = "shard a is the home of permits and not among the shards";
  EXPECT_EQ(Codes(facts).front(), "due") << "its type needs none";
  facts.config.limit = LimitConfig{.concurrency = 2};
  EXPECT_EQ(Codes(facts).front(), "permits_held_up");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("none can be had: shard a is the home"));
}

TEST(TaskWhyTest, WherePermitsOfItsTypeAreLockedItSaysSoAndWhoHoldsThem) {
  WhyFacts facts = Facts();
  facts.permits_locked = true;
  facts.config.limit = LimitConfig{.concurrency = 1};
  EXPECT_THAT(Codes(facts), ElementsAre("permits_held_up", "workers"));
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("another session has locked rows of them"));
  facts.permits = {{"main/tasks/9", "w2", std::nullopt}};
  EXPECT_THAT(Codes(facts), ElementsAre("permits_held_up", "permits", "workers"));
}

TEST(TaskWhyTest, ATaskThatIsClaimedAheadOfItsLimitNamesIt) {
  WhyFacts facts = Facts(TaskState::Running);
  facts.record.task.claimed_by = "w1.a";
  facts.config.limit = LimitConfig{.rate = 0.5};
  EXPECT_THAT(Codes(facts), ElementsAre("running", "limit"));
  EXPECT_THAT(Texts(facts).back(), testing::HasSubstr("If it has not started it waits for the limit of"));
  facts.cluster = ClusterFacts{.owner = "w1", .owner_there = true};
  EXPECT_THAT(Codes(facts), ElementsAre("running")) << "no worker wants to start more than it may";
  facts.cluster->limit_holds = true;
  EXPECT_THAT(Codes(facts), ElementsAre("running", "limit"));
}

TEST(TaskWhyTest, AWorkerWhoseBeatStandsStillIsNotSaidToBeAlive) {
  WhyFacts facts = Facts(TaskState::Running);
  facts.record.task.claimed_by = "w1.a";
  facts.beats = true;
  EXPECT_EQ(Codes(facts).front(), "running");
  facts.beats = false;
  EXPECT_EQ(Codes(facts).front(), "claimer_silent");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("whose beat stands still"));
}

TEST(TaskWhyTest, ARunningTaskOfADeadWorkerIsRescued) {
  WhyFacts facts = Facts(TaskState::Running);
  facts.record.task.claimed_by = "w0.z";
  const char* rescue =
      "It was claimed by w0.z, which is dead or gone: the next worker that scans its slice sets it "
      "waiting again.";
  EXPECT_THAT(Texts(facts), ElementsAre(rescue));
  facts.workers.clear();
  EXPECT_THAT(Texts(facts), ElementsAre(rescue, kNobody));
  facts.record.task.claimed_by.clear();
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("claimed by nobody"));
}

TEST(TaskWhyTest, AHeldTaskIsReleasedByItsName) {
  EXPECT_THAT(Texts(Facts(TaskState::Held)),
              ElementsAre("It is held: nothing happens to it until `millrace task release main/tasks/17`."));
}

TEST(TaskWhyTest, TheExpiryThatItsTypeGivesItIsToldAsItsOwnIs) {
  WhyFacts facts = Facts();
  facts.record.task.created_at = At("2026-11-20T17:55:00Z");
  facts.config.retry.expires_in = std::chrono::minutes(10);
  EXPECT_THAT(Codes(facts), ElementsAre("due", "expires", "workers"));
  facts.config.retry.expires_in = std::chrono::minutes(4);
  EXPECT_EQ(Codes(facts).front(), "expired");
  facts.record.task.expires_at = kNeverExpires;
  EXPECT_THAT(Codes(facts), ElementsAre("due", "workers")) << "it was retried";
  facts.record.task.expires_at = At("2026-11-20T18:00:30Z");
  facts.record.task.run_at = At("2026-11-20T18:01:00Z");
  EXPECT_THAT(Texts(facts),
              testing::Contains("It expires at 2026-11-20T18:00:30Z (in 30 s), before it is due: when it is "
                                "due it is skipped."));
}

TEST(TaskWhyTest, AHeldTaskThatWillNotStayHeldSaysSo) {
  WhyFacts facts = Facts(TaskState::Held);
  facts.config.held_for = std::chrono::hours(2);
  facts.record.task.expires_at = At("2026-11-20T17:59:30Z");
  EXPECT_THAT(Texts(facts),
              ElementsAre("It is held: it is not run until `millrace task release main/tasks/17`, and is "
                          "cancelled once nobody has changed it for 2h (held_for).",
                          "It expired at 2026-11-20T17:59:30Z (30 s ago): once released it is skipped."));
  EXPECT_THAT(Codes(facts), ElementsAre("held", "expired"));
}

TEST(TaskWhyTest, TheAuditSaysWhoHeldOrCancelledIt) {
  WhyFacts facts = Facts(TaskState::Held);
  facts.act = {At("2026-11-20T17:59:00Z"), "ann@here", "was waiting"};
  EXPECT_EQ(Texts(facts).front(),
            "It is held by ann@here since 2026-11-20T17:59:00Z (1 min 0 s ago): nothing happens to it until "
            "`millrace task release main/tasks/17`.");
  facts.record.task.state = TaskState::Cancelled;
  EXPECT_EQ(Texts(facts).front(), "It was cancelled or skipped, by ann@here.");
  EXPECT_EQ(Codes(facts).front(), "cancelled");
}

TEST(TaskWhyTest, WhatIsScannedInRoundsWaitsForOne) {
  WhyFacts facts = Facts(TaskState::Waiting);
  facts.record.task.run_at = facts.now - std::chrono::seconds(1);
  ASSERT_EQ(Codes(facts).front(), "due");
  facts.config.scan = ScanConfig{.after = std::chrono::seconds(20)};
  EXPECT_EQ(Codes(facts).front(), "next_round");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr(".scan`: after 20s)"));
}

TEST(TaskWhyTest, OneInABandWaitsForItsNextScan) {
  WhyFacts facts = Facts();
  facts.record.task.priority = 7;
  facts.record.task.failures = 2;
  facts.config.bands = {{.priority_from = 0, .priority_to = 4, .every = std::chrono::minutes(9)},
                        {.priority_from = 5,
                         .priority_to = 9,
                         .failures_from = 1,
                         .failures_to = 5,
                         .every = std::chrono::seconds(30),
                         .most = 1000}};
  EXPECT_EQ(Codes(facts).front(), "next_band");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("every 30s, at most 1,000 rows each time"));
  facts.record.task.failures = 12;
  facts.config.bands[1].failures_to = 9;
  EXPECT_EQ(Codes(facts).front(), "next_band");
  facts.record.task.failures = 0;
  EXPECT_EQ(Codes(facts).front(), "due");
}

TEST(TaskWhyTest, ABandThatHoldsNothingBackIsNoReason) {
  WhyFacts facts = Facts();
  facts.config.bands = {{.every = Micros(0)}};
  EXPECT_EQ(Codes(facts).front(), "due");
}

TEST(TaskWhyTest, WhatTheBrakeSlowsIsTold) {
  WhyFacts facts = Facts();
  facts.cluster.emplace();
  facts.cluster->owner = "w1";
  facts.cluster->owner_there = true;
  EXPECT_THAT(Codes(facts), testing::Not(testing::Contains("braked")));
  facts.cluster->scan_speed = 0.25;
  EXPECT_THAT(Codes(facts), testing::Contains("braked"));
}

TEST(TaskWhyTest, WhatALimitHoldsBackWaitsForIt) {
  WhyFacts facts = Facts(TaskState::Waiting);
  facts.record.task.run_at = facts.now - std::chrono::seconds(1);
  facts.config.limit = LimitConfig{.rate = 100};
  EXPECT_EQ(Codes(facts).front(), "limit");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("and waits for the limit of 100/s of "));
  facts.cluster = ClusterFacts{.slice = "main/tasks/17", .owner = "w1", .owner_there = true};
  EXPECT_NE(Codes(facts).front(), "limit");  // no worker wants to start more than it may
  facts.cluster->limit_holds = true;
  facts.config.limit = LimitConfig{.rate = 0.5, .concurrency = 3};
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("the limit of 30/m and 3 at once of "));
  EXPECT_THAT(Codes(facts), testing::Not(testing::Contains("due"))) << "no worker is waited for";
  facts.config.limit.reset();  // a worker's own
  facts.cluster->limit_unshared = true;
  EXPECT_EQ(Codes(facts).front(), "limit");
  EXPECT_THAT(Texts(facts).front(), testing::HasSubstr("waits for a share of the limit of "));
}

TEST(TaskWhyTest, EndedTasksSayHowTheyEnded) {
  WhyFacts facts = Facts(TaskState::Succeeded);
  facts.record.finished_at = At("2026-11-20T17:59:00Z");
  EXPECT_THAT(Texts(facts), ElementsAre("It succeeded at 2026-11-20T17:59:00Z (1 min 0 s ago), so there is "
                                        "nothing left to run."));
  facts.record.task.state = TaskState::Cancelled;
  EXPECT_THAT(Texts(facts),
              ElementsAre("It was cancelled or skipped at 2026-11-20T17:59:00Z (1 min 0 s ago)."));
  facts.record.task.last_error = "duplicate of tasks/3";
  EXPECT_THAT(Texts(facts),
              ElementsAre("It was cancelled or skipped at 2026-11-20T17:59:00Z (1 min 0 s ago): "
                          "duplicate of tasks/3"));
  EXPECT_EQ(Codes(facts).front(), "duplicate");
  facts.record.task.last_error = "expired before it started";
  EXPECT_EQ(Codes(facts).front(), "expired");
  facts.record.task.last_error = "the customer is gone";
  EXPECT_EQ(Codes(facts).front(), "skipped");
}

TEST(TaskWhyTest, AFailedTaskSaysWhyAndHowToRunItAgain) {
  WhyFacts facts = Facts(TaskState::Failed);
  EXPECT_THAT(Texts(facts), ElementsAre("It failed for good and needs a person: no reason is noted.",
                                        "When the cause is gone: `millrace task retry main/tasks/17`."));
  facts.record.task.last_error = "no such customer";
  facts.record.task.attempt = 4;
  EXPECT_EQ(Texts(facts).front(), "It failed for good after 4 attempts and needs a person: no such customer");
}

}  // namespace
}  // namespace millrace::engine
