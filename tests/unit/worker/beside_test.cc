// A thread that asks one thing of a shard while its strand asks another.
#include "framework/worker/beside.h"

#include <gtest/gtest.h>

#include <future>

namespace millrace::engine {
namespace {

TEST(BesideTest, WhatItHasDoneMayBeReadOnceItIsWaitedFor) {
  Beside beside("claim");
  EXPECT_TRUE(beside.IsDone()) << "nothing has begun";
  int done = 0;
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(beside.Begin([&] { ++done; }));
    beside.Wait();
    ASSERT_TRUE(beside.IsDone());
    ASSERT_EQ(done, i);
  }
}

TEST(BesideTest, ItIsDoneWhenTheWorkHasEndedAndNoSooner) {
  std::promise<void> go;
  std::atomic<bool> done{false};
  Beside beside("claim");
  ASSERT_TRUE(beside.Begin([&] {
    go.get_future().wait();
    done.store(true);
  }));
  EXPECT_FALSE(beside.IsDone());
  go.set_value();
  beside.Wait();
  EXPECT_TRUE(beside.IsDone());
  EXPECT_TRUE(done.load());
}

}  // namespace
}  // namespace millrace::engine
