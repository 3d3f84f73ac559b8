#include "framework/policy/poll_interval.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;

TEST(PollIntervalTest, TheBoundHoldsWhereTheMapIsCheap) {
  EXPECT_EQ(PollInterval(milliseconds(200), milliseconds(2), 1), milliseconds(200));
}

TEST(PollIntervalTest, ADearMapIsAskedForFiftyTimesItsCost) {
  EXPECT_EQ(PollInterval(milliseconds(200), milliseconds(34), 16), milliseconds(1700));
}

TEST(PollIntervalTest, OfAHundredTablesOnTenTimesItsCostIsEnough) {
  EXPECT_EQ(PollInterval(milliseconds(200), milliseconds(34), 100), milliseconds(340));
}

TEST(PollIntervalTest, ManyTablesAreAskedForAMillisecondEachThoughTheirMapIsCheap) {
  EXPECT_EQ(PollInterval(milliseconds(200), milliseconds(17), 100), milliseconds(200));
  EXPECT_EQ(PollInterval(milliseconds(200), milliseconds(17), 512), milliseconds(512));
}

TEST(PollIntervalTest, AMapThatTookForEverDoesNotKeepTheShardFromItsWorkForEver) {
  EXPECT_EQ(PollInterval(milliseconds(200), milliseconds(20'000), 1), kLongestPoll);
  EXPECT_EQ(PollInterval(milliseconds(60'000), milliseconds(20'000), 1), milliseconds(60'000));
}

}  // namespace
}  // namespace millrace::engine
