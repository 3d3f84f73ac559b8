#include "framework/worker/urgency_queue.h"

#include <gmock/gmock.h>

#include "framework/base/random.h"
#include "framework/worker/lane_size.h"
#include "no_host.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

class UrgencyQueueTest : public ::testing::Test {
 protected:
  AttemptPtr Make(std::uint32_t priority, seconds due, std::uint32_t failures = 0) {
    Task task;
    task.key = {"tasks", ++last_id_};
    task.priority = priority;
    task.failures = failures;
    task.run_at = kBegin + due;
    return std::make_shared<Attempt>(nullptr, "s", task, nullptr, false);
  }
  std::uint64_t Push(std::uint32_t priority, seconds due, std::uint32_t failures = 0) {
    queue_.Push(Make(priority, due, failures));
    return last_id_;
  }
  std::vector<std::uint64_t> Take(std::size_t count) {
    std::vector<std::uint64_t> ids;
    for (; ids.size() < count && queue_.Size() > 0;) ids.push_back(queue_.Take(aging_)->task.key.id);
    return ids;
  }

  static constexpr WallTime kBegin{std::chrono::hours(1000)};
  UrgencyQueue queue_;
  Aging aging_;
  std::uint64_t last_id_ = 0;
};

TEST_F(UrgencyQueueTest, TheMostUrgentFirstThenFreshBeforeRetriedThenByDueTime) {
  Push(5, seconds(1));
  Push(5, seconds(0), 2);
  Push(5, seconds(0));
  Push(0, seconds(9));
  Push(5, seconds(1));
  EXPECT_THAT(Take(5), ElementsAre(4, 3, 1, 5, 2));
}

TEST_F(UrgencyQueueTest, OneTurnInEightGoesToWhatWaitsLongest) {
  const std::uint64_t idle = Push(9, seconds(0));
  for (int i = 0; i < 20; ++i) Push(0, seconds(10 + i));
  const auto ids = Take(16);
  EXPECT_EQ(std::find(ids.begin(), ids.end(), idle) - ids.begin(), 7);
}

TEST_F(UrgencyQueueTest, WithAgingAnIdleTaskThatHasWaitedLongEnoughTakesTurnsWithUrgentOnes) {
  aging_ = {minutes(1), kBegin + minutes(10)};
  for (int i = 0; i < 10; ++i) Push(9, seconds(i));
  for (int i = 0; i < 10; ++i) Push(0, seconds(590 + i));
  const auto ids = Take(10);
  const auto aged = std::count_if(ids.begin(), ids.end(), [](std::uint64_t id) { return id <= 10; });
  EXPECT_GE(aged, 4);
  EXPECT_LE(aged, 6);
}

TEST_F(UrgencyQueueTest, WithAgingAPriorityIsGainedForEachStep) {
  aging_ = {minutes(1), kBegin + minutes(3)};
  const std::uint64_t younger = Push(8, seconds(60));
  const std::uint64_t older = Push(9, seconds(0));
  EXPECT_THAT(Take(1), ElementsAre(younger)) << "6 by now, as the other; the first turn is its own";
  Push(8, seconds(100));
  EXPECT_THAT(Take(1), ElementsAre(older)) << "that one is 7";
}

TEST_F(UrgencyQueueTest, WhatIsPutBackIsNextOfItsUrgency) {
  Push(5, seconds(1));
  Push(5, seconds(1));
  Push(5, seconds(2));
  const AttemptPtr first = queue_.Take(aging_);
  const AttemptPtr second = queue_.Take(aging_);
  queue_.PutBack(second);
  queue_.PutBack(first);
  EXPECT_THAT(Take(3), ElementsAre(1, 2, 3));
}

TEST_F(UrgencyQueueTest, AnyOrderOfArrivalComesOutInOrder) {
  Random random(7);
  for (int i = 0; i < 2'000; ++i)
    Push(static_cast<std::uint32_t>(random.Below(3)), seconds(random.Below(500)));
  EXPECT_EQ(queue_.AtLeast(kLeastUrgent, aging_), 2'000u);
  std::tuple<std::uint32_t, WallTime> last{0, {}};
  for (std::uint64_t turn = 0; turn < 2'000; ++turn) {
    const AttemptPtr attempt = queue_.Take(aging_);
    if (IsOldestTurn(turn)) continue;
    const std::tuple next{attempt->task.priority, attempt->task.run_at};
    ASSERT_GE(next, last) << turn;
    last = next;
  }
  EXPECT_EQ(queue_.Size(), 0u);
}

TEST(LaneSizeTest, ItKeepsWhatItNeededWithinTheKeepAliveAndTheLeastInAnyCase) {
  LaneSize size;
  size.Follow({2, 8, minutes(5)});
  const BootTime begin{std::chrono::seconds(10)};
  EXPECT_EQ(size.Kept(0, 0, begin), 2u);
  EXPECT_EQ(size.For(0, 3), 3u);
  EXPECT_EQ(size.For(4, 300), 8u);
  for (std::size_t busy = 6; busy > 0; --busy) size.Freed(busy, begin + minutes(busy == 6 ? 0 : 1));
  EXPECT_EQ(size.Kept(0, 0, begin + minutes(4)), 6u);
  EXPECT_EQ(size.Kept(0, 0, begin + minutes(5)), 5u);
  EXPECT_EQ(size.Kept(0, 0, begin + minutes(6)), 2u);
}

TEST(LaneSizeTest, OneThatDoesNotVaryKeepsAll) {
  LaneSize size;
  size.Follow({4, 4, {}});
  EXPECT_EQ(size.Kept(0, 0, BootTime{}), 4u);
}

}  // namespace
}  // namespace millrace::engine
