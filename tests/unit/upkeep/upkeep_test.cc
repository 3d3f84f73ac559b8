#include "coordinator/upkeep/upkeep.h"

#include <gmock/gmock.h>

#include "framework/testing/scratch_store.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A server that answers nobody before the test says so, or five seconds have passed.
class SilentStore final : public Store {
 public:
  explicit SilentStore(const Clock& clock) : store_(clock) {}
  std::string Describe() const override { return "silent:"; }
  Status Ping() override { return {}; }
  std::unique_ptr<TaskStore> OpenTasks() override { return store_.OpenTasks(); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return store_.OpenIncarnations(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return store_.OpenTransaction(limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return store_.OpenOperations(); }
  std::unique_ptr<SchemaStore> OpenSchema() override {
    asked.Notify();
    answer.WaitFor(seconds(5));
    answered = true;
    return store_.OpenSchema();
  }
  std::unique_ptr<PruneStore> OpenPruning() override { return store_.OpenPruning(); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return store_.OpenOverview(); }

  Signal asked;
  Signal answer;
  std::atomic<bool> answered{false};

 private:
  ScratchStore store_;
};

class UpkeepTest : public testing::Test {
 protected:
  UpkeepTest() { control_.config.Set(std::make_shared<const Config>()); }

  // With one table of so many slices; 0: its schema was never made.
  std::shared_ptr<Store> Shard(std::uint32_t slices) {
    if (slices == 0) return std::make_shared<ScratchStore>(clock_, ScratchStore::Bare{});
    return std::make_shared<ScratchStore>(clock_, SchemaSpec{.slices = slices});
  }
  // Updates until it comes true; false: not within ten seconds.
  template <class Condition>
  bool Eventually(Condition condition) {
    const BootTime deadline = BootClock::now() + seconds(10);
    upkeep_.Update();
    while (!condition()) {
      if (BootClock::now() >= deadline) return false;
      news_.WaitFor(milliseconds(1));
      upkeep_.Update();
    }
    return true;
  }
  bool Reads(const TableCatalog& catalog) {
    return Eventually([&] {
      const auto known = upkeep_.Findings().catalog;
      return known != nullptr && *known == catalog;
    });
  }

  const SystemClock clock_{};
  SettableControlPlane control_;
  Signal news_;
  std::atomic<bool> leading_{true};
  std::atomic<bool> standing_{false};
  Settable<UnopenedShards> unopened_;
  Upkeep upkeep_{{[this] { return control_.Shards(); }, [this] { return control_.CurrentConfig(); },
                  [this] { return leading_.load(); }, [] { return nullptr; }, [this] { news_.Notify(); },
                  milliseconds(1), [this] { return unopened_.Get(); }, [this] { return standing_.load(); }}};
};

TEST_F(UpkeepTest, TellsTheTablesOfAllShards) {
  control_.shards.Set({{"west", Shard(8)}, {"east", Shard(4)}});
  EXPECT_TRUE(Reads({{{"east", "tasks", 4}, {"west", "tasks", 8}}, {}}));
}

TEST_F(UpkeepTest, WhoLeadsTellsHowTheTasksStandAndNobodyElse) {
  const auto shard = Shard(4);
  NewTask task;
  task.handler = "noop";
  ASSERT_TRUE(shard->OpenOperations()->Submit("tasks", std::vector<NewTask>(3, task)));
  control_.shards.Set({{"east", shard}});
  Registry registry;
  const auto reading = registry.OnText([this](Gauges& gauges) { upkeep_.Measure(gauges); });
  const auto tells = [&](const std::string& line) { return registry.Text().find(line) != std::string::npos; };
  const std::string waiting = "millrace_tasks_waiting{handler=\"noop\",shard=\"east\"} 3\n";
  EXPECT_TRUE(Eventually([&] { return tells(waiting); })) << registry.Text();
  EXPECT_TRUE(tells("millrace_purge_lag_seconds{shard=\"east\"}"));
  leading_ = false;
  EXPECT_TRUE(Eventually([&] { return registry.Text().empty(); })) << registry.Text();
}

TEST_F(UpkeepTest, AShardThatCannotBeReadIsUnreadAndHoldsUpNoOther) {
  control_.shards.Set({{"east", Shard(4)}, {"west", Shard(0)}});
  EXPECT_TRUE(Reads({{{"east", "tasks", 4}}, {"west"}}));
  EXPECT_TRUE(Eventually([&] { return upkeep_.Findings().troubles.size() == 1; }));
  EXPECT_THAT(upkeep_.Findings().troubles, ElementsAre(HasSubstr("shard west: its tables can't be read")));
}

TEST_F(UpkeepTest, TellsWhichShardsItCanNotReadWhetherItLeadsOrStandsForIt) {
  const auto tells = [&](const std::vector<std::string>& unread) {
    return Eventually([&] { return upkeep_.Findings().unread == unread; });
  };
  EXPECT_TRUE(Eventually([&] { return !upkeep_.Findings().unread; }));
  control_.shards.Set({{"east", Shard(4)}, {"west", Shard(0)}});
  EXPECT_TRUE(tells({"west"}));
  leading_ = false;
  EXPECT_TRUE(Eventually([&] { return !upkeep_.Findings().unread; }));  // it has nothing to do with it
  standing_ = true;
  EXPECT_TRUE(tells({"west"}));
  unopened_.Set({.refused = {{"north", "no password"}}});
  EXPECT_TRUE(tells({"north", "west"}));
  unopened_.Set({.others = true});
  EXPECT_TRUE(Eventually([&] { return !upkeep_.Findings().unread; }));
}

TEST_F(UpkeepTest, FollowsTheShards) {
  control_.shards.Set({{"main", Shard(4)}});
  ASSERT_TRUE(Reads({{{"main", "tasks", 4}}, {}}));
  control_.shards.Set({{"main", Shard(6)}, {"other", Shard(2)}});
  ASSERT_TRUE(Reads({{{"main", "tasks", 6}, {"other", "tasks", 2}}, {}}));
  control_.shards.Set({{"other", control_.shards.Get().at("other")}});
  EXPECT_TRUE(Reads({{{"other", "tasks", 2}}, {}}));
}

TEST_F(UpkeepTest, WhatWasReadIsForgottenWithTheTerm) {
  control_.shards.Set({{"main", Shard(4)}});
  ASSERT_TRUE(Reads({{{"main", "tasks", 4}}, {}}));
  leading_ = false;
  EXPECT_TRUE(Reads({{}, {"main"}}));
}

TEST_F(UpkeepTest, WithoutAShardNothingIsKnownAndToldUntilThereIsOne) {
  upkeep_.Update();
  EXPECT_EQ(upkeep_.Findings().catalog, nullptr);
  EXPECT_THAT(upkeep_.Findings().troubles, ElementsAre(HasSubstr("no shard is known")));
  control_.shards.Set({{"main", Shard(4)}});
  EXPECT_TRUE(Reads({{{"main", "tasks", 4}}, {}}));
  EXPECT_THAT(upkeep_.Findings().troubles, IsEmpty());
  control_.shards.Set({});
  EXPECT_TRUE(Eventually([&] { return !upkeep_.Findings().troubles.empty(); }));
  EXPECT_TRUE(Reads({{{"main", "tasks", 4}}, {}}));  // nobody loses what it has
}

TEST_F(UpkeepTest, AShardThatIsNamedAndCannotBeOpenedIsUnread) {
  Upkeep upkeep({.shards = [this] { return control_.Shards(); },
                 .config = [this] { return control_.CurrentConfig(); },
                 .leading = [] { return true; },
                 .ownership = [] { return nullptr; },
                 .changed = [] {},
                 .round = milliseconds(1),
                 .unopened =
                     [] {
                       return UnopenedShards{{{"west", "no such scheme"}}, true};
                     }});
  upkeep.Update();
  EXPECT_EQ(upkeep.Findings().catalog, nullptr);  // nothing is known at all
  control_.shards.Set({{"east", Shard(4)}});
  upkeep.Update();
  ASSERT_NE(upkeep.Findings().catalog, nullptr);
  EXPECT_THAT(upkeep.Findings().catalog->unread, testing::Contains("west"));
  EXPECT_TRUE(upkeep.Findings().catalog->others);
  EXPECT_THAT(upkeep.Findings().troubles, testing::Contains("shard west is refused: no such scheme"));
  EXPECT_TRUE(upkeep.Stop());
}

TEST_F(UpkeepTest, ANewConfigurationDoesNotWaitForTheNextRound) {
  control_.shards.Set({{"main", Shard(4)}});
  Upkeep rare({.shards = [this] { return control_.Shards(); },
               .config = [this] { return control_.CurrentConfig(); },
               .leading = [] { return true; },
               .ownership = [] { return nullptr; },
               .changed = [] {},
               .round = std::chrono::hours(1)});
  const auto slices = [&]() -> std::uint32_t {
    rare.Update();
    const auto catalog = rare.Findings().catalog;
    return catalog == nullptr || catalog->tables.empty() ? 0 : catalog->tables.front().info.slices;
  };
  ASSERT_TRUE(Eventually([&] { return slices() == 4; }));
  Config config;
  config.shards["main"].slices = 6;
  control_.config.Set(std::make_shared<const Config>(std::move(config)));
  EXPECT_TRUE(Eventually([&] { return slices() == 6; }));
  EXPECT_TRUE(rare.Stop());
}

TEST_F(UpkeepTest, WhoDoesNotLeadMissesNoShard) {
  leading_ = false;
  upkeep_.Update();
  EXPECT_THAT(upkeep_.Findings().troubles, IsEmpty());
}

TEST_F(UpkeepTest, AThreadThatAServerHoldsUpIsNotWaitedForWhenItsShardGoes) {
  const auto silent = std::make_shared<SilentStore>(clock_);
  control_.shards.Set({{"main", Shard(4)}, {"silent", silent}});
  upkeep_.Update();
  ASSERT_TRUE(silent->asked.WaitFor(seconds(10)));
  control_.shards.Set({{"main", control_.shards.Get().at("main")}});
  EXPECT_TRUE(Reads({{{"main", "tasks", 4}}, {}}));
  EXPECT_FALSE(silent->answered);
  EXPECT_FALSE(upkeep_.Stop());  // says so, instead of waiting on
  silent->answer.Notify();
  EXPECT_TRUE(upkeep_.Stop());
}

}  // namespace
}  // namespace millrace::engine
