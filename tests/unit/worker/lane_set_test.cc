// How a worker's lanes come by their handlers: refused, asked again, opened.
#include "framework/worker/lane_set.h"

#include <sys/stat.h>

#include <fstream>
#include <future>
#include <thread>

#include "framework/testing/manual_clock.h"
#include "telling_host.h"
#include "worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::SizeIs;

class LaneSetTest : public ::testing::Test {
 protected:
  LaneSetTest() {
    char pattern[] = "/tmp/lane_set_XXXXXX";
    folder_ = mkdtemp(pattern);
    recorder_ = *FlightRecorder::Create(folder_, "w.1");
    plugins_.behaviours["quick"] = [](auto tasks, auto&) { return std::vector<Outcome>(tasks.size()); };
    lanes_ = std::make_unique<LaneSet>(LaneParts{clock_, *recorder_}, plugins_,
                                       std::make_shared<const Config>(config_), LaneSet::Rules{});
  }
  ~LaneSetTest() override {
    for (const auto& lane : lanes_->All()) lane->Close();
    for (const auto& lane : lanes_->All()) lane->Join();
    lanes_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string SecretFile() const { return folder_ + "/token"; }
  void WriteSecret() const {
    std::ofstream(SecretFile()) << "t0ken\n";
    ASSERT_EQ(chmod(SecretFile().c_str(), 0600), 0);
  }
  HandlerConfig WithSecret() const {
    HandlerConfig config;
    config.secrets["token"].file = SecretFile();
    return config;
  }
  void Follow() { lanes_->Follow(std::make_shared<const Config>(config_)); }
  void Pass(Micros time) {
    clock_.Advance(time);
    lanes_->LookAgain();
  }

  ManualClock clock_;
  std::string folder_;
  std::unique_ptr<FlightRecorder> recorder_;
  FunctionPlugins plugins_;
  Config config_;
  std::unique_ptr<LaneSet> lanes_;
};

// Permits are asked for by these: one for a thread that the type never has would be kept from others.
TEST_F(LaneSetTest, ATypeHasNoMoreThreadsThanItsLaneGivesIt) {
  plugins_.behaviours["other"] = plugins_.behaviours["quick"];
  config_.handlers["quick"];
  const auto threads = [&](bool shared) {
    config_.engine.queues.by = shared ? QueuesConfig::By::One : QueuesConfig::By::Handler;
    const auto config = std::make_shared<const Config>(config_);
    LaneSet lanes(LaneParts{clock_, *recorder_}, plugins_, config, LaneSet::Rules{.concurrency = 8});
    EXPECT_TRUE(lanes.OpenConfigured());
    const std::uint32_t of_quick = lanes.WithThreads(config_)->handlers.at("quick").concurrency;
    for (const auto& lane : lanes.All()) lane->Close();
    for (const auto& lane : lanes.All()) lane->Join();
    return of_quick;
  };
  EXPECT_EQ(threads(true), 8u);
  config_.handlers["other"];
  EXPECT_EQ(threads(true), 6u) << "the last quarter is for what comes of the others";
  EXPECT_EQ(threads(false), 8u);
}

TEST_F(LaneSetTest, ASecretsFileThatComesLateIsEnough) {
  config_.handlers["quick"] = WithSecret();
  Follow();
  EXPECT_EQ(lanes_->For("quick"), nullptr);
  EXPECT_THAT(lanes_->Refusals(), ElementsAre(Pair(_, HasSubstr("it is asked again within a minute"))));
  WriteSecret();
  Pass(milliseconds(999));
  EXPECT_EQ(lanes_->For("quick"), nullptr);
  Pass(milliseconds(1));
  EXPECT_NE(lanes_->For("quick"), nullptr);
  EXPECT_THAT(lanes_->Refusals(), IsEmpty());
  Pass(seconds(600));
  EXPECT_EQ(plugins_.opened, 1) << "what is open is not opened anew";
}

TEST_F(LaneSetTest, OnlyWhatDoesNotRunForItCountsAsUnopened) {
  config_.handlers["quick"].options = R"({"a":"refused"})";
  Follow();
  EXPECT_THAT(lanes_->Unopened(), ElementsAre(Pair("quick", "it refuses these options")));
  config_.handlers["quick"].options = R"({"a":1})";
  Follow();
  EXPECT_THAT(lanes_->Unopened(), IsEmpty());
  config_.handlers["quick"].options = R"({"a":"refused"})";
  Follow();
  EXPECT_THAT(lanes_->Refusals(), ElementsAre(Pair("quick", HasSubstr("stay in force"))));
  EXPECT_THAT(lanes_->Unopened(), IsEmpty()) << "it runs with its former options";
}

TEST_F(LaneSetTest, ATypeThatIsConfiguredNoLongerRefusesNothing) {
  plugins_.refused = "";
  config_.handlers["quick"];
  Follow();
  ASSERT_THAT(lanes_->Refusals(), ElementsAre(Pair("quick", _)));
  config_.handlers.clear();
  Follow();
  EXPECT_THAT(lanes_->Refusals(), IsEmpty());
  Pass(seconds(600));
  EXPECT_THAT(lanes_->Refusals(), IsEmpty());
  EXPECT_EQ(lanes_->For("quick"), nullptr);
  EXPECT_THAT(lanes_->Refusals(), ElementsAre(Pair("quick", _))) << "there is a task of it";
}

TEST_F(LaneSetTest, ALaneThatKeptItsFormerSecretsTakesTheNewOnesOnceTheyAreThere) {
  Follow();
  ASSERT_NE(lanes_->For("quick"), nullptr);
  config_.handlers["quick"] = WithSecret();
  Follow();
  EXPECT_THAT(lanes_->Refusals(),
              ElementsAre(Pair(_, HasSubstr("stay in force, and it is asked again within a minute"))));
  EXPECT_EQ(plugins_.opened, 1);
  WriteSecret();
  Pass(seconds(1));
  EXPECT_EQ(plugins_.opened, 2);
  EXPECT_THAT(lanes_->Refusals(), IsEmpty());
}

TEST_F(LaneSetTest, ASecretThatIsRenewedInItsFileIsTakenWithinAMinute) {
  WriteSecret();
  config_.handlers["quick"] = WithSecret();
  Follow();
  Pass(seconds(60));
  EXPECT_EQ(plugins_.opened, 1) << "it is the same";
  std::ofstream(SecretFile()) << "renewed\n";
  Pass(seconds(59));
  EXPECT_EQ(plugins_.opened, 1);
  Pass(seconds(1));
  EXPECT_EQ(plugins_.opened, 2);
  std::filesystem::remove(SecretFile());
  Pass(seconds(60));
  EXPECT_THAT(lanes_->Refusals(), ElementsAre(Pair(_, HasSubstr("stay in force, and it is asked again"))));
  EXPECT_EQ(plugins_.opened, 2);
}

TEST_F(LaneSetTest, AHandlerThatRefusedItsFirstTaskIsAskedAgainToo) {
  config_.handlers["quick"] = WithSecret();
  lanes_ = std::make_unique<LaneSet>(LaneParts{clock_, *recorder_}, plugins_,
                                     std::make_shared<const Config>(config_), LaneSet::Rules{});
  EXPECT_EQ(lanes_->For("quick"), nullptr);
  EXPECT_THAT(lanes_->Refusals(), ElementsAre(Key("quick")));
  WriteSecret();
  Pass(seconds(1));
  EXPECT_NE(lanes_->For("quick"), nullptr);
}

TEST_F(LaneSetTest, ThePausesGrowFromASecondToAMinuteAndANewConfigurationBeginsAnew) {
  config_.handlers["quick"].options = R"({"a":"refused"})";
  Follow();
  EXPECT_EQ(plugins_.asked, 1);
  int asked = 1;
  for (const int pause : {1, 2, 4, 8, 16, 32, 60, 60}) {
    Pass(seconds(pause) - milliseconds(1));
    EXPECT_EQ(plugins_.asked, asked) << pause;
    Pass(milliseconds(1));
    EXPECT_EQ(plugins_.asked, ++asked) << pause;
  }
  Follow();
  Pass(seconds(1));
  EXPECT_EQ(plugins_.asked, asked + 2);
}

// Foreign code may take its time in its end: nobody waits for that who asks for room, and no watchdog. The
// last to let a replaced handler go is whoever replaced it, or a thread that was in a call of it.
TEST_F(LaneSetTest, AHandlerThatTakesLongToCloseHoldsNobodyUp) {
  for (const bool in_a_call : {false, true}) {
    std::promise<void> release;
    std::promise<void> go;
    const auto released = release.get_future().share();
    const auto goes = go.get_future().share();
    std::atomic<bool> called{false};
    std::atomic<bool> closes{false};
    {
      const auto last = std::shared_ptr<void>(&closes, [released, &closes](void*) {
        closes = true;
        released.wait();
      });
      plugins_.behaviours["job"] = [last, goes, &called](auto tasks, auto&) {
        called = true;
        goes.wait();
        return std::vector<Outcome>(tasks.size());
      };
      config_.handlers["job"].concurrency = 1;
      config_.handlers["job"].options = in_a_call ? R"({"a":1})" : R"({"a":2})";
      Follow();
    }
    const auto host = std::make_shared<TellingHost>(clock_);
    if (in_a_call) {
      Task task;
      task.key = {"tasks", 1};
      task.handler = "job";
      const auto life = std::make_shared<Lease>("w.1", seconds(10), clock_.Now());
      std::vector<AttemptPtr> one{std::make_shared<Attempt>(host, "main", task, life, false)};
      ASSERT_TRUE(lanes_->Take("job", one));
      while (!called) std::this_thread::yield();
    }
    plugins_.behaviours["job"] = plugins_.behaviours["quick"];
    config_.handlers["job"].options = R"({"a":3})";
    auto followed = std::async(std::launch::async, [this] { Follow(); });
    if (in_a_call) {
      followed.wait();
      go.set_value();
    }
    while (!closes) std::this_thread::yield();
    auto looked = std::async(std::launch::async, [&] {
      lanes_->Room("job", *host, kLeastUrgent);
      lanes_->Watch(clock_.Now());
    });
    EXPECT_EQ(looked.wait_for(seconds(10)), std::future_status::ready) << in_a_call;
    release.set_value();
    followed.wait();
    looked.wait();
  }
}

TEST(WatchPaceTest, OnlyAfterASecondWithNothingToWatchItRests) {
  WatchPace pace;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(pace.Next(true), WatchPace::kTick);
    for (int tick = 0; tick < WatchPace::kTicksToRest; ++tick) EXPECT_EQ(pace.Next(false), WatchPace::kTick);
    EXPECT_EQ(pace.Next(false), WatchPace::kAtRest);
    EXPECT_EQ(pace.Next(false), WatchPace::kAtRest);
  }
}

TEST_F(LaneSetTest, WhoRestsIsWokenByTheFirstThatIsTaken) {
  const auto host = std::make_shared<TellingHost>(clock_);
  const auto life = std::make_shared<Lease>("w.1", seconds(10), clock_.Now());
  std::uint64_t id = 0;
  const auto take = [&] {
    Task task;
    task.key = {"tasks", ++id};
    task.handler = "quick";
    std::vector<AttemptPtr> one{std::make_shared<Attempt>(host, "main", task, life, false)};
    ASSERT_TRUE(lanes_->Take("quick", one));
  };
  Signal wake;
  take();
  EXPECT_FALSE(wake.WaitFor(Micros(0)));
  lanes_->WakeOnTake(&wake);
  take();
  EXPECT_TRUE(wake.WaitFor(Micros(0)));
  take();
  EXPECT_FALSE(wake.WaitFor(Micros(0))) << "it watches by then";
  lanes_->WakeOnTake(&wake);
  lanes_->WakeOnTake(nullptr);
  take();
  EXPECT_FALSE(wake.WaitFor(Micros(0)));
}

TEST_F(LaneSetTest, AHandlerThatNoPluginHasIsNotAskedForAgain) {
  config_.handlers["nowhere"];
  Follow();
  EXPECT_EQ(lanes_->For("elsewhere"), nullptr);
  EXPECT_THAT(lanes_->Refusals(), ElementsAre(Pair(_, HasSubstr("no handler nowhere"))));
  const int asked = plugins_.asked;
  Pass(seconds(600));
  EXPECT_EQ(plugins_.asked, asked);
}

TEST_F(LaneSetTest, AChangeOfTheQueuesMovesWhatIsQueuedAndWhatRunsEndsWhereItIs) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::atomic<int> hanging{0};
  std::atomic<int> calls{0};
  plugins_.behaviours["job"] = [&](auto tasks, auto&) {
    ++calls;
    if (tasks[0].biz_key == "hang") {
      ++hanging;
      released.wait();
    }
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["job"].concurrency = 1;
  Follow();
  const auto host = std::make_shared<TellingHost>(clock_);
  const auto life = std::make_shared<Lease>("w.1", seconds(10), clock_.Now());
  const auto push = [&](std::uint64_t id, const std::string& key) {
    Task task;
    task.key = {"tasks", id};
    task.handler = "job";
    task.biz_key = key;
    std::vector<AttemptPtr> one{std::make_shared<Attempt>(host, "main", task, life, false)};
    EXPECT_TRUE(lanes_->Take("job", one));
  };
  push(1, "hang");
  while (hanging == 0) std::this_thread::yield();
  push(2, "");
  push(3, "");
  config_.engine.queues.by = QueuesConfig::By::One;
  Follow();
  EXPECT_EQ(lanes_->CurrentLoads().threads.at("shared"), 1U);
  push(4, "");
  for (int i = 0; i < 1000; ++i) {
    lanes_->Watch(clock_.Now());
    std::this_thread::yield();
  }
  EXPECT_THAT(lanes_->All(), SizeIs(2)) << "the former lane has a call under way";
  EXPECT_EQ(calls, 1) << "one at a time, in both together";
  release.set_value();
  EXPECT_EQ(host->NextLanded(), 1U);
  while (lanes_->All().size() > 1) lanes_->Watch(clock_.Now());
  EXPECT_EQ(host->NextLanded(), 2U);
  EXPECT_EQ(host->NextLanded(), 3U);
  EXPECT_EQ(host->NextLanded(), 4U);
  config_.engine.queues.by = QueuesConfig::By::Handler;
  Follow();
  push(5, "");
  // The former lane's thread may not be home yet, and counts until a watch has seen that it is.
  while (lanes_->All().size() > 1) lanes_->Watch(clock_.Now());
  EXPECT_EQ(host->NextLanded(), 5U);
  EXPECT_EQ(lanes_->All().front()->name(), "job");
}

}  // namespace
}  // namespace millrace::engine
