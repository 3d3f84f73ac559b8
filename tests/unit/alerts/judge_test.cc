#include "coordinator/alerts/judge.h"

#include <gmock/gmock.h>

#include "framework/base/time_text.h"
#include "framework/store/alert_store.h"
#include "framework/store/schedule_store.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr BootTime kStart{seconds(1000)};
constexpr Micros kEvery = minutes(10);

AlertFact Holding(std::uint64_t count) { return {true, count, "it holds"}; }
AlertFact HoldingFor(std::vector<std::string> types) {
  AlertFact fact = Holding(types.size());
  fact.names = std::move(types);
  return fact;
}
AlertFact Quiet() { return {false, 0, "all is well"}; }

// A judge with what it has said, as the one who sends keeps it.
class Alert {
 public:
  AlertWord At(Micros after, const std::optional<AlertFact>& fact) {
    const BootTime now = kStart + after;
    const AlertWord word = judge.Look(fact, said, kEvery, now);
    if (word == AlertWord::Nothing) return word;
    ++said.number;
    said.firing = word == AlertWord::Firing;
    said.count = fact->count;
    said.names = fact->names;
    if (said.firing) said.fired_at = now;
    return word;
  }

  AlertJudge judge;
  SaidAlert said;
};

TEST(AlertJudgeTest, AStandingNumberIsToldAtTheSecondLook) {
  Alert alert;
  EXPECT_EQ(alert.At(seconds(0), Holding(3)), AlertWord::Nothing);
  EXPECT_EQ(alert.judge.Wait(), AlertJudge::kLookAgain);
  EXPECT_EQ(alert.At(seconds(1), Holding(3)), AlertWord::Firing);
  EXPECT_EQ(alert.judge.Wait(), AlertJudge::kLook);
}

TEST(AlertJudgeTest, AGrowingNumberIsWaitedForThreeSecondsSoThatABurstIsOneMessage) {
  Alert alert;
  EXPECT_EQ(alert.At(seconds(0), Holding(100)), AlertWord::Nothing);
  EXPECT_EQ(alert.At(seconds(1), Holding(4000)), AlertWord::Nothing);
  EXPECT_EQ(alert.At(seconds(2), Holding(10'000)), AlertWord::Nothing);
  EXPECT_EQ(alert.At(seconds(3), Holding(10'001)), AlertWord::Firing);
  // The first look comes within five seconds of the cause.
  EXPECT_LE(AlertJudge::kLook + AlertJudge::kGather + AlertJudge::kLookAgain, Micros(seconds(10)));
}

TEST(AlertJudgeTest, WhatStandsIsNotSaidAgain) {
  Alert alert;
  alert.At(seconds(0), Holding(3));
  alert.At(seconds(1), Holding(3));
  for (int i = 2; i < 5000; i += 5) EXPECT_EQ(alert.At(seconds(i), Holding(3)), AlertWord::Nothing);
}

TEST(AlertJudgeTest, MoreIsSaidAgainOnceInEvery) {
  Alert alert;
  alert.At(seconds(0), Holding(3));
  alert.At(seconds(1), Holding(3));
  int messages = 0;
  for (int i = 5; i <= 1800; i += 5) {
    messages += alert.At(seconds(i), Holding(3 + static_cast<std::uint64_t>(i))) == AlertWord::Firing;
  }
  EXPECT_EQ(messages, 2);
}

TEST(AlertJudgeTest, AnotherOfTheSameNumberIsSaidOnceInEvery) {
  Alert alert;
  alert.At(seconds(0), HoldingFor({"pay", "ship"}));
  ASSERT_EQ(alert.At(seconds(1), HoldingFor({"pay", "ship"})), AlertWord::Firing);
  EXPECT_EQ(alert.At(kEvery - seconds(1), HoldingFor({"bill", "pay"})), AlertWord::Nothing);
  EXPECT_EQ(alert.At(kEvery + seconds(10), HoldingFor({"pay"})), AlertWord::Nothing) << "fewer of the same";
  EXPECT_EQ(alert.At(kEvery + seconds(15), HoldingFor({"bill", "pay"})), AlertWord::Firing);
  EXPECT_EQ(alert.At(2 * kEvery + seconds(20), HoldingFor({"bill"})), AlertWord::Nothing);
}

TEST(AlertJudgeTest, ItIsOverOnceAndAfterAMomentOfCalm) {
  Alert alert;
  alert.At(seconds(0), Holding(3));
  alert.At(seconds(1), Holding(3));
  EXPECT_EQ(alert.At(seconds(6), Quiet()), AlertWord::Nothing);
  EXPECT_EQ(alert.At(seconds(7), Holding(2)), AlertWord::Nothing);
  EXPECT_EQ(alert.At(seconds(12), Quiet()), AlertWord::Nothing);
  EXPECT_EQ(alert.At(seconds(14), Quiet()), AlertWord::Over);
  EXPECT_EQ(alert.At(seconds(19), Quiet()), AlertWord::Nothing);
}

TEST(AlertJudgeTest, WhatWasNeverSaidIsNotOver) {
  Alert alert;
  alert.At(seconds(0), Holding(3));
  for (int i = 1; i < 60; ++i) EXPECT_EQ(alert.At(seconds(i), Quiet()), AlertWord::Nothing);
}

TEST(AlertJudgeTest, OneThatComesAndGoesIsSaidOnceInEvery) {
  Alert alert;
  int firing = 0;
  int over = 0;
  for (int i = 0; i < 3600; ++i) {
    const AlertWord word = alert.At(seconds(i), i / 10 % 2 == 0 ? Holding(3) : Quiet());
    firing += word == AlertWord::Firing;
    over += word == AlertWord::Over;
  }
  EXPECT_EQ(firing, 6);
  EXPECT_EQ(over, 6);
}

TEST(AlertJudgeTest, WhatIsNotKnownChangesNothing) {
  Alert alert;
  alert.At(seconds(0), Holding(3));
  alert.At(seconds(1), Holding(3));
  for (int i = 2; i < 100; ++i) EXPECT_EQ(alert.At(seconds(i), std::nullopt), AlertWord::Nothing);
  EXPECT_TRUE(alert.said.firing);
}

TEST(AlertJudgeTest, ASuccessorSaysNothingThatWasSaid) {
  Alert alert;
  alert.At(seconds(0), Holding(10'000));
  alert.At(seconds(1), Holding(10'000));
  Alert successor{{}, alert.said};
  for (int i = 10; i < 100; ++i) EXPECT_EQ(successor.At(seconds(i), Holding(10'000)), AlertWord::Nothing);
  EXPECT_EQ(successor.At(seconds(100), Quiet()), AlertWord::Nothing);
  EXPECT_EQ(successor.At(seconds(102), Quiet()), AlertWord::Over);
}

AlertConfig Of(AlertKind kind) {
  AlertConfig alert;
  alert.kind = kind;
  return alert;
}

TEST(AlertSaidTest, ThatItFiredForAnotherReasonCountsOnlyUntilItIsOver) {
  AlertConfig alert = Of(AlertKind::Crashes);
  alert.handler = "pay";
  SaidAlert said{.number = 1, .firing = true, .count = 3};
  EXPECT_TRUE(SaidFor(alert, true, said).firing) << "an older version has said it";
  said.kind = "crashes";
  EXPECT_TRUE(SaidFor(alert, true, said).firing);
  said.handler = "pay";
  EXPECT_TRUE(SaidFor(alert, true, said).firing);
  said.handler = "*";
  EXPECT_FALSE(SaidFor(alert, true, said).firing);
  EXPECT_TRUE(SaidFor(alert, false, said).firing) << "that it is over is to be said";
  said.handler = "pay";
  said.kind = "failed";
  EXPECT_FALSE(SaidFor(alert, true, said).firing);
  EXPECT_TRUE(SaidFor(alert, false, said).firing);
}

TEST(AlertFactTest, FailedTasksAreCountedByTheirTypes) {
  Observation seen;
  seen.failed = {{"noop", 9000}, {"exec", 1000}};
  const auto all = FactOf(Of(AlertKind::Failed), seen);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->holds);
  EXPECT_EQ(all->what, "10000 tasks have failed");
  EXPECT_THAT(all->parts, ElementsAre("noop: 9000", "exec: 1000"));
  AlertConfig one = Of(AlertKind::Failed);
  one.handler = "exec";
  one.more_than = 1000;
  EXPECT_FALSE(FactOf(one, seen)->holds);
  one.more_than = 999;
  EXPECT_TRUE(FactOf(one, seen)->holds);
}

TEST(AlertFactTest, ATaskIsLateAfterLongerThan) {
  Observation seen;
  seen.late = {{"noop", minutes(6)}, {"exec", minutes(4)}};
  const auto fact = FactOf(Of(AlertKind::OldestDue), seen);
  EXPECT_TRUE(fact->holds);
  EXPECT_THAT(fact->what, HasSubstr("noop is due for 6m"));
  EXPECT_THAT(fact->parts, ElementsAre("noop: due for 6m"));
  AlertConfig patient = Of(AlertKind::OldestDue);
  patient.longer_than = minutes(6);
  EXPECT_FALSE(FactOf(patient, seen)->holds);
}

TEST(AlertFactTest, OfATypeThatWasNotLookedThroughItIsNotKnownThatNoneIsLate) {
  Observation seen;
  seen.late = {{"noop", minutes(4)}};
  seen.late_unsure = {"noop"};
  EXPECT_FALSE(FactOf(Of(AlertKind::OldestDue), seen).has_value());
  AlertConfig other = Of(AlertKind::OldestDue);
  other.handler = "exec";
  EXPECT_FALSE(FactOf(other, seen)->holds);
  seen.late = {{"exec", minutes(6)}};
  EXPECT_TRUE(FactOf(Of(AlertKind::OldestDue), seen)->holds);
}

TEST(AlertFactTest, SlicesWithoutAWorkerAndTypesWithout) {
  Observation seen;
  seen.unowned = std::vector<std::string>{"main/tasks/1", "main/tasks/2"};
  seen.unrunnable = {{"exotic", seconds(5)}};
  EXPECT_EQ(FactOf(Of(AlertKind::Unowned), seen)->what, "2 slices have no worker: tasks wait there");
  EXPECT_THAT(FactOf(Of(AlertKind::Unrunnable), seen)->what, HasSubstr("1 task type has"));
  seen.unowned->clear();
  seen.unrunnable->clear();
  EXPECT_FALSE(FactOf(Of(AlertKind::Unowned), seen)->holds);
  EXPECT_FALSE(FactOf(Of(AlertKind::Unrunnable), seen)->holds);
}

TEST(AlertFactTest, ABreakerThatIsOpenUntilItIsNot) {
  Observation seen;
  EXPECT_FALSE(FactOf(Of(AlertKind::Breaker), seen)) << "nobody knows";
  seen.breakers.emplace()["pay"] = "20 of 20 calls failed within 10s";
  const auto fact = FactOf(Of(AlertKind::Breaker), seen);
  EXPECT_TRUE(fact->holds);
  EXPECT_THAT(fact->parts, ElementsAre("pay: 20 of 20 calls failed within 10s"));
  EXPECT_THAT(fact->names, ElementsAre("pay"));
  AlertConfig other = Of(AlertKind::Breaker);
  other.handler = "mail";
  EXPECT_FALSE(FactOf(other, seen)->holds);
  seen.breakers->clear();
  EXPECT_FALSE(FactOf(Of(AlertKind::Breaker), seen)->holds);
}

TEST(AlertFactTest, EventsCountWithinEvery) {
  Observation seen;
  seen.events = std::vector<SeenEvent>{{kSettleRefused, "main/tasks/1", minutes(11)},
                                       {kSettleRefused, "main/tasks/2", minutes(9)},
                                       {kHandlerCrashed, "main/tasks/3", minutes(1)},
                                       {kWorkerLost, "w1.0123", minutes(1), "", "main"},
                                       {kWorkerLost, "w1.4567", minutes(1), "", "east"}};
  EXPECT_EQ(FactOf(Of(AlertKind::Refused), seen)->count, 1u);
  EXPECT_THAT(FactOf(Of(AlertKind::Crashes), seen)->parts, ElementsAre("main/tasks/3"));
  // A worker is lost once, however many shards it worked in.
  EXPECT_THAT(FactOf(Of(AlertKind::WorkerLost), seen)->parts, ElementsAre("w1"));
  // However short `every` is, what happened is seen at two looks.
  AlertConfig brief = Of(AlertKind::Refused);
  brief.every = seconds(1);
  seen.events->at(1).ago = AlertJudge::kLook + AlertJudge::kLookAgain + seconds(1);
  EXPECT_TRUE(FactOf(brief, seen)->holds);
  AlertConfig more = Of(AlertKind::Crashes);
  more.more_than = 1;
  EXPECT_FALSE(FactOf(more, seen)->holds);
}

TEST(AlertFactTest, AWorkerThatIsLostAgainAndAgainCountsEachTime) {
  Observation seen;
  seen.events = std::vector<SeenEvent>{
      {kWorkerLost, "w1.01", minutes(9), "", "east"}, {kWorkerLost, "w1.01", minutes(8), "", "main"},
      {kWorkerLost, "w1.02", minutes(6), "", "main"}, {kWorkerLost, "w2.01", minutes(5), "", "east"},
      {kWorkerLost, "w1.03", minutes(3), "", "main"}, {kWorkerLost, "w1.03", minutes(2), "", "east"}};
  AlertConfig lost = Of(AlertKind::WorkerLost);
  lost.more_than = 3;
  const auto fact = FactOf(lost, seen);
  EXPECT_TRUE(fact->holds);
  EXPECT_THAT(fact->parts, ElementsAre("w1", "w1", "w2", "w1"));
  EXPECT_EQ(fact->newest, minutes(3)) << "that another shard notes it, too, is no news";
  // What the first shard noted is known for longer than it counts.
  seen.events = std::vector<SeenEvent>{{kWorkerLost, "w1.01", minutes(11), "", "east"},
                                       {kWorkerLost, "w1.01", minutes(10), "", "main"}};
  EXPECT_EQ(FactOf(lost, seen)->count, 0u);
}

TEST(AlertFactTest, SchedulesThatAreLateAndFiringsThatLapsed) {
  Observation seen;
  seen.late_schedules = {{"main/nightly", minutes(2)}};
  seen.events = std::vector<SeenEvent>{{kScheduleLapsed, "main/hourly", minutes(11)},
                                       {kScheduleLapsed, "main/sync", minutes(9)},
                                       {kScheduleLapsed, "main/sync", minutes(1)},
                                       {kHandlerCrashed, "main/tasks/3", minutes(1)}};
  const auto fact = FactOf(Of(AlertKind::Schedule), seen);
  ASSERT_TRUE(fact);
  EXPECT_TRUE(fact->holds);
  EXPECT_EQ(fact->count, 3u);
  EXPECT_EQ(fact->what, "1 schedule is late; firings lapsed 2 times within 10m15s");
  EXPECT_THAT(fact->parts, ElementsAre("main/nightly: late by 2m", "main/sync: firings lapsed, 2 times"));
  AlertConfig more = Of(AlertKind::Schedule);
  more.more_than = 3;
  EXPECT_FALSE(FactOf(more, seen)->holds);
  seen.late_schedules->clear();
  seen.events->clear();
  EXPECT_FALSE(FactOf(Of(AlertKind::Schedule), seen)->holds);
  seen.late_schedules.reset();
  EXPECT_FALSE(FactOf(Of(AlertKind::Schedule), seen).has_value());
}

// The audit is told of them once a minute.
TEST(AlertFactTest, FiringsThatWereToldTogetherCountEach) {
  Observation seen;
  seen.late_schedules.emplace();
  seen.events = std::vector<SeenEvent>{
      {kScheduleLapsed, "main/sync", seconds(110), "60: the last firing's task was in work"},
      {kScheduleLapsed, "main/sync", seconds(50), "60: the last firing's task was in work"}};
  AlertConfig alert = Of(AlertKind::Schedule);
  alert.more_than = 100;
  EXPECT_TRUE(FactOf(alert, seen)->holds);
  EXPECT_EQ(FactOf(alert, seen)->count, 120u);
  EXPECT_THAT(FactOf(alert, seen)->parts, ElementsAre("main/sync: firings lapsed, 120 times"));
  alert.more_than = 20;
  alert.every = seconds(10);
  EXPECT_TRUE(FactOf(alert, seen)->holds) << "the next are told a minute later";
  EXPECT_EQ(FactOf(alert, seen)->count, 60u);
  EXPECT_EQ(LookBack(alert), seconds(75));
}

TEST(AlertFactTest, CrashesAreNarrowedByTheirTypeAndAClaimOfTheDeadCountsAsRefused) {
  Observation seen;
  seen.events = std::vector<SeenEvent>{{kHandlerCrashed, "main/tasks/1", minutes(1), "mailer"},
                                       {kHandlerCrashed, "main/tasks/2", minutes(1), "noop"},
                                       {kHandlerCrashed, "main/tasks/3", minutes(1)},
                                       {kClaimRefused, "main/tasks/4", minutes(1)},
                                       {kSettleRefused, "main/tasks/5", minutes(1), "noop"}};
  AlertConfig crashes = Of(AlertKind::Crashes);
  EXPECT_EQ(FactOf(crashes, seen)->count, 3u);
  crashes.handler = "mailer";
  EXPECT_THAT(FactOf(crashes, seen)->parts, ElementsAre("main/tasks/1"));
  EXPECT_THAT(FactOf(Of(AlertKind::Refused), seen)->parts, ElementsAre("main/tasks/4", "main/tasks/5"));
}

TEST(AlertFactTest, AShardThatIsAwayCanNotEndAnAlert) {
  Observation seen;
  seen.whole = false;
  seen.failed = {{"noop", 1}};
  EXPECT_TRUE(FactOf(Of(AlertKind::Failed), seen)->holds);
  seen.failed->clear();
  EXPECT_FALSE(FactOf(Of(AlertKind::Failed), seen).has_value());
  EXPECT_FALSE(FactOf(Of(AlertKind::OldestDue), seen).has_value());
}

// What happens at these moments, as an alert of the kind hears of it; the messages that it fires.
std::vector<Micros> FiringsOf(AlertKind kind, const std::string& event, const std::vector<Micros>& moments) {
  Alert alert;
  std::vector<Micros> firings;
  for (Micros now{0}; now < minutes(40); now += alert.judge.Wait()) {
    Observation seen;
    seen.events.emplace();
    seen.late_schedules.emplace();
    for (const Micros moment : moments) {
      if (moment <= now) seen.events->push_back({event, "main/it", now - moment, "", "main"});
    }
    if (alert.At(now, FactOf(Of(kind), seen)) == AlertWord::Firing) firings.push_back(now);
  }
  EXPECT_FALSE(alert.said.firing);
  return firings;
}

TEST(AlertEventsTest, WhatHappensAfterAMessageIsToldWhenTheNextMayBeSent) {
  const std::pair<AlertKind, const char*> kinds[] = {{AlertKind::WorkerLost, kWorkerLost},
                                                     {AlertKind::Crashes, kHandlerCrashed},
                                                     {AlertKind::Refused, kClaimRefused},
                                                     {AlertKind::Schedule, kScheduleLapsed}};
  for (const auto& [kind, event] : kinds) {
    for (const Micros second : {Micros(seconds(2)), Micros(minutes(5)), kEvery - seconds(1)}) {
      const std::vector<Micros> firings = FiringsOf(kind, event, {Micros(0), second});
      ASSERT_EQ(firings.size(), 2u) << event << " after " << FormatDuration(second);
      EXPECT_LE(firings[0], seconds(1));
      EXPECT_GE(firings[1] - firings[0], kEvery);
      EXPECT_LE(firings[1] - firings[0], kEvery + AlertJudge::kLook);
    }
    EXPECT_EQ(FiringsOf(kind, event, {Micros(0)}).size(), 1u) << event;
  }
}

const WallTime kDay = ParseTime("2026-11-20T18:00:00Z").value();
const DueGroup kGroup{"tasks", 3, "report", Urgency(7, 0), kDay - minutes(20)};

bool Held(const Config& config, const char* pause = nullptr) {
  Pauses pauses;
  if (pause != nullptr) {
    EXPECT_TRUE(pauses.Add(pause)) << pause;
  }
  return HeldOnPurpose(config, pauses, "main", kGroup, kDay);
}

TEST(OnPurposeTest, WhatIsPausedIsHeld) {
  EXPECT_FALSE(Held({}));
  for (const char* pause :
       {"cluster", "shard:main", "handler:report", "slice:main:tasks:3", "breaker:report:open"})
    EXPECT_TRUE(Held({}, pause)) << pause;
  for (const char* pause : {"shard:east", "handler:other", "slice:main:tasks:4", "breaker:report:close"})
    EXPECT_FALSE(Held({}, pause)) << pause;
}

TEST(OnPurposeTest, OutsideItsHoursATypeIsHeld) {
  Config config;
  config.handlers["report"].hours = HoursConfig{60, 360, "UTC"};
  EXPECT_TRUE(Held(config));
  config.handlers["report"].hours = HoursConfig{17 * 60, 19 * 60, "UTC"};
  EXPECT_FALSE(Held(config));
}

TEST(OnPurposeTest, ABandHoldsUntilItsNextLookIsOverdue) {
  Config config;
  config.handlers["report"].bands = {{.priority_from = 5, .every = minutes(30)}};
  EXPECT_TRUE(Held(config));
  config.handlers["report"].bands.front().every = minutes(19);
  EXPECT_FALSE(Held(config));
  config.handlers["report"].bands = {{.priority_from = 8, .every = minutes(30)}};
  EXPECT_FALSE(Held(config)) << "another band's";
}

TEST(OnPurposeTest, BetweenTwoRoundsATypeIsHeldUntilTheNextIsOverdue) {
  Config config;
  for (const bool after : {false, true}) {
    ScanConfig& scan = config.handlers["report"].scan.emplace();
    Micros& pause = after ? scan.after : scan.every;
    pause = minutes(30);
    EXPECT_TRUE(Held(config)) << after;
    pause = minutes(19);
    EXPECT_FALSE(Held(config)) << after;
  }
}

TEST(OnPurposeTest, ALimitIsNoExcuse) {
  Config config;
  config.handlers["report"].limit = LimitConfig{.rate = 1.0 / 3600, .concurrency = 1};
  EXPECT_FALSE(Held(config));
}

}  // namespace
}  // namespace millrace::engine
