#include "coordinator/app/cluster/cluster_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const WallTime kLookedAt = ParseTime("2026-11-20T18:00:00Z").value();

// w1 leads and has slices; nothing is wrong.
ClusterSnapshot HealthyCluster() {
  ClusterSnapshot snapshot;
  snapshot.epoch = {3, "w1", "w1.a"};
  snapshot.candidates = {"w1"};
  snapshot.workers["w1"] = {.host = "h", .incarnation = "w1.a"};
  snapshot.assigned["w1"] = {3, 1, {"main/tasks/0"}, {}};
  return snapshot;
}

ShardStates OneTable() {
  ShardState state;
  state.reachable = true;
  state.tables = {{"tasks", 64, {}}};
  return {{"main", state}};
}

std::vector<std::string> Told(const ClusterSnapshot& snapshot, const ShardStates& shards, WallTime now) {
  std::vector<std::string> texts;
  for (const Trouble& trouble : Troubles(snapshot, shards, now)) texts.push_back(ToText(trouble));
  return texts;
}

std::string Stands(const std::optional<Trouble>& still) { return still ? ToText(*still) : ""; }

TEST(ClusterHealthTest, WhereAllIsWellNothingIsSaid) {
  EXPECT_THAT(Told(HealthyCluster(), OneTable(), kLookedAt), IsEmpty());
  EXPECT_EQ(StateOf(HealthyCluster(), "w1"), "working");
}

TEST(ClusterHealthTest, ALimitOfWhichNobodyHasAShareIsSaid) {
  ClusterSnapshot snapshot = HealthyCluster();
  nlohmann::ordered_json limit{{"running", 2}, {"share", nlohmann::ordered_json::object()}};
  snapshot.statuses["w1"] = {{"limits", {{"mail", limit}}}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre(AllOf(HasSubstr("no worker has a share of the limit of mail"),
                                HasSubstr("until some of 2 running tasks have ended"))));
  snapshot.statuses["w1"]["limits"]["mail"]["running"] = 0;
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), ElementsAre(HasSubstr("the leader has divided none")));
  snapshot.workers["w1"].limits.handlers = {"sms"};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty()) << "it runs no mail";
  snapshot.workers["w1"].limits.handlers.reset();
  snapshot.statuses["w1"]["limits"]["mail"]["share"]["permits"] = 1;
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty());
}

TEST(ClusterHealthTest, AWorkerThatCantWorkInAShardIsSaidThoughTheShardAnswersHere) {
  const auto status = [](const char* error) {
    return nlohmann::ordered_json{{"shards", {{"main", {{"reachable", false}, {"error", error}}}}}};
  };
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {{"shards", {{"main", {{"reachable", false}}}}}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty()) << "it has not looked yet";
  snapshot.statuses["w1"] = {{"shards", {{"main", {{"lag_ms", 0}}}}}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty()) << "it tells nothing of it";
  snapshot.statuses["w1"] = status("no route");
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre("w1 can't work in shard main, and the tasks of 1 slice wait: no route; see "
                          "whether the database answers there; where others reach it, millrace "
                          "cluster drain w1 gives them the slices"));
  snapshot.statuses["w2"] = status("no route");
  snapshot.statuses["w3"] = status("access denied");
  EXPECT_THAT(
      Told(snapshot, OneTable(), kLookedAt),
      ElementsAre("w3 can't work in shard main: access denied; see whether the database answers there",
                  AllOf(HasSubstr("w1, w2 can't work"), HasSubstr("1 slice"), HasSubstr("drain ID"))));
}

TEST(ClusterHealthTest, ATableOfWhichNothingIsClaimedIsSaidOnceForWorkersThatSayTheSame) {
  const auto status = [](nlohmann::ordered_json resting) {
    return nlohmann::ordered_json{{"shards", {{"main", {{"resting", std::move(resting)}}}}}};
  };
  ClusterSnapshot snapshot = HealthyCluster();
  for (const char* id : {"w1", "w2"})
    snapshot.statuses[id] = status({{"tasks", "Lock wait timeout exceeded"}});
  snapshot.statuses["w3"] = status("not an object");
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre("nothing of table tasks in shard main is claimed by w1, w2: Lock wait timeout "
                          "exceeded; see what locks it, or whether it is still there; it is tried again all "
                          "the time"));
}

TEST(ClusterHealthTest, ATermWhoseLeaderStandsNoMoreIsSaid) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.candidates = {"w2"};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), ElementsAre(HasSubstr("nobody leads")));
}

TEST(ClusterHealthTest, WithoutALeaderWorkGoesOnAsLongAsEverySliceHasAWorker) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.candidates.clear();
  EXPECT_EQ(Stands(Standstill(snapshot)), "");
  snapshot.assigned["w2"] = {3, 1, {"main/tasks/1", "main/tasks/2"}, {}};
  EXPECT_THAT(Stands(Standstill(snapshot)),
              AllOf(HasSubstr("nobody leads: 2 slices have no worker that is there"),
                    HasSubstr("start millrace coordinator")));
  snapshot.assigned.clear();
  EXPECT_THAT(Stands(Standstill(snapshot)), HasSubstr("nobody leads: no slice has a worker"));
}

TEST(ClusterHealthTest, WithoutAPlanWorkStandsStill) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.assigned.clear();
  EXPECT_THAT(Stands(Standstill(snapshot)), HasSubstr("there is no plan"));
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), ElementsAre(HasSubstr("there is no plan")));
  snapshot.draining = {"w1"};
  EXPECT_EQ(Stands(Standstill(snapshot)), "");
  snapshot.draining.clear();
  snapshot.plan.unplaceable = 1;  // that is said by itself
  EXPECT_EQ(Stands(Standstill(snapshot)), "");
}

TEST(ClusterHealthTest, WhereTasksWaitAndNobodyMayRunThemWorkStandsStill) {
  ClusterSnapshot snapshot = HealthyCluster();
  ShardStates shards = OneTable();
  std::vector<std::string> slices;
  snapshot.draining = {"w1"};
  EXPECT_EQ(Stands(Standstill(snapshot, shards)), "") << "nothing waits";
  shards["main"].backlog.waiting = 1;
  EXPECT_EQ(Stands(Standstill(snapshot, shards)), "") << "it keeps what no other may have, and goes on";
  std::swap(snapshot.assigned["w1"].slices, slices);
  EXPECT_THAT(
      Stands(Standstill(snapshot, shards)),
      AllOf(HasSubstr("1 task waits, and every worker is drained"), HasSubstr("millrace cluster undrain")));
  std::swap(snapshot.assigned["w1"].slices, slices);
  snapshot.draining.clear();
  EXPECT_EQ(Stands(Standstill(snapshot, shards)), "");
  snapshot.pauses = {"cluster"};
  EXPECT_THAT(Stands(Standstill(snapshot, shards)), HasSubstr("the cluster is paused"));
  snapshot.pauses = {"handler:noop"};
  EXPECT_EQ(Stands(Standstill(snapshot, shards)), "");
  snapshot.workers.clear();
  shards["main"].backlog = {.waiting = 10'000, .or_more = true};
  EXPECT_THAT(Stands(Standstill(snapshot, shards)),
              HasSubstr("10,000 or more tasks wait, and no worker is there"));
}

TEST(ClusterHealthTest, WhereNoShardAnswersThatIsSaidFirst) {
  ShardStates shards = OneTable();
  shards["away"] = {.error = "no server there"};
  EXPECT_FALSE(AllAway(shards));
  EXPECT_THAT(Told(HealthyCluster(), shards, kLookedAt), ElementsAre("shard away: no server there"));
  shards.erase("main");
  EXPECT_TRUE(AllAway(shards));
  EXPECT_THAT(Told(HealthyCluster(), shards, kLookedAt),
              ElementsAre(HasSubstr("no shard answers here"), "shard away: no server there"));
  EXPECT_FALSE(AllAway({{"main", {}}})) << "nobody has asked it";
  EXPECT_FALSE(AllAway({}));
}

TEST(ClusterHealthTest, WhereSomebodyStandsForItALeaderIsBeingElected) {
  ClusterSnapshot snapshot = HealthyCluster();
  EXPECT_EQ(LeaderText(snapshot), "w1");
  snapshot.candidates = {"w2"};
  EXPECT_EQ(LeaderText(snapshot), "electing");
  snapshot.candidates.clear();
  EXPECT_EQ(LeaderText(snapshot), "none");
}

TEST(ClusterHealthTest, WhatOperatorsLimitedIsSaid) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.limits["w1"] = {{.handlers = {{"noop"}}, .load_balance = {{0, 1, 2}}}, {{"report", 500}}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre(AllOf(HasSubstr("w1 is limited by an operator to"), HasSubstr("task types noop"),
                                HasSubstr("0-2"), HasSubstr("500 rows of report in a round"),
                                HasSubstr("millrace cluster limit w1 --none"))));
}

TEST(ClusterHealthTest, NodesThatWereDeletedAreSaidForAnHour) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.made_again = {{{"/history"}, "2026-11-20T16:59:00Z", "w1"},
                         {{"/control", "/control/drain"}, "2026-11-20T17:59:00Z", "w2"}};
  snapshot.missing = {"/assign"};
  EXPECT_THAT(
      Told(snapshot, OneTable(), kLookedAt),
      ElementsAre(HasSubstr("missing: /assign"),
                  AllOf(HasSubstr("w2 made them again at 2026-11-20T17:59:00Z: /control, /control/drain"),
                        HasSubstr("set it again"))));
}

TEST(ClusterHealthTest, WorkersThatMeanDifferentDatabasesByOneNameAreSaidOnce) {
  ClusterSnapshot snapshot = HealthyCluster();
  for (const char* id : {"w2", "w3", "w4", "w5"}) {
    snapshot.workers[id] = {.host = "h", .incarnation = std::string(id) + ".a"};
    snapshot.workers[id].databases["main"] = "yesterday";
  }
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty());  // of w1 it is not known
  snapshot.workers["w1"].databases["main"] = "today";
  snapshot.workers["w1"].databases["east"] = "yesterday";
  const auto troubles = Told(snapshot, OneTable(), kLookedAt);
  EXPECT_THAT(
      troubles,
      ElementsAre(AllOf(HasSubstr("the shard main: w1 one whose schema was made at today; w2, w3, w4 and 1 "
                                  "more one whose schema was made at yesterday"),
                        HasSubstr("config/shards"))));
  snapshot.plan.troubles = troubles;
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), ElementsAre("the leader: " + troubles[0]));
}

TEST(ClusterHealthTest, AWorkerOnProbationIsToldWithTheTimeAndTheWayOut) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.workers["w2"] = {.host = "h", .incarnation = "w2.b"};
  snapshot.plan.probation["w2"] = "2026-11-20T18:00:12Z";
  EXPECT_EQ(StateOf(snapshot, "w2"), "probation");
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre(AllOf(HasSubstr("w2 is on probation until 2026-11-20T18:00:12Z (in 12 s)"),
                                HasSubstr("millrace cluster proceed"))));
  snapshot.plan.probation["w2"] = "2026-11-20T17:59:59Z";
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty());
}

TEST(ClusterHealthTest, AWorkerWhoseLimitsNoTableMeetsIsSaid) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.workers["w2"] = {.host = "h", .incarnation = "w2.b", .limits = {.load_balance = {{64, 65, 70}}}};
  EXPECT_EQ(StateOf(snapshot, "w2"), "standby");
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre(AllOf(HasSubstr("w2"), HasSubstr("load-balance numbers 64-65,70"))));
  snapshot.workers["w2"].limits.load_balance = {{63, 64}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt), IsEmpty());
  snapshot.workers["w2"].limits.load_balance = {{64}};
  EXPECT_THAT(Told(snapshot, {{"main", ShardState{}}}, kLookedAt), IsEmpty());  // its tables are not known
}

TEST(ClusterHealthTest, RefusalsOfAnyTypeAreReadAsFarAsTheyAreTexts) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {{"refused", {"config/engine: why", 7, nullptr}}, {"refusals", "no list"}};
  snapshot.statuses["w2"] = {{"refused", {"limits: why"}}, {"refusals", {"handlers.mail: no server"}}};
  EXPECT_THAT(
      Told(snapshot, OneTable(), kLookedAt),
      ElementsAre("w1 refuses config/engine: why; mend it, or go back: millrace config rollback engine",
                  "w2 refuses limits: why",
                  "w2 refuses handlers.mail: no server; mend it, or go back: millrace config rollback "
                  "handlers"));
}

TEST(ClusterHealthTest, OfATypeThatAWorkerCannotRunItsHandlersWordsAreRead) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {{"shards", {{"main", {{"unrunnable", {"exec", "typo"}}}}}},
                             {"refusals", {"handlers.exec: no program", "handlers.mail: the former stay"}}};
  EXPECT_EQ(WhyUnopened(snapshot, "w1", "main", "exec"), "no program");
  EXPECT_EQ(WhyUnopened(snapshot, "w1", "main", "mail"), "") << "it runs with what it had";
  EXPECT_EQ(WhyUnopened(snapshot, "w1", "main", "typo"), "") << "it has no handler to open";
  EXPECT_EQ(WhyUnopened(snapshot, "w1", "other", "exec"), "");
  EXPECT_EQ(WhyUnopened(snapshot, "w2", "main", "exec"), "");
}

TEST(ClusterHealthTest, AWorkerThatCanHaveNoPermitsIsNamedWithTheReason) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {{"permits_held_up", "shard a, the home of permits, does not answer"}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre("w1 holds up what needs a permit: shard a, the home of permits, does not "
                          "answer"));
}

TEST(ClusterHealthTest, TypesWhosePermitsAreLockedAreNamed) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {{"permits_locked", {"mail"}}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre("w1 can't change permits of mail: another session has locked their rows; end that "
                          "session, or wait for it"));
}

TEST(ClusterHealthTest, AStoreThatIsIgnoredIsNamed) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {
      {"ignored", {"--store mysql://u@h:1/d is ignored: config/shards names the shards"}}};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre(testing::StartsWith("w1: --store mysql://")));
}

TEST(ClusterHealthTest, APauseOfTheShardsAloneIsNamedWithThem) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.pauses = {"cluster"};
  ShardStates shards = OneTable();
  shards["main"].pauses = {"cluster", "handler:noop"};
  EXPECT_THAT(Told(snapshot, shards, kLookedAt),
              ElementsAre("paused: cluster; millrace cluster resume cluster ends that",
                          "paused: handler:noop, by word of the shard alone: main; millrace cluster resume "
                          "handler:noop ends that"));
}

TEST(ClusterHealthTest, OfAPausedWorkerItIsSaidWhatWaitsAndHowItGoesOn) {
  ClusterSnapshot snapshot = HealthyCluster();
  const std::size_t slices = snapshot.SliceCount("w1");
  ASSERT_GT(slices, 0U);
  snapshot.pauses = {"worker:w1"};
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              ElementsAre("paused: worker:w1; the tasks of its " + std::to_string(slices) +
                          (slices == 1 ? " slice" : " slices") +
                          " wait; millrace cluster resume worker:w1 ends that"));
  ShardStates shards = OneTable();
  shards["main"].backlog.waiting = 2;
  for (const auto& [id, worker] : HealthyCluster().workers) snapshot.pauses.push_back("worker:" + id);
  EXPECT_THAT(Stands(Standstill(snapshot, shards)), HasSubstr("2 tasks wait, and every worker is paused"));
}

TEST(ClusterHealthTest, AWorkerThatIsNotLateWithItsStatusIsInTouch) {
  EXPECT_EQ(SignText(std::chrono::seconds(59)), "in touch");
  EXPECT_EQ(SignText(std::chrono::minutes(2)), "2 min 0 s ago");
}

TEST(ClusterHealthTest, ABreakerIsNamedWithItsReasonAndOneByHandWithWhoSaidSo) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.breakers["pay"] = {"2026-11-20T18:00:00Z", "20 of 20 calls failed within 10s", "w1"};
  snapshot.pauses = {"breaker:mail:open"};
  EXPECT_THAT(
      Told(snapshot, OneTable(), kLookedAt),
      ElementsAre("open by hand: the breaker of mail; millrace handler breaker mail auto ends that",
                  "the breaker of pay is open, and its tasks wait: 20 of 20 calls failed within 10s, "
                  "since 2026-11-20T18:00:00Z, by w1; not probed yet; it closes by itself once "
                  "probes succeed; millrace handler breaker pay close starts them at once, and keeps it "
                  "closed until millrace handler breaker pay auto"));
  snapshot.breakers["pay"].prober = "w2";
  snapshot.breakers["pay"].probed = "2026-11-20T18:00:04Z";
  snapshot.statuses["w1"]["breakers"]["pay"]["next_probe"] = "2026-11-20T18:00:06Z";
  EXPECT_THAT(Told(snapshot, OneTable(), kLookedAt),
              testing::Contains(
                  HasSubstr("probed last by w2 at 2026-11-20T18:00:04Z, next at 2026-11-20T18:00:06Z")));
}

TEST(ClusterHealthTest, ADoorbellThatIsMeantToBeOnAndIsNotIsNamedOnceForItsReason) {
  ClusterSnapshot snapshot = HealthyCluster();
  const auto says = [&](const std::string& id, const std::string& doorbell) {
    snapshot.statuses[id] = {{"shards", {{"main", {{"doorbell", doorbell}}}}}};
  };
  says("w1", "off: no log");
  says("w2", "off: no log");
  says("w3", "on");
  says("w4", "off");
  snapshot.statuses["w5"] = {{"shards", {{"main", {{"doorbell", 5}}}}}};
  snapshot.statuses["w6"] = {{"shards", 7}};
  EXPECT_THAT(
      Told(snapshot, OneTable(), kLookedAt),
      ElementsAre("the doorbell of shard main at w1, w2 is off: no log; new tasks are found by polling"));
  EXPECT_EQ(DoorbellsOf(snapshot, "main").size(), 4u);
  EXPECT_TRUE(DoorbellsOf(snapshot, "other").empty());
}

TEST(ClusterHealthTest, WhereTheBrakeHoldsIsTold) {
  ClusterSnapshot snapshot = HealthyCluster();
  snapshot.statuses["w1"] = {{"shards", {{"main", {{"scan_speed", 0.25}}}}}};
  snapshot.statuses["w2"] = {{"shards", {{"main", {{"scan_speed", "slow"}}}}}};
  snapshot.statuses["w3"] = {{"shards", {{"main", 7}}}};
  EXPECT_THAT(
      Told(snapshot, OneTable(), kLookedAt),
      ElementsAre("scanning of shard main by w1 is slowed to 25 %, since its answers are slow or it "
                  "was away; see what keeps its database busy; it is scanned at full speed again once "
                  "it answers within engine.brake"));
}

TEST(ClusterHealthTest, WhoIsAwayIsGoneOrExpectedBack) {
  ClusterSnapshot snapshot = HealthyCluster();
  EXPECT_EQ(StateOf(snapshot, "w9"), "gone");
  snapshot.left = {"w9"};
  EXPECT_EQ(StateOf(snapshot, "w9"), "stopped");
  snapshot.expected = {"w9"};
  EXPECT_EQ(StateOf(snapshot, "w9"), "restarting");
  snapshot.draining = {"w1"};
  EXPECT_EQ(StateOf(snapshot, "w1"), "draining");
}

}  // namespace
}  // namespace millrace::engine
