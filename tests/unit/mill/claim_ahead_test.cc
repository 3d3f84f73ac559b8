// Claims that are sent ahead: the next rows are looked for while the shard works on the last ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr std::uint32_t kBatch = 100;
constexpr std::size_t kTasks = 1000;
const std::string kLargeParams = R"({"text":")" + std::string(3 * 1024, 'x') + R"("})";

class ClaimAheadTest : public ::testing::Test {
 protected:
  ClaimAheadTest() {
    engine_.batch = kBatch;
    engine_.rewind = hours(1);
  }

  void Submit(std::size_t count, const NewTask& task = {.handler = "report"}) {
    const auto operations = store_.OpenOperations();
    for (std::size_t now; count > 0; count -= now) {
      now = std::min<std::size_t>(count, kBatch);
      const auto submitted = operations->Submit("tasks", std::vector<NewTask>(now, task));
      ASSERT_TRUE(submitted) << submitted.error().message;
    }
    store_.Run("UPDATE tasks SET slice=1");
  }
  RoundWorker& Start(std::size_t room = 4 * kBatch, ScanRules rules = {}) {
    worker_ = std::make_unique<RoundWorker>(clock_, store_, "w", std::move(rules));
    worker_->Configure(engine_, order_);
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
  // At the first page that is asked for while a claim is on its way.
  void AtPageBeside(std::function<void()> action) {
    worker_->scan.at_page = [this, action = std::move(action), done = false]() mutable {
      if (worker_->scan.OnItsWay() && !std::exchange(done, true)) action();
    };
  }
  std::int64_t Waiting() { return store_.Ask("SELECT count(*) FROM tasks WHERE state=0"); }

  ManualClock clock_;
  ScratchStore store_{clock_};
  EngineConfig engine_;
  ScanOrder order_;
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

// Else the next claim would find too little left.
TEST_F(ClaimAheadTest, WhatFillsMoreThanHalfOfTheRoomIsClaimedByTheStrandItself) {
  Submit(kTasks);
  RoundWorker& worker = Start(2 * kBatch - 1);
  worker.runner.takes = seconds(10);
  Go(milliseconds(500));
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, WhatIsOnItsWayIsNotLookedForRoomTwice) {
  Submit(kTasks);
  RoundWorker& worker = Start(2 * kBatch);
  worker.runner.takes = seconds(10);
  Go(milliseconds(10));
  EXPECT_EQ(Claimed(), 2 * kBatch);
  EXPECT_EQ(worker.scan.asked.pages, 2) << "a page for each of two claims";
}

TEST_F(ClaimAheadTest, TheBytesOfWhatIsOnItsWayAreNoRoom) {
  const NewTask large{.handler = "report", .params = kLargeParams};
  Submit(kBatch);
  Submit(kTasks, large);
  RoundWorker& worker = Start(10 * kBatch);
  worker.runner.takes = seconds(10);
  worker.runner.most_bytes = 3 * kBatch * 1024;  // the first claim has a third of it, and the next the rest
  Go(milliseconds(500));
  EXPECT_GE(worker.scan.asked.ahead, 1);
  EXPECT_LE(worker.runner.Bytes(), worker.runner.most_bytes * 101 / 100);
  EXPECT_GE(worker.runner.Bytes(), worker.runner.most_bytes * 9 / 10);
}

TEST_F(ClaimAheadTest, WhatFillsMoreThanHalfOfTheBytesIsClaimedByTheStrandItself) {
  const NewTask large{.handler = "report", .params = kLargeParams};
  Submit(kTasks, large);
  RoundWorker& worker = Start(10 * kBatch);
  worker.runner.takes = seconds(10);
  worker.runner.most_bytes = 3 * kBatch * 4 * 1024 / 2;
  Go(milliseconds(10));
  EXPECT_GT(worker.runner.took, kBatch);
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, WhatARoundMayTakeIsClaimedByTheStrandItself) {
  Submit(kTasks);
  const RoundWorker& worker = Start(4 * kBatch, {{"report", {.every = seconds(60), .max_rows = 3 * kBatch}}});
  Go(milliseconds(500));
  EXPECT_EQ(Claimed(), 3 * kBatch);
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, WhatAPolicyBoundsIsClaimedByTheStrandItself) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  auto config = std::make_shared<Config>();
  config->handlers["report"].limit = {.concurrency = 10 * kBatch};
  worker.admission().Follow(std::move(config));
  Go(milliseconds(500));
  EXPECT_GE(Claimed(), 3 * kBatch);
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, WhatAFullLaneIsToGiveBackIsClaimedByTheStrandItself) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.runner.gives_back = true;
  Go(milliseconds(500));
  EXPECT_EQ(Claimed(), kTasks);
  EXPECT_EQ(worker.scan.asked.ahead, 0);
}

TEST_F(ClaimAheadTest, AnAnswerWaitsForNoMoreThanThePageThatWasAskedFor) {
  for (std::uint32_t priority = 0; priority < 10; ++priority)
    Submit(kBatch / 2, {.handler = "report", .priority = priority});
  RoundWorker& worker = Start();
  worker.scan.answers_at_once = true;
  std::vector<std::size_t> taken;  // at each page
  worker.scan.at_page = [&] { taken.push_back(worker.runner.took); };
  Go(milliseconds(10));
  ASSERT_GE(worker.scan.asked.ahead, 1);
  ASSERT_GE(taken.size(), 4u);
  taken.resize(4);
  EXPECT_THAT(taken, ElementsAre(0, 0, 0, kBatch)) << "two pages are a claim";
}

TEST_F(ClaimAheadTest, AClaimThatFailsOnItsWayLeavesItsRowsToTheNext) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.loses_a_claim = true;
  Go(seconds(10));
  EXPECT_EQ(Claimed(), kTasks);
  EXPECT_FALSE(worker.scan.loses_a_claim);
  std::uint64_t last = 0;
  for (const ClaimSeen& claim : worker.scan.seen) {
    for (const Task& task : claim.tasks) EXPECT_GT(task.key.id, std::exchange(last, task.key.id));
  }
}

TEST_F(ClaimAheadTest, WhatIsNotClaimedSinceSomebodyIsAloneIsFoundAgain) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  AtPageBeside([&] { EXPECT_FALSE(worker.gate().EnterAlone("main/tasks/1")) << "others are inside"; });
  Go(milliseconds(100));
  EXPECT_EQ(Claimed(), kBatch);
  EXPECT_TRUE(worker.gate().EnterAlone("main/tasks/1"));
  worker.gate().LeaveAlone();
  Go(seconds(1));
  EXPECT_EQ(Claimed(), kTasks);
}

TEST_F(ClaimAheadTest, WhatABandMayTakeIsNotUsedUpByAClaimThatFails) {
  order_.bands["report"] = {{.every = minutes(10), .most = 3 * kBatch}};
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.loses_a_claim = true;
  Go(minutes(1));
  EXPECT_GE(worker.scan.asked.ahead, 1);
  EXPECT_EQ(Claimed(), 3 * kBatch);
}

TEST_F(ClaimAheadTest, NothingMoreIsClaimedAfterAStop) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  AtPageBeside([&] { worker.mill().StopClaiming(); });
  Go(seconds(1));
  EXPECT_EQ(worker.scan.asked.claims, 1);
  EXPECT_EQ(worker.runner.took, kBatch);
  EXPECT_FALSE(worker.scan.OnItsWay());
}

// What was on its way goes back, too; and all that was found is there again after it.
TEST_F(ClaimAheadTest, NothingMoreIsClaimedInAPause) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  AtPageBeside([&] { worker.Pause({"handler:report"}); });
  Go(seconds(1));
  EXPECT_EQ(worker.scan.asked.claims, 1);
  EXPECT_EQ(worker.runner.took, 0u);
  EXPECT_EQ(Waiting(), static_cast<std::int64_t>(kTasks));
  worker.Pause({});
  Go(seconds(2));
  EXPECT_EQ(worker.runner.took, kTasks);
}

// The lane knows whether it starts it sooner than its new owner would.
TEST_F(ClaimAheadTest, WhatMovesAwayWhileItIsClaimedGoesToTheLane) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  AtPageBeside([&] { worker.Own({}); });
  Go(seconds(1));
  EXPECT_EQ(worker.scan.asked.claims, 1);
  EXPECT_EQ(worker.runner.took, kBatch);
}

TEST_F(ClaimAheadTest, NothingMoreIsClaimedAfterAClaimThatFailed) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.loses_claims = true;
  Go(seconds(2));
  EXPECT_GE(worker.scan.asked.ahead, 2);
  EXPECT_EQ(worker.scan.asked.claims, worker.scan.asked.maps) << "it begins with a new look";
}

TEST_F(ClaimAheadTest, AClaimThatIsTooSlowIsRestedOfBeforeTheNext) {
  engine_.brake_latency = milliseconds(100);
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.claim_takes = milliseconds(400);
  Go(seconds(3));
  ASSERT_GE(worker.scan.asked.ahead, 1);
  ASSERT_GE(worker.scan.seen.size(), 2u);
  const Micros between = worker.scan.seen[1].at - worker.scan.seen[0].at;
  EXPECT_GE(between - worker.scan.claim_takes, milliseconds(390)) << "at half the speed, as long again";
  EXPECT_EQ(worker.scan.asked.ahead, 1) << "while it is slow nothing is asked for meanwhile";
}

// One row that the database refuses makes several claims of one: 15 of these hundred.
TEST_F(ClaimAheadTest, AllStatementsOfAClaimAreRestedOf) {
  engine_.brake_latency = milliseconds(10);
  Submit(2 * kBatch);
  RoundWorker& worker = Start();
  worker.scan.refused_id = 2;
  worker.scan.claim_takes = milliseconds(20);
  Go(seconds(3));
  ASSERT_GE(worker.scan.asked.claims, 16);
  std::vector<BootTime> at;
  for (const ClaimSeen& claim : worker.scan.seen) {
    if (claim.tasks.front().key.id > kBatch || claim.tasks.back().key.id == kBatch) at.push_back(claim.at);
  }
  ASSERT_GE(at.size(), 2u);
  EXPECT_GE(at[1] - at[0], milliseconds(290)) << "from the last of the one to the next";
}

TEST_F(ClaimAheadTest, WhatIsLeftOfAClaimInHalvesIsFoundAgain) {
  Submit(kBatch + 40, {.handler = "report", .priority = 1});
  Submit(2 * kBatch, {.handler = "report", .priority = 2});
  RoundWorker& worker = Start();
  worker.scan.refused_id = 2 * kBatch - 10;  // of the second half of the second claim
  worker.scan.loses_claim = 3;               // the first half: 40 of the first priority, and ten others
  Go(seconds(5));
  EXPECT_EQ(Claimed(), 3 * kBatch + 40 - 1);
}

TEST_F(ClaimAheadTest, ABandGoesAgainThroughWhatAnUnknownClaimHasNotClaimed) {
  order_.bands["report"] = {{.every = minutes(10)}};
  Submit(kBatch / 2);
  RoundWorker& worker = Start();
  worker.scan.loses_a_claim = true;
  worker.scan.lost_as = ErrorCode::Unknown;
  Go(seconds(5));
  EXPECT_EQ(Claimed(), kBatch / 2);
}

TEST_F(ClaimAheadTest, WhatIsOnItsWayHasNoPlaceInTheReserveOfTheUrgent) {
  Submit(1, {.handler = "report", .priority = 0});
  Submit(kTasks, {.handler = "report", .priority = 9});
  RoundWorker& worker = Start(8 * kBatch);
  worker.runner.takes = seconds(10);
  worker.runner.reserve = 5 * kBatch;
  worker.runner.urgent = Urgency(0, 9);
  Go(seconds(1));
  EXPECT_GE(worker.scan.asked.ahead, 2);
  EXPECT_LE(worker.runner.took, 3 * kBatch + 1);
}

// StoreScan::Rest sees to it, in all of these tests.
TEST_F(ClaimAheadTest, AStrandThatRestsHasNoClaimOnItsWay) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  worker.scan.pages_take = milliseconds(150);  // so that the map is old before the turn is at its end
  Go(milliseconds(200));
  EXPECT_GE(worker.scan.asked.ahead, 1);
}

// Also where it is asked to end while one is on its way: what that claims is run.
TEST_F(ClaimAheadTest, AStrandThatEndsHasNoClaimOnItsWay) {
  Submit(kTasks);
  RoundWorker& worker = Start();
  AtPageBeside([&] { worker.mill().Stop(); });
  Go(seconds(1));
  EXPECT_GE(worker.scan.asked.beside, 1);
  EXPECT_FALSE(worker.scan.OnItsWay());
  EXPECT_EQ(worker.runner.took, Claimed());
}

}  // namespace
}  // namespace millrace::engine
