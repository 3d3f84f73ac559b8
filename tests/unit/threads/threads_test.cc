#include <gmock/gmock.h>

#include <atomic>

#include "framework/threads/hand_over.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"
#include "tests/support/no_more_threads.h"

namespace millrace::engine {
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
    Thread waiter;
    ASSERT_TRUE(waiter.Start("waiter", [&] { woken = signal.WaitFor(seconds(60)); }));
    signal.Notify();
  }
  EXPECT_TRUE(woken);
}

TEST(HandOverTest, TakesInOrderUpToTheNumberAskedFor) {
  HandOver<int> queue;
  for (int i = 1; i <= 3; ++i) queue.Push(int{i});
  EXPECT_THAT(queue.Take(2, seconds(0)), ElementsAre(1, 2));
  EXPECT_THAT(queue.Take(9, seconds(0)), ElementsAre(3));
  EXPECT_THAT(queue.Take(9, milliseconds(1)), IsEmpty());
}

TEST(HandOverTest, ATakerThatWaitsGetsWhatIsPushed) {
  HandOver<int> queue;
  std::vector<int> taken;
  {
    Thread taker;
    ASSERT_TRUE(taker.Start("taker", [&] { taken = queue.Take(9, seconds(60)); }));
    queue.Push(7);
  }
  EXPECT_THAT(taken, ElementsAre(7));
}

TEST(ThreadTest, WhereTheSystemGivesNoneTheCallerIsToldAndMayTryAgain) {
  Thread thread;
  std::atomic<bool> ran{false};
  {
    const NoMoreThreads refused;
    const Status started = thread.Start("work", [&] { ran = true; });
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::Unavailable);
    EXPECT_THAT(started.error().message, ::testing::HasSubstr("ulimit -u"));
    EXPECT_FALSE(thread.Started());
  }
  ASSERT_TRUE(thread.Start("work", [&] { ran = true; }));
  thread.Join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace millrace::engine
