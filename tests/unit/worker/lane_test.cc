#include "framework/worker/lane.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>

#include "framework/testing/manual_clock.h"
#include "telling_host.h"
#include "tests/support/no_more_threads.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::SizeIs;

// Its end, COMMIT or ROLLBACK, hangs until the test releases it.
class HangingEnd final : public TaskTransaction {
 public:
  HangingEnd(std::shared_future<void> release, std::atomic<int>& hanging)
      : release_(std::move(release)), hanging_(hanging) {}
  Result<SqlResult> Execute(std::string_view, std::span<const SqlValue>) override {
    state_ = TransactionState::Open;
    return SqlResult{};
  }
  Result<SubmitReport> Submit(const TableName&, std::span<const NewTask>) override { return SubmitReport{}; }
  TransactionState state() const override { return state_; }
  Status Mark() override { return {}; }
  Status Undo() override { return {}; }
  CommitReport Commit(const std::string&, std::span<const Settlement>) override {
    Rollback();
    return {};
  }
  void Rollback() override {
    if (std::exchange(state_, TransactionState::Idle) == TransactionState::Idle) return;
    ++hanging_;
    release_.wait();
  }

 private:
  const std::shared_future<void> release_;
  std::atomic<int>& hanging_;
  TransactionState state_ = TransactionState::Idle;
};

// Blocks on tasks that are called "hang" until the test releases them; sends SQL for those called "sql", and
// for those called "undo", which fail.
class HangingHandler final : public HandlerInstance {
 public:
  HangingHandler(std::shared_future<void> release, std::atomic<int>& hanging)
      : release_(std::move(release)), hanging_(hanging) {}
  std::uint32_t MaxBatch() const override { return 1; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks,
                           CallContext& context) override {
    const bool undo = tasks[0]->biz_key == "undo";
    if (undo || tasks[0]->biz_key == "sql") (void)context.Execute("UPDATE t SET a=1", {});
    if (tasks[0]->biz_key == "hang") {
      ++hanging_;
      release_.wait();
    }
    if (undo) return std::vector<Outcome>(tasks.size(), FailedOnce("undo", "not today"));
    return std::vector<Outcome>(tasks.size());
  }

 private:
  const std::shared_future<void> release_;
  std::atomic<int>& hanging_;
};

class LaneTest : public ::testing::Test {
 protected:
  // Sooner than a thread looks by itself, a second after it fell asleep.
  static constexpr Micros kSoon = milliseconds(500);

  LaneTest() {
    char pattern[] = "/tmp/lane_XXXXXX";
    folder_ = mkdtemp(pattern);
    recorder_ = *FlightRecorder::Create(folder_, "w.1");
    lane_ = std::make_unique<Lane>(LaneParts{clock_, *recorder_}, "t");
    lane_->Follow("t", Setup(1));
  }
  ~LaneTest() override {
    if (!released_) release_.set_value();
    former_.clear();
    lane_.reset();
    recorder_.reset();
    std::filesystem::remove_all(folder_);
  }

  LaneSetup Setup(std::uint32_t threads) {
    LaneSetup setup;
    setup.handler = std::make_shared<HangingHandler>(released_future_, hanging_);
    setup.threads = threads;
    return setup;
  }
  std::shared_ptr<Lease> NewLife() { return std::make_shared<Lease>("w.1", seconds(10), clock_.Now()); }
  void Push(const std::shared_ptr<TellingHost>& host, const std::shared_ptr<Lease>& life, std::uint64_t id,
            const std::string& key = {}, const std::string& type = "t") {
    Push({Make(host, life, id, key, type)});
  }
  void Push(std::vector<AttemptPtr> attempts) {
    const std::string type = attempts.front()->task.handler;
    ASSERT_TRUE(lane_->Push(type, attempts));
  }
  static AttemptPtr Make(const std::shared_ptr<TellingHost>& host, const std::shared_ptr<Lease>& life,
                         std::uint64_t id, const std::string& key = {}, const std::string& type = "t",
                         const TableName& table = "tasks") {
    Task task;
    task.key = {table, id};
    task.handler = type;
    task.biz_key = key;
    return std::make_shared<Attempt>(host, "main", task, life, false);
  }
  template <class Condition>
  static bool Eventually(Condition condition, Micros limit = seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return condition();
  }
  void WaitUntilHanging(int threads = 1) {
    ASSERT_TRUE(Eventually([&] { return hanging_ >= threads; }));
    ASSERT_EQ(hanging_, threads);
  }
  // Its one thread has a task, and as many wait as may.
  void FillUp(WhenFull when_full, const std::shared_ptr<Lease>& life) {
    LaneSetup setup = Setup(1);
    setup.config.when_full = when_full;
    setup.config.queue = 2;
    lane_->Follow("t", std::move(setup));
    Push(well_, life, 1, "hang");
    WaitUntilHanging();
    Push(well_, life, 2);
    Push(well_, life, 3);
  }
  void ExpectAStandInFor(const std::string& key) {
    const auto life = NewLife();
    well_->open = [this] { return std::make_unique<HangingEnd>(released_future_, hanging_); };
    Push(well_, life, 1, key);
    WaitUntilHanging();
    Push(well_, life, 2);
    lane_->Watch(clock_.Now());
    EXPECT_EQ(lane_->Queued(), 1U);
    clock_.Advance(seconds(1));
    lane_->Watch(clock_.Now());
    EXPECT_EQ(well_->NextLanded(), 2U);
  }
  LaneRoom Room() { return lane_->Room("t", *well_, kLeastUrgent); }
  void Release() {
    released_ = true;
    release_.set_value();
  }

  ManualClock clock_;
  std::promise<void> release_;
  const std::shared_future<void> released_future_ = release_.get_future().share();
  bool released_ = false;
  std::atomic<int> hanging_{0};
  std::string folder_;
  std::unique_ptr<FlightRecorder> recorder_;
  std::unique_ptr<Lane> lane_;
  std::vector<std::unique_ptr<Lane>> former_;  // what hangs there ends once the test releases it
  const std::shared_ptr<TellingHost> dead_ = std::make_shared<TellingHost>(clock_);
  const std::shared_ptr<TellingHost> well_ = std::make_shared<TellingHost>(clock_);
};

TEST_F(LaneTest, AThreadThatHangsInAShardWhoseBeatIsLateHasAStandIn) {
  const auto late = NewLife();
  Push(dead_, late, 1, "hang");
  WaitUntilHanging();
  const auto beating = NewLife();
  Push(well_, beating, 2);
  lane_->Watch(clock_.Now());
  EXPECT_EQ(lane_->Queued(), 1u);
  clock_.Advance(seconds(4));
  beating->Renewed(clock_.Now());
  lane_->Watch(clock_.Now());
  EXPECT_EQ(well_->NextLanded(), 2u);
  Release();
  EXPECT_EQ(dead_->NextLanded(), 1u);
}

// Each thread that wakes for nothing goes to sleep again, which the system counts.
TEST_F(LaneTest, ATaskThatComesAloneWakesOneThreadOfMany) {
  constexpr int kThreads = 32;
  constexpr std::uint64_t kTasks = 100;
  lane_->Follow("t", Setup(kThreads));
  const auto life = NewLife();
  const auto sleeps = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  const long before = sleeps();
  for (std::uint64_t id = 1; id <= kTasks; ++id) {
    Push(well_, life, id);
    ASSERT_EQ(well_->NextLanded(), id);
  }
  EXPECT_LT(sleeps() - before, static_cast<long>(kTasks) * kThreads / 2);
}

// As a plugin's own code does, when it is asked after a failure.
class HangingRetry final : public HandlerInstance {
 public:
  HangingRetry(std::shared_future<void> release, std::atomic<int>& hanging)
      : release_(std::move(release)), hanging_(hanging) {
    defaults_.next_retry = true;
  }
  std::uint32_t MaxBatch() const override { return 1; }
  const CodeDefaults& Defaults() const override { return defaults_; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks, CallContext&) override {
    std::vector<Outcome> outcomes(tasks.size());
    for (Outcome& outcome : outcomes) outcome.kind = OutcomeKind::Retry;
    return outcomes;
  }
  Outcome NextRetry(const std::string&, const Task&, Outcome failed, std::uint32_t, Micros) override {
    ++hanging_;
    release_.wait();
    return failed;
  }

 private:
  const std::shared_future<void> release_;
  std::atomic<int>& hanging_;
  CodeDefaults defaults_;
};

TEST_F(LaneTest, AHandlerThatHangsInItsNextRetryIsGivenUpAsWell) {
  LaneSetup setup;
  setup.handler = std::make_shared<HangingRetry>(released_future_, hanging_);
  setup.config = Over(setup.handler->Defaults(), {});
  setup.config.timeout = seconds(1);
  setup.threads = 1;
  lane_->Follow("t", std::move(setup));
  Push(well_, NewLife(), 1);
  WaitUntilHanging();
  clock_.Advance(seconds(3));  // the limit and its grace
  lane_->Watch(clock_.Now());
  EXPECT_EQ(well_->NextLanded(), 1u);
  EXPECT_EQ(well_->last().error_class, "timeout");
  EXPECT_EQ(lane_->Lost(), 1u);
  Release();
  EXPECT_TRUE(Eventually([&] { return lane_->Lost() == 0; })) << "it came home";
}

TEST_F(LaneTest, MoreThreadsStartAtOnce) {
  Push(well_, NewLife(), 1, "hang");
  WaitUntilHanging();
  Push(well_, NewLife(), 2);
  lane_->Follow("t", Setup(2));
  EXPECT_EQ(well_->NextLanded(), 2u);
}

TEST_F(LaneTest, WhatIsWithdrawnIsTakenFromTheQueueAndWhatMovedOnlyWhereItWouldWait) {
  Push(well_, NewLife(), 1, "hang");
  WaitUntilHanging();
  for (std::uint64_t id = 2; id <= 4; ++id) Push(well_, NewLife(), id);
  EXPECT_THAT(lane_->TakeUnwanted(milliseconds(100)), SizeIs(0));
  well_->decision = StartDecision::Moved;
  EXPECT_THAT(lane_->TakeUnwanted(std::chrono::hours(2)), SizeIs(0));
  EXPECT_THAT(lane_->TakeUnwanted(milliseconds(100)), SizeIs(3)) << "nothing is known of the lane's pace";
  Push(well_, NewLife(), 5);
  well_->decision = StartDecision::Withdrawn;
  EXPECT_THAT(lane_->TakeUnwanted(std::chrono::hours(2)), SizeIs(1));
}

TEST_F(LaneTest, ALaneThatGetsNoMoreThreadsGoesOnWithThoseItHasAndTriesAgain) {
  {
    const NoMoreThreads refused;
    lane_->Follow("t", Setup(3));
    EXPECT_FALSE(lane_->Threads());
    lane_->Watch(clock_.Now());
    Push(well_, NewLife(), 1);
    EXPECT_EQ(well_->NextLanded(), 1U);
  }
  EXPECT_FALSE(lane_->Threads());
  lane_->Watch(clock_.Now());
  EXPECT_TRUE(lane_->Threads());
  Push(well_, NewLife(), 2, "hang");
  WaitUntilHanging();
  Push(well_, NewLife(), 3);
  EXPECT_EQ(well_->NextLanded(), 3U) << "beside one that hangs";
}

TEST_F(LaneTest, WhatAThreadTookBesideATaskThatTurnsOutToBeLongIsLeftToOthers) {
  lane_->Follow("t", Setup(2));
  const auto life = NewLife();
  Push(well_, life, 1);
  EXPECT_EQ(well_->NextLanded(), 1U);  // the lane's tasks are known to be short
  std::vector<AttemptPtr> many;
  for (std::uint64_t id = 2; id <= 101; ++id) many.push_back(Make(well_, life, id, id == 2 ? "hang" : ""));
  Push(std::move(many));
  WaitUntilHanging();
  int ended = 0;
  for (; ended < 75; ++ended) ASSERT_NE(well_->NextLanded(), 0U) << "the thread took a quarter of them";
  clock_.Advance(milliseconds(150));
  lane_->Watch(clock_.Now());
  for (; ended < 99; ++ended) ASSERT_NE(well_->NextLanded(), 0U) << ended << " of 99 have ended";
}

TEST_F(LaneTest, AThreadWhoseCommitHangsHasAStandIn) { ExpectAStandInFor("sql"); }

TEST_F(LaneTest, AThreadWhoseRollbackHangsHasAStandIn) { ExpectAStandInFor("undo"); }

// Whether it takes effect is for it to say alone.
TEST_F(LaneTest, ACommitUnderWayIsGivenUpNeitherAfterItsTimeNorAtAStop) {
  LaneSetup setup = Setup(1);
  setup.config.timeout = seconds(1);
  lane_->Follow("t", std::move(setup));
  well_->open = [this] { return std::make_unique<HangingEnd>(released_future_, hanging_); };
  Push(well_, NewLife(), 1, "sql");
  WaitUntilHanging();
  clock_.Advance(std::chrono::minutes(1));
  lane_->Watch(clock_.Now());
  EXPECT_EQ(lane_->Lost(), 0U);
  EXPECT_EQ(lane_->AbandonRunning("the worker was stopped"), 0U);
  Release();
  Push(well_, NewLife(), 2);
  EXPECT_EQ(well_->NextLanded(), 2U) << "the first has ended with its COMMIT, and by nobody else";
}

TEST_F(LaneTest, HowLongItIsBusyIsAsLongAgainAsWhatRunsHasTakenWithinItsLimit) {
  LaneSetup setup = Setup(1);
  setup.config.timeout = std::chrono::hours(1);
  lane_->Follow("t", std::move(setup));
  EXPECT_EQ(lane_->BusyFor(clock_.Now()), Micros(0));
  Push(well_, NewLife(), 1, "hang");
  WaitUntilHanging();
  clock_.Advance(std::chrono::minutes(10));
  EXPECT_EQ(lane_->BusyFor(clock_.Now()), std::chrono::minutes(10));
  clock_.Advance(std::chrono::minutes(45));
  EXPECT_EQ(lane_->BusyFor(clock_.Now()), std::chrono::minutes(5));
  Release();
  EXPECT_EQ(well_->NextLanded(), 1U);
  EXPECT_TRUE(Eventually([&] { return lane_->BusyFor(clock_.Now()) == Micros(0); }));
}

TEST_F(LaneTest, WhatHasExpiredInItsQueueIsSkippedAndItsHandlerNeverRuns) {
  const auto host = std::make_shared<TellingHost>(clock_);
  host->store_time = WallTime(std::chrono::hours(1000));
  const auto life = NewLife();
  Task task;
  task.key = {"tasks", 1};
  task.handler = "t";
  task.biz_key = "hang";
  task.expires_at = *host->store_time;
  const auto attempt = std::make_shared<Attempt>(host, "main", task, life, false);
  Push({attempt});
  ASSERT_EQ(host->NextLanded(), 1U);
  EXPECT_EQ(hanging_, 0);
  EXPECT_EQ(host->last().to, Settlement::To::Cancelled);
  EXPECT_FALSE(attempt->started.load());
  EXPECT_TRUE(host->last().text.starts_with("expired at ")) << host->last().text;
  task.key = {"tasks", 2};
  task.biz_key = "";
  task.expires_at = *host->store_time + Micros(1);
  Push({std::make_shared<Attempt>(host, "main", task, life, false)});
  ASSERT_EQ(host->NextLanded(), 2U);
  EXPECT_EQ(host->last().to, Settlement::To::Succeeded) << "it has begun in time";
}

TEST_F(LaneTest, ThreadsStartWhenWorkQueuesAndEndOnceTheyWereNotNeededForTheKeepAlive) {
  LaneSetup setup = Setup(4);
  setup.config.min_threads = 1;
  setup.config.keep_alive = seconds(60);
  lane_->Follow("t", std::move(setup));
  EXPECT_EQ(lane_->CurrentLoad().threads, 1U);
  const auto life = NewLife();
  for (std::uint64_t id = 1; id <= 3; ++id) Push(well_, life, id, "hang");
  WaitUntilHanging(3);
  EXPECT_EQ(lane_->CurrentLoad().threads, 3U);
  Release();
  for (int i = 0; i < 3; ++i) ASSERT_NE(well_->NextLanded(), 0U);
  ASSERT_TRUE(Eventually([&] { return lane_->Running() == 0; }));
  clock_.Advance(seconds(59));
  lane_->Watch(clock_.Now());
  EXPECT_EQ(lane_->CurrentLoad().threads, 3U);
  clock_.Advance(seconds(1));
  lane_->Watch(clock_.Now());
  EXPECT_TRUE(Eventually([&] { return lane_->CurrentLoad().threads == 1; }));
  Push(well_, NewLife(), 4);
  EXPECT_EQ(well_->NextLanded(), 4U);
}

TEST_F(LaneTest, ACallerRunsWhatQueuesWhileTheLaneIsFull) {
  FillUp(WhenFull::Caller, NewLife());
  EXPECT_EQ(lane_->Running(), 1U);
  EXPECT_EQ(Room().tasks, 0U);
  EXPECT_EQ(well_->NextLanded(), 2U);
  EXPECT_EQ(lane_->Queued(), 1U) << "there is room again: it waits for the lane's own thread";
  EXPECT_GT(Room().tasks, 0U);
  Release();
  EXPECT_NE(well_->NextLanded(), 0U);
  EXPECT_NE(well_->NextLanded(), 0U);
}

TEST_F(LaneTest, WhatAFullLaneWasGivenGoesBackUncountedAndLater) {
  const auto life = NewLife();
  FillUp(WhenFull::GiveBack, life);
  EXPECT_EQ(Room().tasks, 1U);
  Push(well_, life, 4);
  EXPECT_EQ(well_->NextLanded(), 4U);
  EXPECT_EQ(well_->last().to, Settlement::To::Waiting);
  EXPECT_FALSE(well_->last().failed_attempt);
  EXPECT_EQ(well_->last().delay, seconds(1));
  EXPECT_EQ(Room().tasks, 0U) << "once a second";
  EXPECT_EQ(lane_->CurrentLoad().full.size(), 1U);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Room().tasks, 1U);
}

TEST_F(LaneTest, InASharedLaneATypeHasNoMoreThreadsThanItsOwn) {
  lane_ = std::make_unique<Lane>(LaneParts{clock_, *recorder_}, "shared",
                                 LaneRules{{QueuesConfig::By::One}, Micros(0), std::nullopt});
  lane_->Follow("t", Setup(2));
  lane_->Follow("quick", Setup(1));
  const auto life = NewLife();
  for (std::uint64_t id = 1; id <= 5; ++id) Push(well_, life, id, "hang");
  WaitUntilHanging(2);
  for (std::uint64_t id = 10; id < 15; ++id) {
    Push(well_, life, id, "", "quick");
    EXPECT_EQ(well_->NextLanded(), id);
  }
  EXPECT_EQ(lane_->Queued(), 3U);
  EXPECT_EQ(hanging_, 2);
}

TEST_F(LaneTest, InASharedLaneOfFewThreadsNoTypeHasAllOfThem) {
  lane_ = std::make_unique<Lane>(LaneParts{clock_, *recorder_}, "shared",
                                 LaneRules{{QueuesConfig::By::One}, Micros(0), 2});
  lane_->Follow("t", Setup(2));
  lane_->Follow("quick", Setup(2));
  const auto life = NewLife();
  for (std::uint64_t id = 1; id <= 5; ++id) Push(well_, life, id, "hang");
  WaitUntilHanging(1);
  for (std::uint64_t id = 10; id < 13; ++id) {
    Push(well_, life, id, "", "quick");
    ASSERT_EQ(well_->NextLanded(), id);
  }
  EXPECT_EQ(hanging_, 1);
  EXPECT_EQ(lane_->CurrentLoad().threads, 2U);
}

// Waits where its task's table says so, until that is opened.
class GatedTables final : public HandlerInstance {
 public:
  std::uint32_t MaxBatch() const override { return 1; }
  std::vector<Outcome> Run(const std::string&, std::span<const Task* const> tasks, CallContext&) override {
    const bool first = tasks[0]->key.table == TableName("first");
    ++(first ? of_first : of_second);
    (first ? first_opens : second_opens).wait_for(seconds(30));
    return std::vector<Outcome>(tasks.size());
  }

  std::promise<void> open_first, open_second;
  const std::shared_future<void> first_opens = open_first.get_future().share();
  const std::shared_future<void> second_opens = open_second.get_future().share();
  std::atomic<int> of_first{0}, of_second{0};
};

TEST_F(LaneTest, AQueueWhoseTurnItIsHasAllThreadsAtOnce) {
  const auto life = NewLife();
  const auto task_of = [&](const TableName& table, std::uint64_t id) {
    return Make(well_, life, id, {}, "t", table);
  };
  bool at_once = false;
  for (int round = 0; round < 3 && !at_once; ++round) {  // the machine may stand still for a moment
    const auto tables = std::make_shared<GatedTables>();
    lane_ = std::make_unique<Lane>(LaneParts{clock_, *recorder_}, "turns",
                                   LaneRules{{.by = QueuesConfig::By::Table, .most = 1}, Micros(0), {}});
    LaneSetup setup = Setup(4);
    setup.handler = tables;
    lane_->Follow("t", std::move(setup));
    Push({task_of("first", 1)});
    ASSERT_TRUE(Eventually([&] { return tables->of_first == 1; }));
    Push({task_of("second", 2), task_of("second", 3), task_of("second", 4), task_of("second", 5)});
    std::this_thread::sleep_for(milliseconds(50));  // all threads have seen that these are not for them
    tables->open_first.set_value();
    at_once = Eventually([&] { return tables->of_second == 4; }, kSoon);
    tables->open_second.set_value();
    ASSERT_TRUE(Eventually([&] { return lane_->Queued() + lane_->Running() == 0; }));
  }
  EXPECT_TRUE(at_once);
}

TEST_F(LaneTest, AnIdleThreadHasThePlaceOfOneThatIsGivenUpAtOnce) {
  const auto life = NewLife();
  bool at_once = false;
  for (int round = 0; round < 3 && !at_once; ++round) {
    former_.push_back(std::move(lane_));
    lane_ = std::make_unique<Lane>(LaneParts{clock_, *recorder_}, "shared",
                                   LaneRules{{QueuesConfig::By::One}, Micros(0), 3});
    for (const char* type : {"t", "other"}) {
      LaneSetup setup = Setup(2);
      setup.config.min_threads = 1;
      setup.config.keep_alive = milliseconds(1);
      setup.config.timeout = seconds(10);
      lane_->Follow(type, std::move(setup));
    }
    const int hanging = hanging_;
    Push(well_, life, 1, "hang");
    ASSERT_TRUE(Eventually([&] { return hanging_ == hanging + 1; }));
    clock_.Advance(seconds(5));
    Push({Make(well_, life, 2, "hang"), Make(well_, life, 3, "hang")});
    ASSERT_TRUE(Eventually([&] { return hanging_ == hanging + 2; }));
    std::this_thread::sleep_for(milliseconds(50));  // the third has seen that it is not to run the other
    ASSERT_EQ(lane_->CurrentLoad().threads, 3U);
    clock_.Advance(seconds(7));
    life->Renewed(clock_.Now());
    lane_->Watch(clock_.Now());
    ASSERT_EQ(lane_->Lost(), 1U);
    at_once = Eventually([&] { return hanging_ == hanging + 3; }, kSoon);
    ASSERT_TRUE(Eventually([&] { return hanging_ == hanging + 3; }));
  }
  EXPECT_TRUE(at_once);
  Release();
  former_.push_back(std::move(lane_));
  for (const auto& lane : former_) EXPECT_TRUE(Eventually([&] { return lane->Lost() == 0; }));
}

TEST_F(LaneTest, TasksAgeByTheClockOfTheirShard) {
  lane_->Follow(LaneRules{{}, seconds(300), std::nullopt});
  const WallTime due = clock_.WallNow() - seconds(7200);  // the host's clock is two hours ahead
  well_->store_time = due;
  const auto life = NewLife();
  Push(well_, life, 1, "hang");
  WaitUntilHanging();
  for (std::uint64_t id = 2; id <= 3; ++id) {
    Task task;
    task.key = {"tasks", id};
    task.handler = "t";
    task.priority = id == 2 ? 9 : 8;
    task.run_at = due - seconds(id == 2 ? 60 : 0);
    Push({std::make_shared<Attempt>(well_, "main", task, life, false)});
  }
  Release();
  EXPECT_EQ(well_->NextLanded(), 1U);
  EXPECT_EQ(well_->NextLanded(), 3U) << "neither has waited for a step";
}

TEST_F(LaneTest, AnUrgentTaskStartsBeforeTheIdleOnesThatWereQueuedBeforeIt) {
  const auto life = NewLife();
  Push(well_, life, 1, "hang");
  WaitUntilHanging();
  for (std::uint64_t id = 2; id <= 6; ++id) Push(well_, life, id);
  Task urgent;
  urgent.key = {"tasks", 7};
  urgent.handler = "t";
  urgent.priority = 0;
  Push({std::make_shared<Attempt>(well_, "main", urgent, life, false)});
  Release();
  EXPECT_EQ(well_->NextLanded(), 1U);
  EXPECT_EQ(well_->NextLanded(), 7U);
}

}  // namespace
}  // namespace millrace::engine
