#include <algorithm>
#include <atomic>

#include "framework/testing/scratch_store.h"
#include "framework/threads/signal.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How many run at once, and when each began.
class Calls {
 public:
  void Begin() {
    MutexLock lock(mutex_);
    begun_.push_back(BootClock::now());
    most_ = std::max(most_, ++running_);
  }
  void End() {
    MutexLock lock(mutex_);
    --running_;
  }
  int Most() const {
    MutexLock lock(mutex_);
    return most_;
  }
  std::vector<BootTime> Begun() const {
    MutexLock lock(mutex_);
    return begun_;
  }

 private:
  mutable Mutex mutex_;
  int running_ MILLRACE_GUARDED_BY(mutex_) = 0;
  int most_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::vector<BootTime> begun_ MILLRACE_GUARDED_BY(mutex_);
};

class LimitedWorkerTest : public WorkerFixture {
 protected:
  LimitedWorkerTest() {
    control_.shards.Set({{"main", store_}});
    plugins_.behaviours["a"] = Takes(milliseconds(1));
    config_.handlers["a"];
  }
  Behaviour Takes(Micros time) {
    return [this, time](std::span<const Task> tasks, CallContext&) {
      calls_.Begin();
      Signal().WaitFor(time);
      calls_.End();
      return std::vector<Outcome>(tasks.size(), Make(OutcomeKind::Done));
    };
  }
  std::uint64_t Succeeded() const { return store_->OpenOperations()->Totals()->front().succeeded; }

  const std::shared_ptr<Store> store_ = std::make_shared<ScratchStore>(clock_);
  Calls calls_;
};

TEST_F(LimitedWorkerTest, StartsNoFasterThanTheRateAndIsIdleWhenAllHaveRun) {
  config_.handlers["a"].limit = LimitConfig{.rate = 100, .burst = 5};
  SubmitMany(*store_, "a", 60);
  const auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  const std::vector<BootTime> begun = calls_.Begun();
  ASSERT_EQ(begun.size(), 60u);
  EXPECT_GE(begun.back() - begun.front(), milliseconds(530));  // 55 of them, at ten milliseconds each
}

TEST_F(LimitedWorkerTest, RunsNoMoreAtOnceThanThereArePlaces) {
  config_.handlers["a"].limit = LimitConfig{.concurrency = 2};
  config_.handlers["a"].concurrency = 6;
  plugins_.behaviours["a"] = Takes(milliseconds(3));
  SubmitMany(*store_, "a", 60);
  const auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(calls_.Begun().size(), 60u);
  EXPECT_EQ(calls_.Most(), 2);
}

TEST_F(LimitedWorkerTest, HasAsManyPlacesAsTheCommandLineGivesItThreads) {
  concurrency_ = 8;
  config_.handlers["a"].limit = LimitConfig{.concurrency = 8};
  plugins_.behaviours["a"] = Takes(milliseconds(50));
  SubmitMany(*store_, "a", 80);
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_GT(calls_.Most(), 4) << "the configuration's default";
}

TEST_F(LimitedWorkerTest, HasAsManyPlacesAsTheHandlersCodeGivesItThreads) {
  plugins_.defaults.concurrency = 8;
  config_.handlers["a"].limit = LimitConfig{.concurrency = 8};
  plugins_.behaviours["a"] = Takes(milliseconds(50));
  SubmitMany(*store_, "a", 80);
  EXPECT_EQ(Start(true)->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_GT(calls_.Most(), 4);
}

TEST_F(LimitedWorkerTest, ABatchIsAsManyStartsAsItHasTasks) {
  config_.handlers["a"].limit = LimitConfig{.rate = 50, .burst = 3};
  plugins_.batch = 100;
  std::atomic<std::size_t> largest{0};
  plugins_.behaviours["a"] = [&](std::span<const Task> tasks, CallContext&) {
    largest = std::max(largest.load(), tasks.size());
    return std::vector<Outcome>(tasks.size(), Make(OutcomeKind::Done));
  };
  SubmitMany(*store_, "a", 20);
  const auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_LE(largest.load(), 3u);
}

// Each in one worker: where permits hold the places, and where the leader has parted them.
TEST_F(LimitedWorkerTest, ARateAndPlacesTogetherLetTasksThrough) {
  config_.handlers["a"].limit = LimitConfig{.rate = 50, .burst = 1, .concurrency = 1};
  for (const bool divided : {false, true}) {
    if (divided) {
      control_.shares.Set(
          std::make_shared<const LimitShares>(LimitShares{{"a", {.rate = 50, .concurrency = 1}}}));
    }
    SubmitMany(*store_, "a", 30);
    const auto worker = Start(true);
    EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle) << (divided ? "places" : "permits");
  }
  EXPECT_EQ(Succeeded(), 60u);
  EXPECT_EQ(calls_.Most(), 1);
}

TEST_F(LimitedWorkerTest, ABreakerOfATypeThatIsHeldByPermitsClosesAgain) {
  config_.handlers["a"].limit = LimitConfig{.concurrency = 1};
  config_.handlers["a"].breaker =
      BreakerConfig{.minimum = 2, .probe_every = milliseconds(100), .classes = {"connection"}};
  config_.handlers["a"].retry.delays = {milliseconds(1)};
  std::atomic<int> calls{0};
  plugins_.behaviours["a"] = [&](std::span<const Task> tasks, CallContext&) {
    Outcome outcome = Make(calls++ < 6 ? OutcomeKind::Retry : OutcomeKind::Done);
    outcome.error_class = "connection";
    return std::vector<Outcome>(tasks.size(), outcome);
  };
  SubmitMany(*store_, "a", 10);
  const auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(Succeeded(), 10u);
}

// What ran under the policies of before counts still, and its end lets the next one start.
TEST_F(LimitedWorkerTest, ThePoliciesChangeWhileTheOnlyPlaceIsTaken) {
  config_.handlers["a"].limit = LimitConfig{.concurrency = 1};
  plugins_.behaviours["a"] = Takes(milliseconds(400));
  control_.shares.Set(std::make_shared<const LimitShares>(LimitShares{{"a", {.concurrency = 1}}}));
  SubmitMany(*store_, "a", 3);
  const auto worker = Start(true);
  ASSERT_TRUE(Eventually(*worker, [&] { return !calls_.Begun().empty(); }));
  config_.handlers["a"].hours = HoursConfig{.from = 0, .to = 1440};
  control_.config.Set(std::make_shared<const Config>(config_));
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(Succeeded(), 3u);
  EXPECT_EQ(calls_.Most(), 1);
}

TEST_F(LimitedWorkerTest, AnotherTypeIsNotHeldUp) {
  config_.handlers["a"].limit = LimitConfig{.rate = 0.01};
  std::atomic<int> others{0};
  plugins_.behaviours["b"] = [&](std::span<const Task> tasks, CallContext&) {
    others += static_cast<int>(tasks.size());
    return std::vector<Outcome>(tasks.size(), Make(OutcomeKind::Done));
  };
  SubmitMany(*store_, "a", 50);
  SubmitMany(*store_, "b", 500);
  const auto worker = Start(true);
  EXPECT_TRUE(Eventually(*worker, [&] { return others == 500; }));
  EXPECT_EQ(worker->WaitFor(milliseconds(200)), std::nullopt);  // what the limit holds back is to run yet
  EXPECT_EQ(calls_.Begun().size(), 1u);
  EXPECT_LE(worker->Totals().claimed, 502u);  // the rest is left in the table
}

TEST_F(LimitedWorkerTest, ALimitThatIsRaisedOrTakenAwayHoldsAtOnce) {
  for (const auto& later : {std::optional(LimitConfig{.rate = 100'000}), std::optional<LimitConfig>()}) {
    const std::size_t before = calls_.Begun().size();
    config_.handlers["a"].limit = LimitConfig{.rate = 0.01};
    SubmitMany(*store_, "a", 300);
    const auto worker = Start(true);
    EXPECT_TRUE(Eventually(*worker, [&] { return calls_.Begun().size() == before + 1; }));
    config_.handlers["a"].limit = later;
    control_.config.Set(std::make_shared<const Config>(config_));
    EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  }
  EXPECT_EQ(Succeeded(), 600u);
}

TEST_F(LimitedWorkerTest, ATaskThatIsRunAgainAfterItsLimitTakesNoPlaceTwice) {
  config_.handlers["a"].limit = LimitConfig{.concurrency = 1};
  config_.handlers["a"].timeout = milliseconds(50);
  config_.handlers["a"].retry.delays = {milliseconds(1)};
  std::atomic<int> calls{0};
  plugins_.behaviours["a"] = [&](std::span<const Task> tasks, CallContext& context) {
    if (calls++ == 0) {
      while (!context.ShouldStop()) Signal().WaitFor(milliseconds(1));
      return std::vector<Outcome>(tasks.size(), Make(OutcomeKind::Retry, "late", Micros(0)));
    }
    return std::vector<Outcome>(tasks.size(), Make(OutcomeKind::Done));
  };
  SubmitMany(*store_, "a", 5);
  const auto worker = Start(true);
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Idle);
  EXPECT_EQ(worker->Limits().at("a").use.running, 0u);
}

}  // namespace
}  // namespace millrace::engine
