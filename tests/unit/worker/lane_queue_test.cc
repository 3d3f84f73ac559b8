#include "framework/worker/lane_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "no_host.h"

namespace millrace::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LanePaceTest, BeforeTheFirstTaskItQueuesTwoPerThread) { EXPECT_EQ(LanePace(8, 0).Capacity(), 16u); }

TEST(LanePaceTest, SlowTasksAreNotHoarded) {
  LanePace pace(8, 0);
  pace.Ran(1, seconds(10));
  EXPECT_EQ(pace.Capacity(), 8u);
}

TEST(LanePaceTest, HalfASecondOfWorkIsQueued) {
  LanePace pace(8, 0);
  pace.Ran(1, milliseconds(50));
  EXPECT_EQ(pace.Capacity(), 80u);
}

TEST(LanePaceTest, FastTasksStopAtTheBound) {
  LanePace pace(2, 0);
  pace.Ran(999, microseconds(100));
  EXPECT_EQ(pace.Capacity(), LanePace::kMost);
}

TEST(LanePaceTest, AConfiguredNumberHoldsWhateverThePace) {
  LanePace pace(8, 200);
  pace.Ran(1, seconds(10));
  EXPECT_EQ(pace.Capacity(), 200u);
}

TEST(LanePaceTest, ATaskWaitsForThoseBeforeItAndForAThread) {
  LanePace pace(8, 0);
  EXPECT_GE(pace.WaitFor(0), seconds(60));
  pace.Ran(1, seconds(1));
  EXPECT_EQ(pace.WaitFor(0), milliseconds(125));
  EXPECT_EQ(pace.WaitFor(15), seconds(2));
}

TEST(LanePaceTest, ANewNumberOfThreadsKeepsThePace) {
  LanePace pace(8, 0);
  pace.Ran(1, milliseconds(50));
  pace.Resize(2, 0);
  EXPECT_EQ(pace.Capacity(), 20u);
}

TEST(LanePaceTest, ItFollowsAChangeOfPace) {
  LanePace pace(1, 0);
  pace.Ran(1, milliseconds(1));
  for (int i = 0; i < 100; ++i) pace.Ran(1, milliseconds(100));
  EXPECT_LE(pace.Capacity(), 6u);
}

TEST(LanePaceTest, ManyCallsThatAreToldTogetherWeighAsMuchAsOneByOne) {
  LanePace together(1, 0);
  LanePace one_by_one(1, 0);
  together.Ran(1, milliseconds(1));
  one_by_one.Ran(1, milliseconds(1));
  together.Ran(30, milliseconds(300), 30);
  for (int i = 0; i < 30; ++i) one_by_one.Ran(1, milliseconds(10));
  EXPECT_EQ(together.Each(), one_by_one.Each());
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LaneQueueTest : public ::testing::Test {
 protected:
  void Push(const std::shared_ptr<NoHost>& host, int count) {
    for (int i = 0; i < count; ++i) {
      Task task;
      task.key = {"tasks", ++last_id_};
      queue_.Push(std::make_shared<Attempt>(host, "s", task, nullptr, false));
    }
  }
  std::vector<std::uint64_t> Take(std::size_t most, std::size_t threads) {
    std::vector<std::uint64_t> ids;
    const auto host = queue_.Next(threads);
    if (!host) return ids;
    for (const AttemptPtr& attempt : queue_.Take(host, most)) ids.push_back(attempt->task.key.id);
    return ids;
  }

  const std::shared_ptr<NoHost> a_ = std::make_shared<NoHost>();
  const std::shared_ptr<NoHost> b_ = std::make_shared<NoHost>();
  LaneQueue queue_;
  std::uint64_t last_id_ = 0;
};

TEST_F(LaneQueueTest, OneShardAloneHasTheWholeQueueAndAllThreads) {
  EXPECT_EQ(queue_.Room(*a_, 10), 10u);
  Push(a_, 6);
  EXPECT_EQ(queue_.Room(*a_, 10), 0u);
  EXPECT_THAT(Take(2, 2), ElementsAre(1, 2));
  EXPECT_THAT(Take(2, 2), ElementsAre(3, 4));
  EXPECT_EQ(queue_.Room(*a_, 10), 8u);
}

TEST_F(LaneQueueTest, AFullShardTakesNoRoomFromAnother) {
  Push(a_, 100);
  EXPECT_EQ(queue_.Room(*b_, 10), 5u);
  Push(b_, 5);
  EXPECT_EQ(queue_.Room(*a_, 10), 0u);
}

TEST_F(LaneQueueTest, ShardsTakeTurns) {
  Push(a_, 4);
  Push(b_, 4);
  const auto first = Take(1, 4);
  const auto second = Take(1, 4);
  EXPECT_NE(first[0] <= 4, second[0] <= 4);
}

TEST_F(LaneQueueTest, AShardThatHoldsItsThreadsLeavesSomeToOthersThatWait) {
  Push(a_, 20);
  Push(b_, 20);
  std::size_t held_by_a = 0;
  // Each thread that works for b comes back at once; those that work for a never do.
  for (int i = 0; i < 20; ++i) {
    const auto host = queue_.Next(8);
    ASSERT_NE(host, nullptr);
    queue_.Take(host, 1);
    if (host == a_) {
      ++held_by_a;
    } else {
      queue_.Leave(*host);
    }
  }
  EXPECT_EQ(held_by_a, 6u);
}

TEST_F(LaneQueueTest, ItTellsOnceThatThereIsRoomAgain) {
  Push(a_, 6);
  const auto host = queue_.Next(1);
  EXPECT_FALSE(queue_.RoomAgain(*a_, 10));
  queue_.Take(host, 1);
  EXPECT_TRUE(queue_.RoomAgain(*a_, 10));
  EXPECT_FALSE(queue_.RoomAgain(*a_, 10));
}

TEST_F(LaneQueueTest, WhatIsUnwantedIsTakenOutAndKnowsHowManyStandBeforeIt) {
  Push(a_, 5);
  std::vector<std::size_t> ahead;
  const auto taken = queue_.TakeIf([&](const Attempt& attempt, std::size_t before) {
    ahead.push_back(before);
    return attempt.task.key.id % 2 == 0;
  });
  EXPECT_THAT(taken, SizeIs(2));
  EXPECT_THAT(ahead, ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(Take(9, 1), ElementsAre(1, 3, 5));
}

TEST_F(LaneQueueTest, AShardOfWhichNothingIsLeftIsForgotten) {
  Push(a_, 1);
  const std::weak_ptr<NoHost> known = a_;
  queue_.Take(queue_.Next(1), 1);
  queue_.Leave(*a_);
  EXPECT_EQ(known.use_count(), 1);
  EXPECT_THAT(Take(1, 1), IsEmpty());
}

}  // namespace

}  // namespace millrace::engine
