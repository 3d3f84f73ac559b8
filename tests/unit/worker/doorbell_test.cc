// What a worker hears of, and what it does when it hears nothing any more. On stores in memory.
#include <deque>

#include "framework/doorbell/datagram.h"
#include "framework/testing/scratch_store.h"
#include "framework/threads/signal.h"
#include "worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// A feed that hears what the test says. Thread-safe.
class ScriptedFeed final : public ChangeFeed {
 public:
  Status Open() override {
    ++opened;
    MutexLock lock(mutex_);
    if (!refusal_) return {};
    return Fail(*refusal_);
  }
  Result<std::vector<Ring>> Next() override {
    heard_.WaitFor(seconds(60));
    MutexLock lock(mutex_);
    if (refusal_) return Fail(*refusal_);
    return std::exchange(rings_, {});
  }
  void Interrupt() override { Refuse(Error{ErrorCode::Cancelled, "interrupted"}); }

  void Hear(Ring ring) {
    MutexLock lock(mutex_);
    rings_.push_back(std::move(ring));
    heard_.Notify();
  }
  // Ends what is heard, until it is told otherwise.
  void Refuse(std::optional<Error> why) {
    MutexLock lock(mutex_);
    refusal_ = std::move(why);
    heard_.Notify();
  }

  std::atomic<int> opened{0};

 private:
  Signal heard_;
  Mutex mutex_;
  std::optional<Error> refusal_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Ring> rings_ MILLRACE_GUARDED_BY(mutex_);
};

// A shard that tells of changes what the test says, or nothing at all.
class ToldStore final : public Store {
 public:
  ToldStore(const Clock& clock, bool tells) : store_(clock), tells_(tells) {}
  std::string Describe() const override { return store_.Describe(); }
  Status Ping() override { return store_.Ping(); }
  std::unique_ptr<TaskStore> OpenTasks() override { return store_.OpenTasks(); }
  std::unique_ptr<IncarnationStore> OpenIncarnations() override { return store_.OpenIncarnations(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return store_.OpenTransaction(limit);
  }
  std::unique_ptr<TaskOperations> OpenOperations() override { return store_.OpenOperations(); }
  std::unique_ptr<SchemaStore> OpenSchema() override { return store_.OpenSchema(); }
  std::unique_ptr<PruneStore> OpenPruning() override { return store_.OpenPruning(); }
  std::unique_ptr<OverviewStore> OpenOverview() override { return store_.OpenOverview(); }
  std::unique_ptr<ChangeFeed> OpenChanges(IsWatched) override {
    if (!tells_) return nullptr;
    auto made = std::make_unique<ScriptedFeed>();
    feed = made.get();
    return made;
  }

  ScriptedFeed* feed = nullptr;  // the worker's

 private:
  ScratchStore store_;
  const bool tells_;
};

class DoorbellTest : public WorkerFixture {
 protected:
  DoorbellTest() {
    plugins_.behaviours["quick"] = [this](auto tasks, auto&) {
      runs_ += static_cast<int>(tasks.size());
      return std::vector<Outcome>(tasks.size());
    };
  }
  std::unique_ptr<Worker> StartOn(std::shared_ptr<Store> store) {
    control_.shards.Set({{"main", std::move(store)}});
    return Start(false);
  }
  // It has looked once, and found nothing; and whoever listens for it has begun to.
  static bool IsAtRest(Worker& worker, const std::string& bell = "on") {
    return Eventually(worker, [&] {
      const WorkerStatus status = worker.Status();
      return !status.shards.empty() && status.shards[0].reachable && status.shards[0].doorbell == bell;
    });
  }
  static std::string Bell(const Worker& worker) { return worker.Status().shards[0].doorbell; }
  static Micros Poll(const Worker& worker) { return worker.Status().shards[0].poll; }

  std::atomic<int> runs_{0};
};

TEST_F(DoorbellTest, APlainInsertIntoAFileIsHeardOf) {
  config_.engine.poll = minutes(1);
  const auto store = std::make_shared<ScratchStore>(clock_);
  const auto worker = StartOn(store);
  ASSERT_TRUE(IsAtRest(*worker));
  for (int task = 1; task <= 3; ++task) {
    store->Run("INSERT INTO tasks (handler, params) VALUES ('quick','{}')");
    EXPECT_TRUE(Eventually(*worker, [&] { return runs_ == task; })) << "the poll takes a minute";
  }
}

TEST_F(DoorbellTest, ARingIsLookedAfterAtOnce) {
  config_.engine.poll = minutes(1);
  const auto store = std::make_shared<ToldStore>(clock_, true);
  const auto worker = StartOn(store);
  ASSERT_TRUE(IsAtRest(*worker));
  SubmitTo(*store, "quick");
  store->feed->Hear({kDefaultTable, {}});
  EXPECT_TRUE(Eventually(*worker, [&] { return runs_ == 1; }));
}

TEST_F(DoorbellTest, WhoeverHearsNothingPollsAndSaysWhy) {
  const auto store = std::make_shared<ToldStore>(clock_, true);
  const auto worker = StartOn(store);
  ASSERT_TRUE(Eventually(*worker, [&] { return Bell(*worker) == "on"; }));
  store->feed->Refuse(Error{ErrorCode::Unavailable, "the line was cut"});
  ASSERT_TRUE(Eventually(*worker, [&] { return Bell(*worker) == "off: the line was cut"; }));
  SubmitTo(*store, "quick");
  EXPECT_TRUE(Eventually(*worker, [&] { return runs_ == 1; }));
  EXPECT_TRUE(Eventually(*worker, [&] { return store->feed->opened >= 3; })) << "it is tried again and again";
  store->feed->Refuse(std::nullopt);
  EXPECT_TRUE(Eventually(*worker, [&] { return Bell(*worker) == "on"; }));
}

TEST_F(DoorbellTest, WhatHappenedWhileItHeardNothingIsLookedForOnceItHears) {
  config_.engine.poll = minutes(1);
  const auto store = std::make_shared<ToldStore>(clock_, true);
  const auto worker = StartOn(store);
  ASSERT_TRUE(IsAtRest(*worker));
  store->feed->Refuse(Error{ErrorCode::Unavailable, "the line was cut"});
  ASSERT_TRUE(Eventually(*worker, [&] { return store->feed->opened >= 2; }));
  SubmitTo(*store, "quick");
  store->feed->Refuse(std::nullopt);
  EXPECT_TRUE(Eventually(*worker, [&] { return runs_ == 1; }));
}

TEST_F(DoorbellTest, AnIdleShardIsAskedEveryTwoSecondsAsLongAsSomebodyListens) {
  const auto store = std::make_shared<ToldStore>(clock_, true);
  const auto worker = StartOn(store);
  ASSERT_TRUE(Eventually(*worker, [&] { return Poll(*worker) == seconds(2); }));
  store->feed->Refuse(Error{ErrorCode::Unavailable, "the line was cut"});
  EXPECT_TRUE(Eventually(*worker, [&] { return Poll(*worker) < seconds(2); }));
}

TEST_F(DoorbellTest, AWorkerEndsThoughItsFeedWaits) {
  const auto store = std::make_shared<ToldStore>(clock_, true);
  const auto worker = StartOn(store);
  ASSERT_TRUE(Eventually(*worker, [&] { return Bell(*worker) == "on"; }));
  worker->Stop();
  EXPECT_EQ(worker->WaitFor(seconds(20)), WorkerEnd::Stopped);
}

TEST_F(DoorbellTest, AProducersDatagramIsHeard) {
  config_.engine.poll = minutes(1);
  doorbell_address_ = "127.0.0.1";
  const auto store = std::make_shared<ToldStore>(clock_, false);
  const auto worker = StartOn(store);
  ASSERT_TRUE(IsAtRest(*worker, "off"));
  const std::string address = worker->Status().doorbell;
  SubmitTo(*store, "quick");
  SendRing(std::vector{address}, {"other", {kDefaultTable, {}}});
  SendRing(std::vector{address}, {"main", {kDefaultTable, {}}});
  EXPECT_TRUE(Eventually(*worker, [&] { return runs_ == 1; }));
}

}  // namespace
}  // namespace millrace::engine
