// Claims that are sent ahead: the next rows are looked for while the shard works on the last ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kBatch = 100;
constexpr std::size_t kTasks = 1000;

class ClaimAheadTest : public ::testing::Test {
 protected:
  void Submit(std::size_t count, const std::string& type = "report") {
    const auto operations = store_.OpenOperations();
    for (std::size_t now; count > 0; count -= now) {
      now = std::min<std::size_t>(count, 500);
      ASSERT_TRUE(operations->Submit("tasks", std::vector<NewTask>(now, NewTask{.handler = type})));
    }
  }
  RoundWorker& Start(std::size_t room = 4 * kBatch, ScanRules rules = {}) {
    worker_ = std::make_unique<RoundWorker>(clock_, store_, "w", std::move(rules));
    EngineConfig engine;
    engine.batch = kBatch;
    worker_->Configure(engine);
    worker_->runner.most = room;
    return *worker_;
  }
  void Go(Micros span) {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end; clock_.Advance(milliseconds(10)))
      worker_->Work();
  }
  // Each of those that were claimed, once.
  std::size_t Claimed() const {
    std::set<TaskKey> claimed;
    for (const ClaimSeen& claim : worker_->scan.seen) {
      for (const Task& task : claim.tasks)
        EXPECT_TRUE(claimed.insert(task.key).second) << ToString(task.key) << " was claimed twice";
    }
    return claimed.size();
  }

  ManualClock clock_;
  ScratchStore store_{clock_};
  std::unique_ptr<RoundWorker> worker_;
};

TEST_F(ClaimAheadTest, TheNextRowsAreLookedForWhileTheShardWorksOnTheLast) {
  Submit(kTasks);
  const RoundWorker& worker = Start();
  Go(seconds(1));
  EXPECT_EQ(Claimed(), kTasks);
  EXPECT_EQ(worker.scan.asked.claims, static_cast<int>(kTasks / kBatch)) << "each is full";
  EXPECT_GE(worker.scan.asked.ahead, 4);
  EXPECT_GE(worker.scan.asked.beside, 4);
}

TEST_F(ClaimAheadTest, FewRowsAreClaimedByTheStrandItself) {
  Submit(kBatch - 1);
  const RoundWorker& worker = Start();
  Go(milliseconds(10));
  EXPECT_EQ(Claimed(), kBatch - 1);
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, NoMoreIsClaimedThanThereIsRoomFor) {
  Submit(kTasks);
  RoundWorker& worker = Start(2 * kBatch + kBatch / 2);
  worker.runner.takes = seconds(10);
  Go(milliseconds(500));
  EXPECT_GE(worker.scan.asked.ahead, 1);
  EXPECT_EQ(Claimed(), 2 * kBatch + kBatch / 2);
}

TEST_F(ClaimAheadTest, WhatARoundMayTakeIsClaimedByTheStrandItself) {
  Submit(kTasks);
  const RoundWorker& worker = Start(4 * kBatch, {{"report", {.every = seconds(60), .max_rows = 3 * kBatch}}});
  Go(milliseconds(500));
  EXPECT_EQ(Claimed(), 3 * kBatch);
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, AClaimThatFailsOnItsWayLeavesItsRowsToALaterOne) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.loses_a_claim = true;
  Go(seconds(10));
  EXPECT_EQ(Claimed(), kTasks);
  EXPECT_FALSE(worker.scan.loses_a_claim);
}

TEST_F(ClaimAheadTest, AStrandThatRestsHasNoClaimOnItsWay) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.pages_take = milliseconds(150);  // so that the map is old before the turn is at its end
  for (int i = 0; i < 20; ++i, clock_.Advance(milliseconds(10))) {
    worker.Work();
    EXPECT_FALSE(worker.scan.OnItsWay());
  }
  EXPECT_GE(worker.scan.asked.ahead, 1);
}

// Also where it is asked to claim nothing more while one is on its way: what that claims is run.
TEST_F(ClaimAheadTest, AStrandThatEndsHasNoClaimOnItsWay) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.at_page = [&] {
    if (worker.scan.asked.beside > 0) worker.mill().Stop();
  };
  Go(seconds(1));
  EXPECT_GE(worker.scan.asked.beside, 1);
  EXPECT_FALSE(worker.scan.OnItsWay());
  EXPECT_EQ(worker.runner.took, Claimed());
}

}  // namespace
}  // namespace millrace::engine
