#include "coordinator/alerts/alert_shard.h"

#include <gmock/gmock.h>

#include "coordinator/alerts/notice.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

class AlertShardTest : public testing::Test {
 protected:
  AlertShardTest() {
    place_.runs = [](const std::string& type) { return type != "exotic"; };
    place_.spot = [](const std::string&, const std::string&,
                     const std::vector<TableInfo>& tables) -> std::optional<AlertSpot> {
      return AlertSpot{tables.front().table, 3};
    };
    config_.webhook = "http://127.0.0.1/hook";
    config_.mail = {"ops@example.com"};
  }

  Observation Look() {
    Observation seen;
    const AlertNeeds needs{.late = minutes(5), .events = minutes(10), .config = &handlers_};
    const Status status = shard_.Observe(needs, place_, clock_.Now(), seen);
    EXPECT_TRUE(status) << status.error().message;
    return seen;
  }
  Notice Word(std::uint64_t number, bool firing, std::uint64_t count) {
    Notice notice{.alert = "failed", .number = number, .firing = firing};
    notice.fact.count = count;
    if (firing) notice.fact.names = {"pay", "ship"};
    notice.since = clock_.WallNow();
    return notice;
  }
  bool Add(const Notice& notice) {
    const auto added = shard_.Add(TasksOf(notice, config_), place_);
    EXPECT_TRUE(added) << added.error().message;
    return added && *added;
  }

  ManualClock clock_;
  std::shared_ptr<ScratchStore> store_ = std::make_shared<ScratchStore>(clock_);
  AlertShard shard_{"main", store_};
  AlertPlace place_;
  AlertConfig config_;
  Config handlers_;
};

TEST_F(AlertShardTest, AMessageIsAddedOnceWhoeverSaysIt) {
  Look();
  AlertShard other("main", store_);
  Observation seen;
  ASSERT_TRUE(other.Observe({}, place_, clock_.Now(), seen));
  EXPECT_TRUE(Add(Word(1, true, 10'000)));
  EXPECT_FALSE(*other.Add(TasksOf(Word(1, true, 9'999), config_), place_));
  EXPECT_FALSE(*other.Add(TasksOf(Word(1, false, 0), config_), place_));
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks"), 2);
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks WHERE slice=3"), 2);
}

TEST_F(AlertShardTest, WhatWasSaidIsReadBackFromTheLedgerAndTheTask) {
  Look();
  EXPECT_EQ(shard_.Said("failed", clock_.Now())->number, 0u);
  Add(Word(1, true, 10'000));
  clock_.Advance(minutes(2));
  const auto said = shard_.Said("failed", clock_.Now());
  ASSERT_TRUE(said);
  EXPECT_EQ(said->number, 1u);
  EXPECT_TRUE(said->firing);
  EXPECT_EQ(said->count, 10'000u);
  EXPECT_THAT(said->names, testing::ElementsAre("pay", "ship"));
  EXPECT_EQ(said->kind, "failed");
  EXPECT_EQ(said->handler, "*");
  EXPECT_EQ(clock_.Now() - *said->fired_at, minutes(2));
  Add(Word(2, false, 0));
  const auto over = shard_.Said("failed", clock_.Now());
  EXPECT_EQ(over->number, 2u);
  EXPECT_FALSE(over->firing);
  EXPECT_EQ(clock_.Now() - *over->fired_at, minutes(2));
  EXPECT_EQ(shard_.Said("faile", clock_.Now())->number, 0u);
}

TEST_F(AlertShardTest, AMessageThatWasNotSentSaysNothingAnyMoreWhereItsEndMayBeForgotten) {
  Look();
  Add(Word(1, true, 5));
  ASSERT_TRUE(store_->OpenTasks()->FailUnclaimed({kDefaultTable, "x", 0, {1, 2}}, "no way"));
  clock_.Advance(std::chrono::days(30));
  EXPECT_TRUE(shard_.Said("failed", clock_.Now())->firing);
  clock_.Advance(seconds(1));
  const auto said = shard_.Said("failed", clock_.Now());
  EXPECT_FALSE(said->firing);
  EXPECT_EQ(said->number, 1u);
}

TEST_F(AlertShardTest, KeysOfOthersThatLookAlikeHideNothing) {
  Look();
  Add(Word(1, true, 5));
  for (int i = 0; i < 100; ++i) {
    store_->Run(
        "INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES ('noop',"
        "'alert/failed/9000000" +
        std::to_string(100 + i) + "/x','tasks',99,'2026-01-01 00:00:00.000000')");
  }
  EXPECT_EQ(shard_.Said("failed", clock_.Now())->number, 1u);
}

TEST_F(AlertShardTest, WhatWasNotSentBeforeTheEndIsTakenBack) {
  Look();
  Add(Word(1, true, 5));
  Add(Word(2, false, 0));
  ASSERT_EQ(store_->Ask("SELECT count(*) FROM tasks WHERE biz_key LIKE 'alert/failed/0000000001/%'"), 2);
  shard_.Withdraw("failed", 2, true);
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks WHERE biz_key LIKE 'alert/failed/0000000001/%'"), 0);
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks WHERE biz_key LIKE 'alert/failed/0000000002/%'"), 2);
  EXPECT_EQ(shard_.Said("failed", clock_.Now())->number, 2u);
}

TEST_F(AlertShardTest, FailedTasksAreSeenByTheCountersAndThoseOfAlertsAreNot) {
  store_->Run(
      "INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded,cancelled,failed,"
      "attempts_failed) VALUES ('tasks','noop','','a',0,0,5,5),('tasks','noop','b','a',0,0,-2,0),"
      "('tasks','millrace.mail','','a',0,0,3,3)");
  const Observation seen = Look();
  EXPECT_EQ(*seen.failed, (std::map<std::string, std::uint64_t>{{"noop", 3}}));
  EXPECT_EQ(shard_.unsent().failed, 3u);
}

TEST_F(AlertShardTest, ASchedulesLatenessIsSeenUntilSomebodyHasLookedAtIt) {
  const auto look = [&] {
    Observation seen;
    EXPECT_TRUE(shard_.Observe({.events = minutes(10), .schedules = true}, place_, clock_.Now(), seen));
    return seen;
  };
  const auto schedules = store_->OpenSchedules();
  ScheduleRow nightly{.name = "nightly"};
  nightly.state = {.rhythm = "every 1h", .anchor = clock_.WallNow(), .next = clock_.WallNow() + minutes(5)};
  ScheduleRow paused = nightly;
  paused.name = "paused";
  paused.state.paused = true;
  ScheduleRow moved = nightly;
  moved.name = "moved";
  for (const ScheduleRow& row : {nightly, paused, moved}) ASSERT_TRUE(*schedules->Make(row));
  ASSERT_TRUE(*schedules->Move(moved, "eu", 0));
  clock_.Advance(minutes(6));
  EXPECT_TRUE(look().late_schedules->empty());
  clock_.Advance(seconds(1));
  EXPECT_EQ(*look().late_schedules,
            (std::map<std::string, Micros>{{"main/nightly", minutes(1) + seconds(1)}}));

  // Two of its firings are given up: an event. From here on it is punctual.
  ScheduleStep step{.to = nightly.state, .lapsed = 2, .told = {{2, "nobody looked"}}};
  step.to.next = clock_.WallNow() + minutes(60);
  ASSERT_TRUE(schedules->Step(nightly, step)->moved);
  const Observation seen = look();
  EXPECT_TRUE(seen.late_schedules->empty());
  ASSERT_EQ(seen.events->size(), 1u);
  EXPECT_EQ(seen.events->at(0).kind, kScheduleLapsed);
  EXPECT_EQ(seen.events->at(0).what, "main/nightly");
  EXPECT_EQ(seen.events->at(0).type, "2: nobody looked");
  // Without an alert of the kind nobody reads them.
  EXPECT_FALSE(Look().late_schedules.has_value());
}

TEST_F(AlertShardTest, ExamplesAreTheMostFrequentFailuresOfTheType) {
  auto operations = store_->OpenOperations();
  const std::vector<NewTask> tasks(3, NewTask{.handler = "noop"});
  ASSERT_TRUE(operations->Submit(kDefaultTable, tasks));
  ASSERT_TRUE(store_->OpenTasks()->FailUnclaimed({kDefaultTable, "x", 0, {1, 2, 3}}, "no\nway"));
  Look();
  const auto examples = shard_.FailedExamples("*", 5);
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_THAT(examples[0], HasSubstr("main/tasks/3, noop [unclaimable] and 2 like it: no"));
  EXPECT_TRUE(shard_.FailedExamples("exec", 5).empty());
}

TEST_F(AlertShardTest, TheOldestThatWaitsIsFoundBehindThoseThatRun) {
  auto operations = store_->OpenOperations();
  std::vector<NewTask> tasks(3);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].handler = i == 2 ? "exotic" : "noop";
    tasks[i].slice = 1;
    tasks[i].run_at = clock_.WallNow() - minutes(30 - 10 * static_cast<int>(i));
  }
  ASSERT_TRUE(operations->Submit(kDefaultTable, tasks));
  EXPECT_EQ(Look().late->at("noop"), minutes(30));
  store_->Run("UPDATE tasks SET state=2, claimed_by=7, claimed_at=run_at WHERE id=1");
  const Observation seen = Look();
  EXPECT_EQ(seen.late->at("noop"), minutes(20));
  EXPECT_EQ(seen.unrunnable->size(), 1u);
  EXPECT_EQ(seen.unrunnable->at("exotic"), minutes(10));
}

TEST_F(AlertShardTest, TheOldestThatWaitsIsFoundBehindHundredsOfGroupsThatRunAndBehindMoreItIsNotKnown) {
  const auto add = [this](std::uint32_t rows, Micros ago) {
    std::vector<NewTask> tasks(rows, NewTask{.handler = "noop"});
    for (std::uint32_t i = 0; i < rows; ++i) {
      tasks[i].slice = i % 64;
      tasks[i].priority = i / 64;
      tasks[i].run_at = clock_.WallNow() - ago;
    }
    ASSERT_TRUE(store_->OpenOperations()->Submit(kDefaultTable, tasks));
  };
  add(1, minutes(30));
  store_->Run("UPDATE tasks SET failures=9");
  add(600, minutes(40));
  store_->Run("UPDATE tasks SET state=2, claimed_by=7, claimed_at=run_at WHERE id>1");
  Observation seen = Look();
  EXPECT_EQ(seen.late->at("noop"), minutes(30));
  EXPECT_TRUE(seen.late_unsure.empty());
  add(600, minutes(40));
  store_->Run("UPDATE tasks SET state=2, claimed_by=7, claimed_at=run_at, failures=1 WHERE id>601");
  seen = Look();
  EXPECT_FALSE(seen.late->contains("noop"));
  EXPECT_TRUE(seen.late_unsure.contains("noop"));
}

TEST_F(AlertShardTest, WhatWaitsOnPurposeIsNotLateNorIsTheTimeForWhichItDid) {
  std::vector<NewTask> tasks(1);
  tasks[0].handler = "noop";
  tasks[0].slice = 1;
  tasks[0].run_at = clock_.WallNow() - minutes(30);
  ASSERT_TRUE(store_->OpenOperations()->Submit(kDefaultTable, tasks));
  ASSERT_EQ(Look().late->at("noop"), minutes(30));
  for (const char* pause : {"handler:noop", "breaker:noop:open", "slice:main:tasks:1", "cluster"}) {
    Pauses pauses;
    ASSERT_TRUE(pauses.Add(pause));
    place_.pauses = std::make_shared<const Pauses>(pauses);
    EXPECT_TRUE(Look().late->empty()) << pause;
  }
  place_.pauses.reset();
  EXPECT_TRUE(Look().late->empty()) << "it could have been started just now";
  clock_.Advance(minutes(6));
  EXPECT_EQ(Look().late->at("noop"), minutes(6));
}

TEST_F(AlertShardTest, ALostWorkerACrashAndARefusedSettleAreEvents) {
  auto incarnations = store_->OpenIncarnations();
  Incarnation life{"w1.0123", "w1", "host", 1, seconds(10), ""};
  ASSERT_TRUE(incarnations->Register(life));
  ASSERT_TRUE(*incarnations->MarkDead("w1.0123", 0));
  life.id = "w2.0123";
  ASSERT_TRUE(incarnations->Register(life));
  ASSERT_TRUE(*incarnations->Retire("w2.0123"));  // in good order
  life.id = "w3.0123";
  ASSERT_TRUE(incarnations->Register(life));
  ASSERT_TRUE(*incarnations->Bury("w3.0123"));
  ASSERT_FALSE(*incarnations->Bury("w3.0123"));
  ASSERT_TRUE(store_->OpenAlerts()->Note(kSettleRefused, "w4.0123", "tasks/17", "noop"));
  const std::vector<SeenEvent> events = *Look().events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].what, "w1.0123");
  EXPECT_EQ(events[1].what, "w3.0123");
  EXPECT_EQ(events[2].what, "main/tasks/17");
  clock_.Advance(minutes(5));
  EXPECT_EQ(Look().events->front().ago, minutes(5));
  clock_.Advance(minutes(6));
  EXPECT_TRUE(Look().events->empty());
}

TEST_F(AlertShardTest, HoweverManyEventsThereAreOfAKindTheyPushOutNoneOfAnother) {
  const auto alerts = store_->OpenAlerts();
  ASSERT_TRUE(alerts->Note(kWorkerLost, "", "w.1", ""));
  ASSERT_TRUE(alerts->Note(kHandlerCrashed, "w.1", "tasks/1", "mailer"));
  for (const char* what : {"'settle_refused','tasks/1','noop'", "'crash','tasks/1','noop'"}) {
    store_->Run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000) INSERT INTO "
        "millrace_audit (at,actor,action,subject,detail) SELECT (SELECT min(at) FROM millrace_audit),'w.1'," +
        std::string(what) + " FROM n");
  }
  const Observation seen = Look();
  const auto fact = [&seen](AlertKind kind, const std::string& handler, std::uint32_t more_than) {
    AlertConfig alert;
    alert.kind = kind;
    alert.handler = handler;
    alert.more_than = more_than;
    return FactOf(alert, seen).value();
  };
  EXPECT_EQ(fact(AlertKind::WorkerLost, "*", 0).count, 1u);
  EXPECT_EQ(fact(AlertKind::Crashes, "mailer", 0).count, 1u);
  EXPECT_TRUE(fact(AlertKind::Crashes, "noop", 2'000).holds);
  EXPECT_TRUE(fact(AlertKind::Refused, "*", 2'000).holds);
  EXPECT_LT(seen.events->size(), 5'000u) << "what nobody counts is not kept";
}

// Numbers are given out before the commit.
TEST_F(AlertShardTest, AnEventThatIsCommittedBehindALaterOneIsNotMissedAndNoneIsSeenTwice) {
  const auto enter = [&](int number) {
    ASSERT_TRUE(
        store_->OpenAlerts()->Note(kHandlerCrashed, "w.1", "tasks/" + std::to_string(number), "noop"));
    store_->Run("UPDATE millrace_audit SET id=" + std::to_string(number) +
                " WHERE id=(SELECT max(id) FROM millrace_audit WHERE subject='tasks/" +
                std::to_string(number) + "')");
  };
  enter(8);
  ASSERT_EQ(Look().events->size(), 1u);
  clock_.Advance(seconds(5));
  enter(7);
  const std::vector<SeenEvent> both = *Look().events;
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].what, "main/tasks/7");
  EXPECT_EQ(both[1].type, "noop");
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(seconds(5));
    ASSERT_EQ(Look().events->size(), 2u) << i;
  }
}

TEST_F(AlertShardTest, WherePeoplesActionsAreAllThatHappensTheyAreReadOnce) {
  ASSERT_TRUE(store_->OpenOperations()->SetPause("cluster", "ann", true));
  store_->Run("UPDATE millrace_audit SET id=100 WHERE subject='cluster'");
  Look();
  clock_.Advance(minutes(1));
  Look();
  ASSERT_TRUE(store_->OpenAlerts()->Note(kHandlerCrashed, "w.1", "tasks/1", "noop"));
  store_->Run("UPDATE millrace_audit SET id=99 WHERE subject='tasks/1'");
  EXPECT_TRUE(Look().events->empty()) << "what lies further back than a minute";
}

TEST_F(AlertShardTest, ABreakerThatAnotherProcessTellsOfIsOpen) {
  EXPECT_FALSE(Look().breakers) << "not known";
  place_.breakers.emplace()["pay"] = "mine";
  const auto look = [this] {
    Observation seen;
    seen.breakers = place_.breakers;
    EXPECT_TRUE(shard_.Observe({}, place_, clock_.Now(), seen));
    return *seen.breakers;
  };
  using Open = std::map<std::string, std::string>;
  EXPECT_EQ(look(), (Open{{"pay", "mine"}}));
  const auto operations = store_->OpenOperations();
  for (const char* type : {"pay", "ship"})
    ASSERT_TRUE(operations->SetPause(TrippedName(type, "w2"), "w2", true, "20 of 20 calls failed"));
  ASSERT_TRUE(operations->SetPause("breaker:mail:open", "ann", true, "the server is down"));
  EXPECT_EQ(look(), (Open{{"pay", "mine"}, {"ship", "20 of 20 calls failed"}}));
  ASSERT_TRUE(operations->SetPause(TrippedName("ship", "w2"), "w2", false, {}));
  EXPECT_EQ(look(), (Open{{"pay", "mine"}}));
}

TEST_F(AlertShardTest, WhatOthersRunMayNotBeKnown) {
  place_.runs = nullptr;
  const std::vector<NewTask> tasks(1, NewTask{.handler = "exotic"});
  ASSERT_TRUE(store_->OpenOperations()->Submit(kDefaultTable, tasks));
  EXPECT_FALSE(Look().unrunnable.has_value());
}

TEST_F(AlertShardTest, AMessageThatIsTriedAgainIsTold) {
  Look();
  Add(Word(1, true, 1));
  EXPECT_FALSE((Look(), shard_.unsent().tries_again));
  store_->Run("UPDATE tasks SET failures=1 WHERE handler='millrace.mail'");
  EXPECT_TRUE((Look(), shard_.unsent().tries_again));
}

TEST_F(AlertShardTest, WhereNobodyRunsTheTypesNothingIsAdded) {
  Look();
  place_.spot = [](const std::string&, const std::string&, const std::vector<TableInfo>&) {
    return std::optional<AlertSpot>();
  };
  const auto added = shard_.Add(TasksOf(Word(1, true, 1), config_), place_);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::NotFound);
  EXPECT_THAT(added.error().message, HasSubstr("no worker takes tasks of the type millrace.webhook"));
}

// Nobody has seen it wait on purpose who begins to look within its hours, as another leader does.
TEST_F(AlertShardTest, WhatWaitedForItsHoursIsLateFromTheirBeginning) {
  const std::vector<NewTask> tasks(1, NewTask{.handler = "nightly"});
  ASSERT_TRUE(store_->OpenOperations()->Submit(kDefaultTable, tasks));
  clock_.Advance(std::chrono::hours(13));
  const auto minute = [this](Micros after) {
    const auto at = (clock_.WallNow() + after).time_since_epoch();
    return static_cast<std::uint32_t>(std::chrono::floor<minutes>(at).count() % (24 * 60));
  };
  handlers_.handlers["nightly"].hours = HoursConfig{minute(-minutes(10)), minute(minutes(60))};
  const Observation seen = Look();
  ASSERT_TRUE(seen.late->contains("nightly"));
  EXPECT_GE(seen.late->at("nightly"), minutes(10));
  EXPECT_LE(seen.late->at("nightly"), minutes(11));
}

TEST_F(AlertShardTest, AScheduleThatTheConfigurationHasNoMoreIsNotLate) {
  const WallTime then = clock_.WallNow();
  ASSERT_TRUE(store_->OpenSchedules()->Make({.name = "nightly", .state = {.next = then}}));
  clock_.Advance(std::chrono::hours(5));
  const auto late = [this] {
    Observation seen;
    EXPECT_TRUE(shard_.Observe({.schedules = true, .config = &handlers_}, place_, clock_.Now(), seen));
    return seen.late_schedules->size();
  };
  EXPECT_EQ(late(), 0u);
  handlers_.schedules["nightly"];
  EXPECT_EQ(late(), 1u);
}

}  // namespace
}  // namespace millrace::engine
