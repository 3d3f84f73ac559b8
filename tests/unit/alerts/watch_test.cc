#include "coordinator/alerts/watch.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AlertWatchTest : public testing::Test {
 protected:
  AlertWatchTest() {
    Configure(minutes(10));
    place_.emplace();
    place_->runs = [](const std::string&) { return true; };
    place_->spot = [this](const std::string&, const std::string&,
                          const std::vector<TableInfo>& tables) -> std::optional<AlertSpot> {
      if (!runs_) return std::nullopt;
      return AlertSpot{tables.front().table, 3};
    };
  }

  // What the alert is about by now.
  void Configure(Micros every, AlertKind kind = AlertKind::Failed, const std::string& handler = "*") {
    Config config;
    AlertConfig& alert = config.alerts["failed"];
    alert.kind = kind;
    alert.handler = handler;
    alert.webhook = "http://127.0.0.1/hook";
    alert.every = every;
    config_ = std::make_shared<const Config>(std::move(config));
  }
  std::unique_ptr<AlertWatch> Make() { return Make(StoresByShard{{"main", store_}}); }
  std::unique_ptr<AlertWatch> Make(const StoresByShard& shards) {
    return std::make_unique<AlertWatch>(AlertWatch::Parts{.clock = clock_,
                                                          .shards = [shards] { return shards; },
                                                          .config = [this] { return config_; },
                                                          .place = [this] { return place_; },
                                                          .from = "a test"});
  }
  // As its thread does, for so long.
  void Run(AlertWatch& watch, Micros time) {
    for (const BootTime end = clock_.Now() + time; clock_.Now() < end;) clock_.Advance(watch.Turn());
  }
  void FailOne() {
    const std::vector<NewTask> tasks(1, NewTask{.handler = "noop"});
    const auto report = operations_->Submit(kDefaultTable, tasks);
    ASSERT_TRUE(report);
    ASSERT_TRUE(store_->OpenTasks()->FailUnclaimed({kDefaultTable, "x", 0, report->ids}, "no way"));
    failed_.push_back(report->ids.front());
  }
  void CancelFailed() { ASSERT_TRUE(operations_->Apply(TaskAction::Cancel, kDefaultTable, failed_, "ann")); }
  // That wait to be sent: nobody sends one here.
  std::int64_t Messages(const std::string& state) { return MessagesIn(*store_, state); }
  static std::int64_t MessagesIn(ScratchStore& store, const std::string& state) {
    return store.Ask(
        "SELECT count(*) FROM tasks WHERE handler='millrace.webhook' AND params LIKE '%\"state\":\"" + state +
        "\"%'");
  }
  // Of the last message.
  std::int64_t Number() {
    return store_->Ask(
        "SELECT CAST(substr(max(biz_key),14,10) AS INTEGER) FROM tasks_keys WHERE biz_key LIKE "
        "'alert/failed/%'");
  }

  ManualClock clock_;
  std::shared_ptr<ScratchStore> store_ = std::make_shared<ScratchStore>(clock_);
  std::unique_ptr<TaskOperations> operations_ = store_->OpenOperations();
  std::shared_ptr<const Config> config_;
  std::optional<AlertPlace> place_;
  bool runs_ = true;  // somebody runs the types that carry alerts
  std::vector<std::uint64_t> failed_;
};

TEST_F(AlertWatchTest, ItIsSaidOnceThatAnAlertFiresAndOnceThatItIsOverWhoeverWatches) {
  auto watch = Make();
  Run(*watch, seconds(20));
  EXPECT_EQ(Messages("firing"), 0);
  FailOne();
  Run(*watch, seconds(10));
  EXPECT_EQ(Messages("firing"), 1);
  Run(*watch, seconds(60));
  watch = Make();  // another leader
  Run(*watch, seconds(60));
  EXPECT_EQ(Messages("firing"), 1);
  EXPECT_EQ(Messages("over"), 0);
  CancelFailed();
  Run(*watch, seconds(10));
  watch = Make();
  Run(*watch, seconds(60));
  EXPECT_EQ(Messages("over"), 1);
  EXPECT_THAT(watch->Troubles(), IsEmpty());
}

TEST_F(AlertWatchTest, WhoIsNotToJudgeSaysNothing) {
  FailOne();
  const auto place = std::exchange(place_, std::nullopt);
  const auto watch = Make();
  Run(*watch, seconds(30));
  EXPECT_EQ(Messages("firing"), 0);
  place_ = place;
  Run(*watch, seconds(10));
  EXPECT_EQ(Messages("firing"), 1);
}

TEST_F(AlertWatchTest, WhatCannotBeSentIsTroubleUntilItIs) {
  FailOne();
  runs_ = false;
  const auto watch = Make();
  Run(*watch, seconds(20));
  EXPECT_THAT(watch->Troubles(), ElementsAre(HasSubstr("the alert failed can't be sent: no worker takes")));
  runs_ = true;
  Run(*watch, seconds(10));
  EXPECT_EQ(Messages("firing"), 1);
  EXPECT_THAT(watch->Troubles(), IsEmpty());
  store_->Run("UPDATE tasks SET failures=1 WHERE handler='millrace.webhook'");
  Run(*watch, seconds(10));
  EXPECT_THAT(watch->Troubles(), ElementsAre(HasSubstr("are tried again, in the shard main")));
}

TEST_F(AlertWatchTest, AShardThatDoesNotAnswerIsTroubleUntilItDoes) {
  const auto watch = Make();
  store_->Run("ALTER TABLE millrace_counters RENAME TO away");
  Run(*watch, seconds(10));
  EXPECT_THAT(watch->Troubles(), ElementsAre(HasSubstr("alerts do not see what is wrong in the shard main")));
  store_->Run("ALTER TABLE away RENAME TO millrace_counters");
  Run(*watch, seconds(30));
  EXPECT_THAT(watch->Troubles(), IsEmpty());
}

TEST_F(AlertWatchTest, WhatNeedNotBeSentAnyMoreIsNoTrouble) {
  FailOne();
  runs_ = false;
  const auto watch = Make();
  Run(*watch, seconds(20));
  EXPECT_THAT(watch->Troubles(), ElementsAre(HasSubstr("can't be sent")));
  CancelFailed();
  Run(*watch, seconds(10));
  EXPECT_THAT(watch->Troubles(), IsEmpty());
}

TEST_F(AlertWatchTest, OfAsManyFailuresBesideWhatIsLeftOfFormerOnesItIsToldAgain) {
  Configure(seconds(30));
  const auto watch = Make();
  for (int i = 0; i < 3; ++i) FailOne();
  Run(*watch, seconds(20));
  EXPECT_EQ(Number(), 1);
  const std::vector<std::uint64_t> two(failed_.begin(), failed_.begin() + 2);
  ASSERT_TRUE(operations_->Apply(TaskAction::Cancel, kDefaultTable, two, "ann"));
  Run(*watch, seconds(60));
  EXPECT_EQ(Number(), 1);
  FailOne();
  Run(*watch, seconds(60));
  EXPECT_EQ(Number(), 2);
  EXPECT_EQ(Messages("firing"), 1) << "the first was not sent, and says less";
}

TEST_F(AlertWatchTest, AnEndThatWasNotSentIsTakenBackOnceItFiresAgain) {
  Configure(seconds(30));
  const auto watch = Make();
  FailOne();
  Run(*watch, seconds(10));
  CancelFailed();
  Run(*watch, seconds(10));
  EXPECT_EQ(Messages("firing"), 0);
  EXPECT_EQ(Messages("over"), 1);
  FailOne();
  Run(*watch, seconds(40));
  EXPECT_EQ(Messages("firing"), 1);
  EXPECT_EQ(Messages("over"), 0);
}

TEST_F(AlertWatchTest, WhatWasNotSentIsTakenBackInWhicheverShardItIs) {
  Configure(seconds(30));
  const auto other = std::make_shared<ScratchStore>(clock_);
  const auto watch = Make(StoresByShard{{"a", store_}, {"b", other}});
  const auto close_first = [this] {
    store_->Run(
        "CREATE TRIGGER full BEFORE INSERT ON tasks WHEN NEW.handler='millrace.webhook' BEGIN SELECT "
        "RAISE(ABORT, 'no room'); END");
  };
  close_first();
  FailOne();
  Run(*watch, seconds(10));
  EXPECT_EQ(MessagesIn(*other, "firing"), 1);
  store_->Run("DROP TRIGGER full");
  CancelFailed();
  Run(*watch, seconds(10));
  EXPECT_EQ(MessagesIn(*other, "firing"), 0);
  EXPECT_EQ(Messages("over"), 1);
  close_first();
  FailOne();
  Run(*watch, seconds(40));
  EXPECT_EQ(MessagesIn(*other, "firing"), 1);
  EXPECT_EQ(Messages("over"), 0);
}

// The number that was taken back is free, and it would take it for the next.
TEST_F(AlertWatchTest, WhoHasMissedMessagesReadsThemBeforeItSaysAnything) {
  Configure(seconds(30));
  const auto late = Make();
  const auto watch = Make();
  FailOne();
  Run(*late, seconds(10));
  EXPECT_EQ(Messages("firing"), 1);
  CancelFailed();
  Run(*watch, seconds(10));
  FailOne();
  FailOne();
  Run(*watch, seconds(40));
  ASSERT_EQ(Number(), 3);
  Run(*late, seconds(40));
  EXPECT_EQ(Number(), 3);
  EXPECT_EQ(Messages("firing"), 1);
}

TEST_F(AlertWatchTest, OneThatIsAboutSomethingElseByNowFiresAnew) {
  place_->breakers.emplace()["noop"] = "20 of 20 calls failed";
  Configure(seconds(30));
  const auto watch = Make();
  FailOne();
  Run(*watch, seconds(10));
  EXPECT_EQ(Number(), 1);
  Configure(seconds(30), AlertKind::Failed, "noop");
  Run(*watch, seconds(60));
  EXPECT_EQ(Number(), 2);
  Configure(seconds(30), AlertKind::Breaker, "noop");
  Run(*watch, seconds(60));
  EXPECT_EQ(Number(), 3);
  Run(*watch, seconds(60));
  EXPECT_EQ(Number(), 3) << "once";
  EXPECT_EQ(Messages("firing"), 1);
  Configure(seconds(30), AlertKind::Breaker, "exec");
  Run(*watch, seconds(60));
  EXPECT_EQ(Number(), 4);
  EXPECT_EQ(Messages("over"), 1);
}

TEST_F(AlertWatchTest, AShardThatTakesNoMessageKeepsNoOtherFromIt) {
  const auto other = std::make_shared<ScratchStore>(clock_);
  FailOne();
  store_->Run("CREATE TRIGGER full BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'no room'); END");
  const auto watch = Make(StoresByShard{{"a", store_}, {"b", other}});
  Run(*watch, seconds(20));
  EXPECT_EQ(MessagesIn(*other, "firing"), 1);
  EXPECT_THAT(watch->Troubles(), IsEmpty());
}

TEST_F(AlertWatchTest, AnAlertThatIsTakenOutOfTheConfigurationIsJudgedNoMore) {
  const auto watch = Make();
  Run(*watch, seconds(10));
  config_ = std::make_shared<const Config>();
  FailOne();
  Run(*watch, seconds(30));
  EXPECT_EQ(Messages("firing"), 0);
}

}  // namespace
}  // namespace millrace::engine
