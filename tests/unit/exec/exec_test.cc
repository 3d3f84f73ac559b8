#include <gmock/gmock.h>

#include <atomic>

#include "framework/exec/bounded_queue.h"
#include "framework/exec/signal.h"
#include "framework/exec/thread.h"

namespace millrace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SignalTest, ANoticeBeforeTheWaitIsNotLost) {
  Signal signal;
  signal.Notify();
  EXPECT_TRUE(signal.WaitFor(seconds(0)));
  EXPECT_FALSE(signal.WaitFor(milliseconds(1)));
}

TEST(SignalTest, WakesAWaitingThread) {
  Signal signal;
  std::atomic<bool> woken{false};
  {
    Thread waiter("waiter", [&] { woken = signal.WaitFor(seconds(60)); });
    signal.Notify();
  }
  EXPECT_TRUE(woken);
}

TEST(BoundedQueueTest, TakesInOrderUpToTheNumberAskedFor) {
  BoundedQueue<int> queue(10);
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(queue.Push(int{i}, seconds(0)));
  EXPECT_THAT(queue.Take(2, seconds(0)), ElementsAre(1, 2));
  EXPECT_THAT(queue.Take(9, seconds(0)), ElementsAre(3));
  EXPECT_THAT(queue.Take(9, milliseconds(1)), IsEmpty());
}

TEST(BoundedQueueTest, RefusesBeyondItsBoundAndAcceptsAgainOnceThereIsRoom) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.Push(1, seconds(0)));
  EXPECT_FALSE(queue.Push(2, milliseconds(1)));
  queue.PushAlways(3);
  EXPECT_THAT(queue.Take(9, seconds(0)), ElementsAre(1, 3));
  EXPECT_TRUE(queue.Push(4, seconds(0)));
}

TEST(BoundedQueueTest, AProducerThatWaitsGoesOnWhenRoomIsMade) {
  BoundedQueue<int> queue(1);
  ASSERT_TRUE(queue.Push(1, seconds(0)));
  std::atomic<bool> pushed{false};
  {
    Thread producer("producer", [&] { pushed = queue.Push(2, seconds(60)); });
    EXPECT_THAT(queue.Take(1, seconds(60)), ElementsAre(1));
    EXPECT_THAT(queue.Take(1, seconds(60)), ElementsAre(2));
  }
  EXPECT_TRUE(pushed);
}

}  // namespace
}  // namespace millrace
