#include "coordinator/upkeep/shard_upkeep.h"

#include <gmock/gmock.h>

#include "framework/testing/scratch_store.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

// The upkeep of a shard in memory, which looks at it again and again.
class ShardUpkeepTest : public testing::Test {
 protected:
  ShardUpkeepTest() {
    EXPECT_TRUE(store_->OpenSchema()->Apply({.tables = 1, .slices = 8}));
    config_.Set(std::make_shared<const Config>());
  }
  void Configure(ShardConfig shard) {
    Config config;
    config.shards["main"] = std::move(shard);
    config_.Set(std::make_shared<const Config>(std::move(config)));
  }
  void Start() { ASSERT_TRUE(upkeep_.Start()); }
  // Beside a log in which nobody is heard to write, once the tables were read.
  void StartQuietly() {
    store_->heard.Begin(BootClock::now() - HeardWrites::kSeenAfter);
    store_->heard.Beat();
    Start();
    ASSERT_TRUE(Eventually([&] { return Slices() == 8; }));
    WaitForTurns(3);
  }
  void Submit(const std::string& handler) {
    NewTask task;
    task.handler = handler;
    ASSERT_TRUE(store_->OpenOperations()->Submit("tasks", std::span(&task, 1)));
  }
  // A fan-out of one task, by hand.
  void RunNow() {
    const FanOut fan_out{.schedule = "bill",
                         .firing = clock_.WallNow(),
                         .handler = "statement",
                         .table = "tasks",
                         .query = "SELECT 7 AS id",
                         .key = "{id}-{month}",
                         .zone = "UTC"};
    ASSERT_TRUE(store_->OpenSchedules()->RunNow("bill", {fan_out.firing, "tasks", fan_out}, "ann"));
  }
  // Looks after each of its turns; false: it did not come true within ten seconds.
  template <class Condition>
  bool Eventually(Condition condition) {
    return Within(seconds(10), condition);
  }
  template <class Condition>
  bool Within(Micros limit, Condition condition) {
    const BootTime deadline = BootClock::now() + limit;
    while (!condition()) {
      if (BootClock::now() >= deadline) return false;
      turn_.WaitFor(milliseconds(100));
    }
    return true;
  }
  void WaitForTurns(int turns) {
    const int enough = turns_ + turns;
    ASSERT_TRUE(Eventually([&] { return turns_ >= enough; }));
  }
  std::uint32_t Slices() {
    const auto tables = upkeep_.Tables();
    return tables ? tables->at(0).slices : 0;
  }

  const SystemClock clock_{};
  std::shared_ptr<ScratchStore> store_ = std::make_shared<ScratchStore>(clock_, ScratchStore::Bare{});
  Settable<std::shared_ptr<const Config>> config_;
  Settable<std::shared_ptr<const Ownership>> ownership_;
  std::atomic<bool> leading_{true};
  std::atomic<bool> standing_{true};
  std::atomic<bool> divides_{false};
  std::atomic<bool> prunes_{true};
  std::atomic<int> turns_{0};
  Signal turn_;
  ShardUpkeep upkeep_{{.name = "main",
                       .store = store_,
                       .leading =
                           [this] {
                             ++turns_;
                             turn_.Notify();
                             return leading_.load();
                           },
                       .config = [this] { return config_.Get(); },
                       .ownership = [this] { return ownership_.Get(); },
                       .round = milliseconds(1),
                       .standing = [this] { return standing_.load(); },
                       .divides = [this] { return divides_.load(); },
                       .prunes = [this] { return prunes_.load(); }}};
};

TEST_F(ShardUpkeepTest, ReadsTheTablesWhileItsProcessLeads) {
  Start();
  ASSERT_TRUE(Eventually([&] { return Slices() == 8; }));
  leading_ = false;  // another leader may change them now
  EXPECT_TRUE(Eventually([&] { return !upkeep_.Tables(); }));
}

TEST_F(ShardUpkeepTest, ReadsNothingWhileAnotherLeads) {
  leading_ = false;
  Start();
  WaitForTurns(3);
  EXPECT_FALSE(upkeep_.Tables());
}

TEST_F(ShardUpkeepTest, ACandidateFindsOutWhetherItCouldReadTheShard) {
  leading_ = false;
  standing_ = false;
  Start();
  WaitForTurns(3);
  EXPECT_EQ(upkeep_.Readable(), std::nullopt);
  standing_ = true;
  EXPECT_TRUE(Eventually([&] { return upkeep_.Readable() == true; }));
  EXPECT_FALSE(upkeep_.Tables());  // it plans nothing
}

TEST_F(ShardUpkeepTest, GivesTheTablesAsManySlicesAsTheConfigurationWants) {
  Start();
  ASSERT_TRUE(Eventually([&] { return Slices() == 8; }));
  Configure({.slices = 16});
  EXPECT_TRUE(Eventually([&] { return Slices() == 16; }));
}

// A producer that knows more slices than there are.
TEST_F(ShardUpkeepTest, FindsRowsBeyondTheSlicesWhereNothingElseHasChanged) {
  Start();
  ASSERT_TRUE(Eventually([&] { return Slices() == 8; }));
  WaitForTurns(3);
  NewTask task;
  task.handler = "job";
  task.slice = 9;
  ASSERT_TRUE(store_->OpenOperations()->Submit("tasks", std::span(&task, 1)));
  EXPECT_TRUE(Eventually([&] { return store_->Ask("SELECT count(*) FROM tasks WHERE slice<8") == 1; }));
}

TEST_F(ShardUpkeepTest, KeepsToTheTablesThatTheConfigurationNames) {
  ASSERT_TRUE(store_->OpenSchema()->Apply({.tables = 3, .slices = 8}));
  Configure({.tables = {"tasks_001"}});
  Start();
  ASSERT_TRUE(Eventually([&] { return upkeep_.Tables().has_value(); }));
  EXPECT_THAT(*upkeep_.Tables(), ElementsAre(TableInfo{"tasks_001", 8}));
  Configure({.tables = {"misspelt"}});
  WaitForTurns(3);
  EXPECT_THAT(*upkeep_.Tables(), ElementsAre(TableInfo{"tasks_001", 8}));  // a slip of the hand
}

TEST_F(ShardUpkeepTest, ATableThatCannotBeReadKeepsTheOthersFromNothing) {
  ASSERT_TRUE(store_->OpenSchema()->Apply({.tables = 2, .slices = 8}));
  store_->Run("INSERT INTO tasks (handler,params,slice) VALUES ('job','{}',11); DROP TABLE tasks_000");
  Start();
  EXPECT_TRUE(Eventually([&] { return store_->Ask("SELECT slice FROM tasks") < 8; }));
  EXPECT_EQ(upkeep_.Readable(), true);
  EXPECT_EQ(upkeep_.Tables()->size(), 3U);
  EXPECT_THAT(upkeep_.Trouble(), HasSubstr("its table tasks_000 can't be read"));
}

TEST_F(ShardUpkeepTest, KnowsNoTablesWhereTheConfigurationNamesNoneThatIsThere) {
  Configure({.tables = {"misspelt"}});
  Start();
  WaitForTurns(3);
  EXPECT_FALSE(upkeep_.Tables());
}

// A process that has begun beside a document that is refused knows no more than what is kept by default.
TEST_F(ShardUpkeepTest, NothingIsPrunedWhileItIsNotKnownWhatIsToBeKept) {
  NewTask task;
  task.handler = "job";
  const auto report = store_->OpenOperations()->Submit("tasks", std::span(&task, 1));
  ASSERT_TRUE(report);
  ASSERT_TRUE(store_->OpenOperations()->Apply(TaskAction::Cancel, "tasks", report->ids, "ann"));
  Config config;
  config.handlers["job"].keep = Micros(0);
  config_.Set(std::make_shared<const Config>(std::move(config)));
  prunes_ = false;
  Start();
  ASSERT_TRUE(Eventually([&] { return !upkeep_.PruneTroubles().empty(); }));
  WaitForTurns(5);
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks_done"), 1);
  prunes_ = true;
  EXPECT_TRUE(Eventually([&] { return store_->Ask("SELECT count(*) FROM tasks_done") == 0; }));
  EXPECT_TRUE(Eventually([&] { return upkeep_.PruneTroubles().empty(); }));
}

// Also where a limit stands in the configuration of the workers alone.
TEST_F(ShardUpkeepTest, ReadsWhoLivesWhereverLimitsAreDivided) {
  const auto lives = store_->OpenIncarnations();
  ASSERT_TRUE(lives->Register({"w1.1", "w1", "h", 1, seconds(10)}));
  Start();
  WaitForTurns(3);
  EXPECT_EQ(upkeep_.Lives().asked, BootTime{});
  divides_ = true;
  EXPECT_TRUE(Eventually([&] { return upkeep_.Lives().asked > BootTime{}; }));
  EXPECT_THAT(upkeep_.Lives().alive, ElementsAre(testing::Pair("w1", "w1.1")));
}

// As a log that leaves out what is written.
TEST_F(ShardUpkeepTest, WhatNobodyIsHeardToWriteIsNotReadAgainForAWhile) {
  Config config;
  config.schedules["bill"].from_query = "SELECT 7 AS id";
  config_.Set(std::make_shared<const Config>(std::move(config)));
  StartQuietly();
  ASSERT_TRUE(store_->OpenSchema()->Apply({.tables = 3, .slices = 8}));
  RunNow();
  WaitForTurns(10);
  EXPECT_EQ(upkeep_.Tables()->size(), 1U);
  EXPECT_EQ(store_->Ask("SELECT count(*) FROM tasks"), 0);
  store_->heard.Write(BootClock::now());
  EXPECT_TRUE(Eventually([&] { return upkeep_.Tables()->size() == 4; }));
  EXPECT_TRUE(Eventually([&] { return store_->Ask("SELECT count(*) FROM tasks") == 1; }));
}

TEST_F(ShardUpkeepTest, ANewConfigurationIsFollowedThoughNobodyIsHeardToWrite) {
  ASSERT_TRUE(store_->OpenSchema()->Apply({.tables = 2, .slices = 8}));
  Configure({.tables = {"tasks"}});
  StartQuietly();
  Configure({.tables = {"tasks", "tasks_001"}});
  WaitForTurns(10);
  EXPECT_EQ(upkeep_.Tables()->size(), 1U) << "nobody has said so";
  upkeep_.LookNow();
  EXPECT_TRUE(Eventually([&] { return upkeep_.Tables()->size() == 2; }));
}

TEST_F(ShardUpkeepTest, WhatIsNotAsItShouldBeIsReadAgainThoughNobodyIsHeardToWrite) {
  ASSERT_TRUE(store_->OpenSchema()->Apply({.tables = 2, .slices = 8}));
  store_->Run("ALTER TABLE tasks_000 RENAME TO away");
  StartQuietly();
  ASSERT_TRUE(Eventually([&] { return !upkeep_.Trouble().empty(); }));
  store_->Run("ALTER TABLE away RENAME TO tasks_000");
  EXPECT_TRUE(Eventually([&] { return upkeep_.Trouble().empty(); }));
}

TEST_F(ShardUpkeepTest, RowsBeyondTheSlicesAreWaitedForThoughNobodyIsHeardToWrite) {
  store_->Run("INSERT INTO tasks (handler,params,slice,state,claimed_by) VALUES ('job','{}',9,2,7)");
  StartQuietly();
  store_->Run("UPDATE tasks SET state=0, claimed_by=0");
  EXPECT_TRUE(Eventually([&] { return store_->Ask("SELECT slice FROM tasks") < 8; }));
}

TEST_F(ShardUpkeepTest, LeftoversAreLookedForByANewPlanThoughNobodyIsHeardToWrite) {
  Submit("job");
  ownership_.Set(std::make_shared<const Ownership>());  // nobody is there
  StartQuietly();
  ASSERT_TRUE(Eventually([&] { return !upkeep_.Unrunnable().empty(); }));
  Submit("other");
  EXPECT_FALSE(Within(seconds(6), [&] { return upkeep_.Unrunnable().size() == 2; }));
  ownership_.Set(std::make_shared<const Ownership>());
  EXPECT_TRUE(Eventually([&] { return upkeep_.Unrunnable().size() == 2; }));
}

// Where nobody leads a cluster a round is half a minute.
TEST_F(ShardUpkeepTest, AFanOutDoesNotWaitForTheNextRound) {
  std::atomic<bool> round_ends{false};
  Config config;
  config.schedules["bill"].from_query = "SELECT 7 AS id";
  config_.Set(std::make_shared<const Config>(std::move(config)));
  ShardUpkeep rare({"main", store_, [] { return true; }, [this] { return config_.Get(); },
                    [&] {
                      round_ends = true;
                      return std::shared_ptr<const Ownership>();
                    },
                    std::chrono::hours(1)});
  ASSERT_TRUE(rare.Start());
  ASSERT_TRUE(Eventually([&] { return round_ends.load(); }));
  RunNow();
  EXPECT_TRUE(Eventually([&] { return store_->Ask("SELECT count(*) FROM tasks") == 1; }));
}

TEST_F(ShardUpkeepTest, RescuesWhatTheDeadLeftWhereNobodyLooksAndTellsWhatNobodyRuns) {
  NewTask task;
  task.handler = "job";
  const auto report = store_->OpenOperations()->Submit("tasks", std::span(&task, 1));
  ASSERT_TRUE(report);
  const auto lives = store_->OpenIncarnations();
  ASSERT_TRUE(lives->Register({"gone.1", "gone", "h", 1, seconds(10)}));
  ASSERT_TRUE(store_->OpenTasks()->Claim({"tasks", "gone.1", 0, report->ids}));
  ASSERT_TRUE(lives->Retire("gone.1"));
  ownership_.Set(std::make_shared<const Ownership>());  // nobody is there
  Start();
  const auto state = [&] { return store_->OpenOperations()->Get({"tasks", report->ids[0]})->task.state; };
  EXPECT_TRUE(Eventually([&] { return state() == TaskState::Waiting; }));
  EXPECT_TRUE(Eventually([&] { return !upkeep_.Unrunnable().empty(); }));
  EXPECT_THAT(upkeep_.Unrunnable(), ElementsAre("job"));
}

}  // namespace
}  // namespace millrace::engine
