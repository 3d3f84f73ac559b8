#include "framework/mill/lease.h"

#include <gtest/gtest.h>

#include "tests/unit/mill/start_time.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

TEST(LeaseTest, StartsAreAllowedForFourFifthsOfTheLease) {
  Lease life("w.1", seconds(10), kStart);
  EXPECT_TRUE(life.MayStart(kStart + seconds(7)));
  EXPECT_FALSE(life.MayStart(kStart + seconds(8)));
}

TEST(LeaseTest, ARenewalCountsFromWhenItWasSent) {
  Lease life("w.1", seconds(10), kStart);
  life.Renewed(kStart + seconds(5));
  EXPECT_TRUE(life.MayStart(kStart + seconds(12)));
  EXPECT_FALSE(life.MayStart(kStart + seconds(13)));
}

TEST(LeaseTest, OnceDeadNothingStarts) {
  Lease life("w.1", seconds(10), kStart);
  life.MarkDead();
  life.Renewed(kStart + seconds(1));
  EXPECT_FALSE(life.MayStart(kStart + seconds(1)));
  EXPECT_FALSE(life.Alive());
}

}  // namespace
}  // namespace millrace::engine
