#include "coordinator/alerts/watch.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AlertWatchTest : public testing::Test {
 protected:
  AlertWatchTest() {
    Config config;
    config.alerts["failed"].webhook = "http://127.0.0.1/hook";
    config_ = std::make_shared<const Config>(std::move(config));
    place_.emplace();
    place_->runs = [](const std::string&) { return true; };
    place_->spot = [this](const std::string&, const std::string&,
                          const std::vector<TableInfo>& tables) -> std::optional<AlertSpot> {
      if (!runs_) return std::nullopt;
      return AlertSpot{tables.front().table, 3};
    };
  }

  std::unique_ptr<AlertWatch> Make() {
    return std::make_unique<AlertWatch>(AlertWatch::Parts{.clock = clock_,
                                                          .shards =
                                                              [this] {
                                                                return StoresByShard{{"main", store_}};
                                                              },
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
  std::int64_t Messages(const std::string& state) {
    return store_->Ask(
        "SELECT count(*) FROM tasks WHERE handler='millrace.webhook' AND params LIKE '%\"state\":\"" + state +
        "\"%'");
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
  ASSERT_TRUE(operations_->Apply(TaskAction::Cancel, kDefaultTable, failed_, "ann"));
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

TEST_F(AlertWatchTest, WhatNeedNotBeSentAnyMoreIsNoTrouble) {
  FailOne();
  runs_ = false;
  const auto watch = Make();
  Run(*watch, seconds(20));
  EXPECT_THAT(watch->Troubles(), ElementsAre(HasSubstr("can't be sent")));
  ASSERT_TRUE(operations_->Apply(TaskAction::Cancel, kDefaultTable, failed_, "ann"));
  Run(*watch, seconds(10));
  EXPECT_THAT(watch->Troubles(), IsEmpty());
}

TEST_F(AlertWatchTest, OfAsManyFailuresBesideWhatIsLeftOfFormerOnesItIsToldAgain) {
  Config config;
  config.alerts["failed"].webhook = "http://127.0.0.1/hook";
  config.alerts["failed"].every = seconds(30);
  config_ = std::make_shared<const Config>(std::move(config));
  const auto watch = Make();
  for (int i = 0; i < 3; ++i) FailOne();
  Run(*watch, seconds(20));
  EXPECT_EQ(Messages("firing"), 1);
  const std::vector<std::uint64_t> two(failed_.begin(), failed_.begin() + 2);
  ASSERT_TRUE(operations_->Apply(TaskAction::Cancel, kDefaultTable, two, "ann"));
  Run(*watch, seconds(60));
  EXPECT_EQ(Messages("firing"), 1);
  FailOne();
  Run(*watch, seconds(60));
  EXPECT_EQ(Messages("firing"), 2);
}

TEST_F(AlertWatchTest, AShardThatTakesNoMessageKeepsNoOtherFromIt) {
  const auto other = std::make_shared<ScratchStore>(clock_);
  FailOne();
  store_->Run("CREATE TRIGGER full BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'no room'); END");
  AlertWatch watch(AlertWatch::Parts{.clock = clock_,
                                     .shards =
                                         [&] {
                                           return StoresByShard{{"a", store_}, {"b", other}};
                                         },
                                     .config = [this] { return config_; },
                                     .place = [this] { return place_; },
                                     .from = "a test"});
  Run(watch, seconds(20));
  EXPECT_EQ(other->Ask("SELECT count(*) FROM tasks WHERE handler='millrace.webhook'"), 1);
  EXPECT_THAT(watch.Troubles(), IsEmpty());
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
