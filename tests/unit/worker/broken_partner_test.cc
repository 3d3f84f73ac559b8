// A worker on a SQLite store, whose handler calls somebody who is broken for a while.
#include <atomic>

#include "framework/store/sqlite/store.h"
#include "worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class BrokenPartnerTest : public WorkerFixture {
 protected:
  static constexpr int kMinimum = 5;

  BrokenPartnerTest() {
    store_ = *sqlite::OpenStore(*ParseStoreUrl("sqlite:" + folder_ + "/tasks.db"), {});
    EXPECT_TRUE(store_->OpenSchema()->Apply({}));
    operations_ = store_->OpenOperations();
    control_.shards.Set({{"main", store_}});
    plugins_.behaviours["pay"] = [this](auto tasks, auto&) {
      ++calls_;
      Outcome outcome = works_ ? Make(OutcomeKind::Done) : Make(OutcomeKind::Retry, "no answer");
      if (outcome.kind == OutcomeKind::Retry) outcome.error_class = "timeout";
      return std::vector(tasks.size(), outcome);
    };
    HandlerConfig& pay = config_.handlers["pay"];
    pay.retry.delays = {milliseconds(20)};
    pay.retry.max_failures = 2;  // who is charged twice is failed for good
    pay.breaker = BreakerConfig{0.5, seconds(2), kMinimum, milliseconds(200), 1, {"timeout"}};
  }

  bool IsOpen(const Worker& worker) {
    const WorkerStatus status = worker.Status();
    return !status.breakers.empty() && status.breakers.front().open;
  }
  std::uint64_t Done() { return Totals().succeeded; }
  TaskTotals Totals() {
    const auto totals = operations_->Totals();
    return totals && !totals->empty() ? totals->front() : TaskTotals{};
  }

  std::atomic<bool> works_{true};
  std::atomic<int> calls_{0};
  std::shared_ptr<Store> store_;
  std::unique_ptr<TaskOperations> operations_;
};

TEST_F(BrokenPartnerTest, CallsFallToTheProbesNoTaskIsChargedTwiceAndAllAreDoneAfterIt) {
  works_ = false;
  SubmitMany(*store_, "pay", 200);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return IsOpen(*worker); }));
  const int at_first = calls_;
  EXPECT_LE(at_first, kMinimum + static_cast<int>(config_.handlers["pay"].concurrency));
  const BootTime began = clock_.Now();
  ASSERT_TRUE(Eventually(*worker, [&] { return calls_ >= at_first + 5; }));
  EXPECT_GE(clock_.Now() - began, milliseconds(4 * 200)) << "one each 200 ms";
  EXPECT_EQ(Done(), 0U);
  works_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return Done() == 200; }));
  EXPECT_EQ(Totals().failed, 0U) << "nobody was charged twice";
  EXPECT_LE(Totals().attempts_failed, static_cast<std::uint64_t>(kMinimum));
  EXPECT_FALSE(IsOpen(*worker));
}

TEST_F(BrokenPartnerTest, ABatchThatFailsAsAWholeChargesEachTaskOnceAtMost) {
  plugins_.batch = 10;
  works_ = false;
  SubmitMany(*store_, "pay", 200);
  auto worker = Start(false);
  ASSERT_TRUE(Eventually(*worker, [&] { return IsOpen(*worker); }));
  const int at_first = calls_;
  ASSERT_TRUE(Eventually(*worker, [&] { return calls_ >= at_first + 3; }));
  works_ = true;
  ASSERT_TRUE(Eventually(*worker, [&] { return Done() == 200; }));
  EXPECT_EQ(Totals().failed, 0U) << "nobody was charged twice";
  EXPECT_LE(Totals().attempts_failed, static_cast<std::uint64_t>(kMinimum));
}

TEST_F(BrokenPartnerTest, ByHandItOpensAndClosesWhateverItsCallsSay) {
  auto worker = Start(false);
  control_.Pause({"breaker:pay:open"});
  ASSERT_TRUE(Eventually(*worker, [&] { return IsOpen(*worker); }));
  SubmitMany(*store_, "pay", 10);
  worker->WaitFor(milliseconds(600));
  EXPECT_EQ(calls_, 0) << "not a probe either";
  control_.Pause({});
  ASSERT_TRUE(Eventually(*worker, [&] { return Done() == 10; }));

  works_ = false;
  control_.Pause({"breaker:pay:close"});
  ASSERT_TRUE(Eventually(*worker, [&] { return worker->Status().breakers.front().by_hand; }));
  SubmitMany(*store_, "pay", 20);
  ASSERT_TRUE(Eventually(*worker, [&] { return Totals().failed == 20; })) << "all are charged";
  EXPECT_FALSE(IsOpen(*worker));
}

TEST_F(BrokenPartnerTest, ByHandItOpensWithoutAnyRulesOfABreakerToo) {
  config_.handlers["pay"].breaker.reset();
  auto worker = Start(false);
  SubmitMany(*store_, "pay", 5);
  ASSERT_TRUE(Eventually(*worker, [&] { return Done() == 5; }));
  control_.Pause({"breaker:pay:open"});
  ASSERT_TRUE(Eventually(*worker, [&] { return !worker->Status().paused.empty(); }));
  SubmitMany(*store_, "pay", 10);
  worker->WaitFor(milliseconds(600));
  EXPECT_EQ(calls_, 5);
  control_.Pause({});
  ASSERT_TRUE(Eventually(*worker, [&] { return Done() == 15; }));
}

TEST_F(BrokenPartnerTest, WhatWasOpenByHandBeforeTheWorkerBeganHoldsFromItsFirstLook) {
  SubmitMany(*store_, "pay", 500);
  ASSERT_TRUE(operations_->SetPause("breaker:pay:open", "ann", true, {}));
  for (const bool configured : {true, false}) {
    if (!configured) config_.handlers["pay"].breaker.reset();
    auto worker = Start(false);
    worker->WaitFor(milliseconds(600));
    worker->Stop();
    ASSERT_TRUE(worker->WaitFor(seconds(20)));
    EXPECT_EQ(calls_, 0) << "configured: " << configured;
  }
}

TEST_F(BrokenPartnerTest, WhoeverWorksUntilIdleDoesNotWaitForAHand) {
  SubmitMany(*store_, "pay", 5);
  ASSERT_TRUE(operations_->SetPause("breaker:pay:open", "ann", true, {}));
  auto worker = Start(true);
  const auto end = worker->WaitFor(seconds(20));
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, WorkerEnd::Idle);
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace millrace::engine
