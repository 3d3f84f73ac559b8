// What a worker follows while it runs: shards, slices, pauses, configuration. On stores in memory.
#include <atomic>
#include <fstream>
#include <thread>

#include "framework/mill/attempts.h"
#include "framework/testing/scratch_store.h"
#include "framework/threads/signal.h"
#include "worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// The same database, opened once more: as where the entry of a shard has changed.
class OpenedAnew : public Store {
 public:
  explicit OpenedAnew(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  std::string Describe() const override { return store_->Describe(); }
  Status Ping() override { return store_->Ping(); }
  std::unique_ptr<TaskStore> OpenTasks() override { return store_->OpenTasks(); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return store_->OpenIncarnations(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return store_->OpenTransaction(limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return store_->OpenOperations(); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return store_->OpenSchema(); }
  std::unique_ptr<PruneStore> OpenPruning() override { return store_->OpenPruning(); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return store_->OpenOverview(); }
  std::unique_ptr<PermitStore> OpenPermits() override { return store_->OpenPermits(); }

 private:
  const std::shared_ptr<Store> store_;
};

// In it nobody signs off until the test says so.
class Frozen final : public OpenedAnew {
 public:
  using OpenedAnew::OpenedAnew;
  std::unique_ptr<IncarnationStore> OpenIncarnations() override {
    return std::make_unique<Lives>(OpenedAnew::OpenIncarnations(), thaws_);
  }
  void Thaw() { thaws_.Notify(); }

 private:
  class Lives final : public IncarnationStore {
   public:
    Lives(std::unique_ptr<IncarnationStore> store, Signal& thaws) : store_(std::move(store)), thaws_(thaws) {}
    Status Register(const Incarnation& self) override { return store_->Register(self); }
    Result<bool> Renew(const std::string& id) override { return store_->Renew(id); }
    Result<std::vector<PeerBeat>> Peers() override { return store_->Peers(); }
    Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen) override {
      return store_->MarkDead(id, seen);
    }
    Result<bool> Retire(const std::string& id) override {
      thaws_.WaitFor(seconds(60));
      return store_->Retire(id);
    }
    Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override {
      return store_->ChargeCrashes(id, crashes);
    }

   private:
    const std::unique_ptr<IncarnationStore> store_;
    Signal& thaws_;
  };
  Signal thaws_;
};

// In it nobody hears of permits until the test says so.
class FrozenPermits final : public OpenedAnew {
 public:
  using OpenedAnew::OpenedAnew;
  std::unique_ptr<PermitStore> OpenPermits() override {
    asked_ = true;
    thaws_.WaitFor(seconds(60));
    return OpenedAnew::OpenPermits();
  }
  bool WasAsked() const { return asked_; }
  void Thaw() { thaws_.Notify(); }

 private:
  std::atomic<bool> asked_{false};
  Signal thaws_;
};

class LiveWorkerTest : public WorkerFixture {
 protected:
  LiveWorkerTest() {
    control_.shards.Set({{"main", main_}});
    plugins_.behaviours["quick"] = [this](auto tasks, auto&) {
      quick_runs_ += static_cast<int>(tasks.size());
      return std::vector<Outcome>(tasks.size());
    };
    // Runs until the test lets it end.
    plugins_.behaviours["slow"] = [this](auto tasks, auto&) {
      const int now = ++slow_now_;
      for (int most = slow_most_; now > most && !slow_most_.compare_exchange_weak(most, now);) continue;
      while (!release_) std::this_thread::yield();
      --slow_now_;
      return std::vector<Outcome>(tasks.size());
    };
  }
  ~LiveWorkerTest() override { release_ = true; }

  std::shared_ptr<ScratchStore> NewStore() { return std::make_shared<ScratchStore>(clock_); }
  // The entry of the permits' home changes, and that of the other shard does not.
  void OpenHomeAnew(bool at_main, const std::shared_ptr<ScratchStore>& second) {
    std::shared_ptr<Store> main = main_;
    std::shared_ptr<Store> other = second;
    std::shared_ptr<Store>& home = at_main ? main : other;
    home = std::make_shared<OpenedAnew>(home);
    control_.shards.Set({{"main", main}, {"second", other}});
  }

  static bool HasBad(std::span<const Task> tasks) {
    return std::any_of(tasks.begin(), tasks.end(), [](auto& task) { return task.biz_key == "bad"; });
  }
  // Five tasks and a bad one of the type `batch` are a call that overruns: the bad one alone is charged.
  void RunBadAmongFive(std::unique_ptr<Worker>& worker) {
    config_.handlers["batch"].concurrency = 1;
    config_.handlers["batch"].timeout = milliseconds(20);
    SubmitMany(*main_, "batch", 5);
    const auto bad = SubmitTo(*main_, "batch", "bad");
    worker = Start(false);
    ASSERT_TRUE(Eventually(*worker, [&] { return Get(*main_, bad).task.failures == 1; }));
    EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 5; }));
    EXPECT_EQ(worker->Totals().retried, 1u);
  }

  static std::size_t CountIn(ScratchStore& store, TaskState state) {
    return static_cast<std::size_t>(
        store.Ask("SELECT count(*) FROM tasks WHERE state=" + std::to_string(static_cast<int>(state))));
  }
  static std::uint64_t Succeeded(ScratchStore& store) {
    const auto groups = store.OpenOperations()->Totals();
    std::uint64_t succeeded = 0;
    for (const TaskTotals& totals : *groups) succeeded += totals.succeeded;
    return succeeded;
  }
  // As a store in which this process lives.
  bool RecorderNames(const Store& store) const {
    for (const auto& file : std::filesystem::directory_iterator(folder_ + "/recorders")) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::string whole{std::istreambuf_iterator<char>(in), {}};
      if (whole.find(store.Describe()) != std::string::npos) return true;
    }
    return false;
  }
  static void PutAllInSlice(ScratchStore& store, std::uint32_t slice) {
    store.Run("UPDATE tasks SET slice=" + std::to_string(slice));
  }

  const std::shared_ptr<ScratchStore> main_ = NewStore();
  std::atomic<int> quick_runs_{0};
  std::atomic<int> slow_now_{0};
  std::atomic<int> slow_most_{0};
  std::atomic<int> started_{0};   // of those that end in the order in which they begin,
  std::atomic<int> released_{0};  // and how many of them may
  std::atomic<bool> release_{false};
};

TEST_F(LiveWorkerTest, AShardThatIsAddedIsServedAndOneThatIsGoneIsFinishedAndLeft) {
  auto worker = Start(false);
  const auto second = NewStore();
  SubmitTo(*second, "quick");
  control_.shards.Set({{"main", main_}, {"second", second}});
  ASSERT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));

  SubmitTo(*second, "slow");
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_now_ == 1; }));
  control_.shards.Set({{"main", main_}});
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards[1].retiring; }));
  EXPECT_EQ(slow_now_, 1);
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.size() == 1; }));
  EXPECT_TRUE(RecorderNames(*main_));
  EXPECT_FALSE(RecorderNames(*second)) << "who buries this process need not serve it";
  EXPECT_EQ(Succeeded(*second), 2u);
  EXPECT_THAT(*second->OpenIncarnations()->Peers(), IsEmpty());
  EXPECT_TRUE(Eventually(*worker, [&] { return second.use_count() == 1; })) << "somebody keeps the store";
}

TEST_F(LiveWorkerTest, WhatHearsTheStopOfItsShardIsSettledBeforeThatIsOpenedAnew) {
  plugins_.behaviours["heeds"] = [this](std::span<const Task> tasks, auto& context) {
    slow_most_ = std::max<int>(slow_most_, ++slow_now_);
    while (tasks[0].attempt == 1 && !context.ShouldStop() && !release_) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(100));
    --slow_now_;
    return std::vector<Outcome>{Make(tasks[0].attempt == 1 ? OutcomeKind::Retry : OutcomeKind::Done)};
  };
  config_.engine.stop_timeout = seconds(2);
  const auto worker = Start(false);
  SubmitTo(*main_, "heeds");
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_now_ == 1; }));
  control_.shards.Set({{"main", std::make_shared<OpenedAnew>(main_)}});
  ASSERT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 1; }));
  EXPECT_EQ(slow_most_, 1);
  EXPECT_EQ(worker->Totals().returned, 1u);
  EXPECT_EQ(worker->Totals().rescued, 0u);
  EXPECT_EQ(Get(*main_, 1).task.failures, 0u);
}

// What runs is another shard's; the home has nothing in hand, and its former life is needed all the same.
TEST_F(LiveWorkerTest, WhatHoldsAPermitGoesOnWhileTheHomeOfThatIsOpenedAnew) {
  config_.handlers["slow"].limit = LimitConfig{.concurrency = 1};
  config_.engine.stop_timeout = milliseconds(500);
  const auto second = NewStore();
  control_.shards.Set({{"main", main_}, {"second", second}});
  const auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return !worker->Status().permit_home.empty(); }));
  const bool at_main = worker->Status().permit_home == "main";
  ScratchStore& other = at_main ? *second : *main_;
  SubmitTo(other, "slow");
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_now_ == 1; }));
  OpenHomeAnew(at_main, second);
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.size() == 3; }));
  worker->WaitFor(milliseconds(1500));
  EXPECT_EQ(worker->Status().shards.size(), 3u);
  EXPECT_EQ(metrics_.Text().find("millrace_permits_withdrawn_total"), std::string::npos);
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.size() == 2; }));
  EXPECT_EQ(Succeeded(other), 1u);
}

// Of two permits of the former life one is used up; the other's task may run for a day.
TEST_F(LiveWorkerTest, APermitOfAHomeThatWasOpenedAnewIsFreeOnceItsTaskHasEnded) {
  plugins_.behaviours["in_turn"] = [this](auto tasks, auto&) {
    const int number = ++started_;
    while (released_ < number && !release_) std::this_thread::yield();
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["in_turn"].limit = LimitConfig{.concurrency = 2};
  config_.handlers["in_turn"].concurrency = 3;
  config_.engine.stop_timeout = milliseconds(500);
  const auto second = NewStore();
  control_.shards.Set({{"main", main_}, {"second", second}});
  const auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return !worker->Status().permit_home.empty(); }));
  const bool at_main = worker->Status().permit_home == "main";
  ScratchStore& other = at_main ? *second : *main_;
  SubmitTo(other, "in_turn");
  SubmitTo(other, "in_turn");
  ASSERT_TRUE(Eventually(*worker, [&] { return started_ == 2; }));
  OpenHomeAnew(at_main, second);
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.size() == 3; }));
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().permits.at(0).held == 0; }));
  SubmitTo(other, "in_turn");
  released_ = 1;
  ASSERT_TRUE(Eventually(*worker, [&] { return started_ == 3; }));
  EXPECT_EQ(worker->Status().shards.size(), 3u) << "the former life holds the permit of what runs yet";
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return Succeeded(other) == 3; }));
}

TEST_F(LiveWorkerTest, AWorkerWithNothingInHandEndsInTimeThoughADatabaseIsFrozen) {
  config_.engine.stop_timeout = seconds(1);
  const auto frozen = std::make_shared<Frozen>(main_);
  control_.shards.Set({{"main", frozen}});
  const auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards[0].beats; }));
  worker->Stop();
  EXPECT_EQ(worker->WaitFor(seconds(10)), WorkerEnd::Stopped);
  EXPECT_TRUE(worker->LeftThreads()) << "whoever ends the process does not wait for them";
  frozen->Thaw();
  EXPECT_TRUE(Eventually(*worker, [&] { return !worker->LeftThreads(); }));
}

TEST_F(LiveWorkerTest, ADatabaseThatIsFrozenKeepsNoOtherFromHearingThatTheWorkerSignsOff) {
  config_.engine.stop_timeout = seconds(1);
  config_.handlers["quick"].limit = LimitConfig{.concurrency = 1};
  const auto frozen = std::make_shared<FrozenPermits>(main_);
  const auto second = NewStore();
  control_.shards.Set({{"main", frozen}, {"second", second}});
  const auto worker = Start(false);
  const auto lives = [&] { return second->OpenIncarnations()->Peers()->size(); };
  ASSERT_TRUE(Eventually(*worker, [&] { return frozen->WasAsked() && lives() == 1; }));
  worker->Stop();
  EXPECT_EQ(worker->WaitFor(seconds(10)), WorkerEnd::Stopped);
  EXPECT_TRUE(worker->LeftThreads()) << "the one that asks for permits";
  EXPECT_EQ(lives(), 0u);
  frozen->Thaw();
  EXPECT_TRUE(Eventually(*worker, [&] { return !worker->LeftThreads(); }));
}

TEST_F(LiveWorkerTest, AShardThatIsGoneIsLeftAlsoWhereItWasAskedForPermits) {
  config_.handlers["quick"].limit = LimitConfig{.concurrency = 1};
  const auto worker = Start(false);
  const auto second = NewStore();
  control_.shards.Set({{"main", main_}, {"second", second}});
  SubmitTo(*second, "quick");
  ASSERT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));
  control_.shards.Set({{"main", main_}});
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.size() == 1; }));
  EXPECT_TRUE(Eventually(*worker, [&] { return second.use_count() == 1; })) << "somebody keeps the store";
}

TEST_F(LiveWorkerTest, AWorkerWithNothingInHandLooksSeldomUntilItHearsOfAChangeOrTakesATask) {
  auto worker = Start(false);
  const auto looks_in_a_second = [&] {
    const int before = control_.looks;
    worker->WaitFor(seconds(1));
    return control_.looks - before;
  };
  ASSERT_TRUE(Eventually(*worker, [&] { return looks_in_a_second() <= 3; }));
  ASSERT_TRUE(Eventually(*worker, [&] {
    control_.TellChange();
    return looks_in_a_second() >= 10;
  }));
  ASSERT_TRUE(Eventually(*worker, [&] { return looks_in_a_second() <= 3; }));
  SubmitTo(*main_, "slow");
  ASSERT_TRUE(Eventually(*worker, [&] { return looks_in_a_second() >= 10; }));
  EXPECT_EQ(slow_now_, 1);
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return looks_in_a_second() <= 3; }));
  worker.reset();
  EXPECT_TRUE(control_.wakes.Get().empty());
}

// At rest, the next look comes half a second after the last.
TEST_F(LiveWorkerTest, ATaskThatIsTakenAtRestIsWatchedFromItsStartOn) {
  auto worker = Start(false);
  const auto until_a_look = [&] {
    const BootTime begun = BootClock::now();
    const int before = control_.looks;
    EXPECT_TRUE(Eventually(*worker, [&] { return control_.looks != before; }));
    return BootClock::now() - begun;
  };
  const auto soon = [&] {
    release_ = false;
    EXPECT_TRUE(Eventually(*worker, [&] { return until_a_look() > milliseconds(150); }));
    SubmitTo(*main_, "slow");
    EXPECT_TRUE(Eventually(*worker, [&] { return slow_now_ == 1; }));
    const bool is_soon = until_a_look() < milliseconds(100);
    release_ = true;
    EXPECT_TRUE(Eventually(*worker, [&] { return slow_now_ == 0; }));
    return is_soon;
  };
  int in_a_row = 0;  // a machine that stands still now and then is excused
  for (int tries = 0; tries < 12 && in_a_row < 3; ++tries) in_a_row = soon() ? in_a_row + 1 : 0;
  EXPECT_EQ(in_a_row, 3);
}

// One that nobody tells of waits for the next look, half a second after the last.
TEST_F(LiveWorkerTest, ANewConfigurationThatItIsToldOfIsTakenAtOnce) {
  auto worker = Start(false);
  const auto twenty_take = [&] {
    const BootTime begun = BootClock::now();
    for (int change = 0; change < 20; ++change) {
      const auto next = std::make_shared<const Config>(config_);
      control_.config.Set(next);
      control_.TellChange();
      EXPECT_TRUE(Eventually(*worker, [&] { return worker->Refused(next).has_value(); }));
    }
    return BootClock::now() - begun;
  };
  EXPECT_TRUE(Eventually(*worker, [&] { return twenty_take() < seconds(1); }));
}

TEST_F(LiveWorkerTest, AScanInRoundsIsFollowedLive) {
  config_.handlers["quick"].scan = ScanConfig{.after = std::chrono::hours(1), .max_rows = 10};
  SubmitMany(*main_, "quick", 30);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 10; }));
  ASSERT_TRUE(Eventually(*worker, [&] {
    const ShardStatus shard = worker->Status().shards.at(0);
    return shard.rounds.size() == 1 && !shard.rounds[0].open && shard.rounds[0].next.has_value();
  }));
  EXPECT_EQ(quick_runs_, 10);
  config_.handlers["quick"].scan.reset();
  control_.config.Set(std::make_shared<const Config>(config_));
  EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 30; }));
  EXPECT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.at(0).rounds.empty(); }));
}

TEST_F(LiveWorkerTest, ScannersByPriorityComeAndGoWhileItRuns) {
  const auto all_done_of = [this](std::uint64_t count) { return Succeeded(*main_) == count; };
  const auto submit = [this] {
    for (const std::uint32_t priority : {0u, 4u, 9u}) {
      NewTask task;
      task.handler = "quick";
      task.priority = priority;
      ASSERT_TRUE(main_->OpenOperations()->Submit("tasks", std::vector<NewTask>(40, task)));
    }
  };
  submit();
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return all_done_of(120); }));
  config_.engine.scanners = {ScannersConfig::By::Priority, 3};
  control_.config.Set(std::make_shared<const Config>(config_));
  submit();
  ASSERT_TRUE(Eventually(*worker, [&] { return all_done_of(240); }));
  config_.engine.scanners = {};
  control_.config.Set(std::make_shared<const Config>(config_));
  submit();
  ASSERT_TRUE(Eventually(*worker, [&] { return all_done_of(360); }));
  EXPECT_EQ(quick_runs_, 360);
  EXPECT_EQ(worker->StandsStill(seconds(30)), "");
}

TEST_F(LiveWorkerTest, ABandIsFollowedLiveAndShown) {
  config_.handlers["quick"].bands = {{.every = std::chrono::hours(1), .most = 10}};
  SubmitMany(*main_, "quick", 30);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 10; }));
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().shards.at(0).bands.size() == 1; }));
  EXPECT_EQ(worker->Status().shards.at(0).bands[0].claimed, 10u);
  config_.handlers["quick"].bands.clear();
  control_.config.Set(std::make_shared<const Config>(config_));
  EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 30; }));
}

TEST_F(LiveWorkerTest, WhatIsPausedIsClaimedByNobodyUntilItIsResumed) {
  control_.Pause({"handler:quick"});
  SubmitTo(*main_, "quick");
  release_ = true;
  SubmitTo(*main_, "slow");
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_most_ == 1; }));
  EXPECT_THAT(worker->Status().paused, ElementsAre("handler:quick"));
  EXPECT_EQ(quick_runs_, 0);
  control_.Pause({});
  EXPECT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));
}

TEST_F(LiveWorkerTest, APauseInTheShardItselfReachesAWorkerThatTheCoordinatorDoesNot) {
  ASSERT_TRUE(main_->OpenOperations()->SetPause("shard:main", "test", true));
  SubmitTo(*main_, "quick");
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return !worker->Status().paused.empty(); }));
  EXPECT_EQ(worker->Totals().claimed, 0u);
  ASSERT_TRUE(main_->OpenOperations()->SetPause("shard:main", "test", false));
  EXPECT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));
}

TEST_F(LiveWorkerTest, WhatIsQueuedGoesBackWhenItIsPausedAndWhatRunsFinishes) {
  config_.handlers["slow"].concurrency = 1;
  config_.handlers["slow"].queue = 50;
  SubmitMany(*main_, "slow", 20);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 20; }));
  control_.Pause({"cluster"});
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 1; }));
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 0; }));
  EXPECT_EQ(slow_most_, 1);
  EXPECT_EQ(CountIn(*main_, TaskState::Waiting), 19u);
}

TEST_F(LiveWorkerTest, UntilIdleLeavesWhatIsPausedAndSaysSo) {
  control_.Pause({"handler:quick"});
  SubmitTo(*main_, "quick");
  SubmitTo(*main_, "slow");
  release_ = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("quick is paused"));
  EXPECT_EQ(quick_runs_, 0);
  EXPECT_EQ(Succeeded(*main_), 1);
}

TEST_F(LiveWorkerTest, UntilIdleWaitsForWhatALimitHoldsBack) {
  config_.handlers["quick"].limit = LimitConfig{.rate = 20, .burst = 1};
  SubmitMany(*main_, "quick", 5);
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(quick_runs_, 5);
}

// Open from an hour ago to in an hour, or from in an hour to in two, by this host's clock.
HoursConfig HoursAround(bool open) {
  const auto minute = std::chrono::floor<std::chrono::minutes>(SystemClock().WallNow().time_since_epoch());
  const auto now = static_cast<std::uint32_t>(minute.count() % (24 * 60));
  const std::uint32_t from = now + (open ? 23 : 1) * 60;
  return {from % (24 * 60), (from + 120) % (24 * 60), "UTC"};
}

TEST_F(LiveWorkerTest, OutsideItsHoursNothingStartsAndUntilIdleSaysSo) {
  config_.handlers["quick"].hours = HoursAround(false);
  config_.handlers["slow"].hours = HoursAround(true);
  SubmitTo(*main_, "quick");
  SubmitTo(*main_, "slow");
  release_ = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("quick: outside its hours until "));
  EXPECT_EQ(quick_runs_, 0);
  EXPECT_EQ(Succeeded(*main_), 1);
  EXPECT_EQ(Get(*main_, 1).task.attempt, 0u);
}

TEST_F(LiveWorkerTest, WhenHoursEndWhatIsQueuedGoesBackAndWhatRunsFinishes) {
  config_.handlers["slow"].concurrency = 1;
  config_.handlers["slow"].queue = 50;
  SubmitMany(*main_, "slow", 20);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 20; }));
  config_.handlers["slow"].hours = HoursAround(false);
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 1; }));
  EXPECT_THAT(worker->Status().outside_hours, ElementsAre(HasSubstr("slow: outside its hours until ")));
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 0; }));
  EXPECT_EQ(slow_most_, 1);
  EXPECT_EQ(CountIn(*main_, TaskState::Waiting), 19u);
  EXPECT_EQ(Get(*main_, 20).task.failures, 0u);
}

TEST_F(LiveWorkerTest, ASliceThatMovesAwayGivesBackWhatWouldHaveToWait) {
  config_.handlers["slow"].concurrency = 1;
  config_.handlers["slow"].queue = 50;
  SubmitMany(*main_, "slow", 20);
  PutAllInSlice(*main_, 7);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 20; }));
  control_.slices.Set({{"tasks", false, {6, 8}}});
  EXPECT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 1; }));
  control_.slices.Set({{"tasks", false, {6, 7, 8}}});
  release_ = true;
  EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 20; }));
}

TEST_F(LiveWorkerTest, OfOneTableSomeSlicesMayBeOwnedForSomeTypesAlone) {
  plugins_.behaviours["other"] = plugins_.behaviours["quick"];
  for (int i = 0; i < 4; ++i) SubmitTo(*main_, i % 2 == 0 ? "quick" : "other");
  main_->Run("UPDATE tasks SET slice=iif(id <= 2, 1, 2)");
  control_.slices.Set({{"tasks", false, {1}, {{"quick"}}}, {"tasks", false, {2}, {{"other"}}}});
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(quick_runs_, 2);
  EXPECT_EQ(Get(*main_, 1).task.state, TaskState::Succeeded);
  EXPECT_EQ(Get(*main_, 2).task.state, TaskState::Waiting);
  EXPECT_EQ(Get(*main_, 3).task.state, TaskState::Waiting);
  EXPECT_EQ(Get(*main_, 4).task.state, TaskState::Succeeded);
}

TEST_F(LiveWorkerTest, TenThousandTasksThatNobodyHereCanRunHoldNobodyUp) {
  SubmitMany(*main_, "unknown", 10'000);
  SubmitMany(*main_, "quick", 10);
  PutAllInSlice(*main_, 3);
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 10; }));
  EXPECT_THAT(worker->Status().shards.at(0).unrunnable, ElementsAre("unknown"));
  EXPECT_THAT(worker->Status().unopened, IsEmpty()) << "there is nothing to open";
  EXPECT_EQ(worker->Totals().claimed, 10u);
}

TEST_F(LiveWorkerTest, WhatAHandlerSaysThatDoesNotOpenIsInTheLastStatus) {
  plugins_.refused = "";
  SubmitTo(*main_, "quick");
  const auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  const WorkerStatus last = worker->Status();
  EXPECT_THAT(last.shards.at(0).unrunnable, ElementsAre("quick"));
  EXPECT_THAT(last.unopened, ElementsAre(Pair("quick", "it refuses these options")));
}

TEST_F(LiveWorkerTest, ConcurrencyGrowsAndShrinksWithoutLosingWhatRuns) {
  config_.handlers["slow"].concurrency = 2;
  config_.handlers["slow"].queue = 50;
  SubmitMany(*main_, "slow", 20);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_now_ == 2; }));
  config_.handlers["slow"].concurrency = 5;
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_now_ == 5; }));
  config_.handlers["slow"].concurrency = 1;
  config_.handlers["slow"].options = R"({"new":true})";
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return plugins_.opened == 2; }));
  release_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 20; }));
  EXPECT_EQ(worker->Totals().returned, 0u);
  release_ = false;
  slow_most_ = 0;
  SubmitMany(*main_, "slow", 5);
  ASSERT_TRUE(Eventually(*worker, [&] { return slow_now_ == 1 && worker->Totals().queued == 4; }));
  EXPECT_EQ(slow_most_, 1);
  release_ = true;
  EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 25; }));
}

TEST_F(LiveWorkerTest, AHandlerIsOpenedAnewForNewOptionsAndKeepsTheOldOnesWhereItRefuses) {
  config_.handlers["quick"].options = R"({"a":1})";
  auto worker = Start(false);
  ASSERT_EQ(plugins_.opened, 1);
  config_.handlers["quick"].options = R"({"a":2})";
  config_.handlers["quick"].timeout = seconds(7);
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return plugins_.opened == 2; }));
  EXPECT_THAT(worker->Status().refusals, IsEmpty());

  config_.handlers["quick"].options = R"({"a":"refused"})";
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return !worker->Status().refusals.empty(); }));
  EXPECT_THAT(worker->Status().refusals, ElementsAre(HasSubstr("handlers.quick: it refuses these options")));
  SubmitTo(*main_, "quick");
  EXPECT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));

  config_.handlers["quick"].options = R"({"a":2})";
  control_.config.Set(std::make_shared<const Config>(config_));
  EXPECT_TRUE(Eventually(*worker, [&] { return worker->Status().refusals.empty(); }));
  EXPECT_EQ(plugins_.opened, 2);
}

TEST_F(LiveWorkerTest, AHandlerThatIsConfiguredAndNowhereIsRefusedAndTheOthersGoOn) {
  auto worker = Start(false);
  config_.handlers["nowhere"];
  config_.handlers["quick"].concurrency = 2;
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return !worker->Status().refusals.empty(); }));
  EXPECT_THAT(worker->Status().refusals, Contains(HasSubstr("handlers.nowhere: no handler nowhere")));
  SubmitTo(*main_, "quick");
  EXPECT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));
}

TEST_F(LiveWorkerTest, AWorkerThatIsOneOfSeveralLeavesTypesThatItHasNoPluginForToOthers) {
  partial_ = true;
  config_.handlers["nowhere"];
  auto worker = Start(false);
  config_.handlers["elsewhere"];
  config_.handlers["quick"].options = R"({"new":true})";
  control_.config.Set(std::make_shared<const Config>(config_));
  ASSERT_TRUE(Eventually(*worker, [&] { return plugins_.opened == 1; }));
  SubmitTo(*main_, "quick");
  EXPECT_TRUE(Eventually(*worker, [&] { return quick_runs_ == 1; }));
  EXPECT_THAT(worker->Status().refusals, IsEmpty());
}

TEST_F(LiveWorkerTest, OfABatchThatOverranOnlyTheOneThatOverrunsAloneIsCharged) {
  plugins_.batch = 10;
  plugins_.behaviours["batch"] = [this](std::span<const Task> tasks, auto&) {
    const bool bad = HasBad(tasks);
    while (bad && !release_) std::this_thread::yield();
    return std::vector<Outcome>(tasks.size());
  };
  std::unique_ptr<Worker> worker;
  ASSERT_NO_FATAL_FAILURE(RunBadAmongFive(worker));
  release_ = true;
  EXPECT_TRUE(Eventually(*worker, [&] { return worker->Totals().running == 0; }));
}

TEST_F(LiveWorkerTest, OfABatchThatComesBackLateOnlyTheOneThatIsLateAloneIsCharged) {
  plugins_.batch = 10;
  plugins_.behaviours["batch"] = [](std::span<const Task> tasks, auto& context) {
    const bool bad = HasBad(tasks);
    while (bad && !context.ShouldStop()) std::this_thread::yield();
    return std::vector<Outcome>(tasks.size(), Outcome{.kind = bad ? OutcomeKind::Retry : OutcomeKind::Done});
  };
  std::unique_ptr<Worker> worker;
  ASSERT_NO_FATAL_FAILURE(RunBadAmongFive(worker));
}

TEST_F(LiveWorkerTest, WhatACallThatWasGivenUpSavesIsNotThatOfTheRunAfterIt) {
  plugins_.batch = 2;
  std::atomic<bool> saved{false};
  std::atomic<bool> saved_late{false};
  plugins_.behaviours["batch"] = [&](std::span<const Task> tasks, auto& context) {
    if (tasks.size() == 2) {
      while (!saved && !release_) std::this_thread::yield();
      EXPECT_TRUE(context.SaveProgress(0, "old"));
      saved_late = true;
    } else if (tasks[0].biz_key == "first") {
      EXPECT_TRUE(context.SaveProgress(0, "new"));
      saved = true;
      while (!saved_late && !release_) std::this_thread::yield();
      return std::vector<Outcome>{{.kind = OutcomeKind::Retry}};
    }
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["batch"].concurrency = 1;
  config_.handlers["batch"].timeout = milliseconds(20);
  const auto first = SubmitTo(*main_, "batch", "first");
  SubmitTo(*main_, "batch", "second");
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return Get(*main_, first).task.failures == 1; }));
  EXPECT_EQ(Get(*main_, first).task.progress, "new");
  release_ = true;
}

TEST_F(LiveWorkerTest, AWorkerThatIsMarkedDeadDropsWhatItHadAndBeginsANewLife) {
  config_.engine.lease = milliseconds(300);
  config_.handlers["slow"].concurrency = 1;
  config_.handlers["slow"].queue = 50;
  SubmitMany(*main_, "slow", 20);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) == 20; }));
  const std::string first = worker->Status().shards.at(0).incarnation;
  ASSERT_TRUE(*main_->OpenIncarnations()->Retire(first));
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Totals().rescued == 20; }));
  EXPECT_NE(worker->Status().shards.at(0).incarnation, first);
  release_ = true;
  EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 20; }));
  EXPECT_TRUE(Eventually(*worker, [&] { return worker->Totals().refused == 1; }))
      << "the one that ran when its life ended";
}

TEST_F(LiveWorkerTest, OfTheLargestTasksNoMoreAreClaimedThanMemoryAllows) {
  std::atomic<std::size_t> most{0};
  plugins_.behaviours["large"] = [&](auto tasks, auto&) {
    while (!release_) std::this_thread::yield();
    const std::size_t now = CountIn(*main_, TaskState::Running);
    for (std::size_t before = most; now > before && !most.compare_exchange_weak(before, now);) continue;
    return std::vector<Outcome>(tasks.size());
  };
  config_.handlers["large"].queue = 999;
  SubmitMany(*main_, "large", 999, R"({"x":")" + std::string(kMaxParams - 8, 'x') + R"("})");
  auto worker = Start(false);
  constexpr std::size_t kMost = MemoryBudget::kInAll / MemoryBudget::Of(kMaxParams);
  EXPECT_TRUE(Eventually(*worker, [&] { return CountIn(*main_, TaskState::Running) > kMost * 9 / 10; }));
  release_ = true;
  EXPECT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 999; }));
  EXPECT_LE(most, kMost);
}

TEST_F(LiveWorkerTest, ItTellsHowEachShardIs) {
  SubmitTo(*main_, "quick");
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return Succeeded(*main_) == 1; }));
  const WorkerStatus status = worker->Status();
  EXPECT_EQ(status.worker, "w");
  EXPECT_EQ(status.shards.at(0).shard, "main");
  EXPECT_TRUE(status.shards.at(0).reachable);
  EXPECT_THAT(status.shards.at(0).incarnation, HasSubstr("w."));
  EXPECT_GE(status.shards.at(0).poll, milliseconds(10));
}

// Though their group is scanned from its beginning but once: they are remembered.
TEST_F(LiveWorkerTest, SuspectsOfOneSliceRunAloneAndOneAfterAnother) {
  config_.engine.rewind = std::chrono::hours(1);
  std::atomic<int> runs{0};
  std::atomic<int> together{0};
  plugins_.behaviours["deadly"] = [&](auto tasks, auto&) {
    if (slow_now_.fetch_add(1) > 0) ++together;
    runs += static_cast<int>(tasks.size());
    --slow_now_;
    return std::vector<Outcome>(tasks.size());
  };
  SubmitMany(*main_, "deadly", 400);
  PutAllInSlice(*main_, 3);
  main_->Run("UPDATE tasks SET crashes=2");
  auto worker = Start(false);
  EXPECT_TRUE(Eventually(*worker, [&] { return runs == 400; })) << runs;
  EXPECT_EQ(together, 0);
}

TEST_F(LiveWorkerTest, ARowWhoseClaimTheDatabaseRefusesIsSplitOutOfItsBatch) {
  SubmitMany(*main_, "quick", 500);
  main_->Run(
      "CREATE TRIGGER refusal BEFORE UPDATE ON tasks WHEN NEW.state=2 AND NEW.id%100=7 "
      "BEGIN SELECT raise(ABORT, 'a trigger refuses it'); END");
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(quick_runs_, 495);
  const auto failed = Get(*main_, 7);
  EXPECT_EQ(failed.task.state, TaskState::Failed);
  EXPECT_THAT(failed.task.last_error, HasSubstr("a trigger refuses it"));
}

}  // namespace
}  // namespace millrace::engine
