#include <gmock/gmock.h>

#include <atomic>

#include "framework/threads/signal.h"
#include "framework/threads/thread.h"
#include "tests/support/no_more_threads.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
