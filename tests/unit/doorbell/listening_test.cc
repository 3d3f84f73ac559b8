#include "framework/doorbell/listening.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr BootTime kStart{seconds(1000)};
constexpr std::uint32_t kServer = 1'700'000'000;

class LogLoadTest : public ::testing::Test {
 protected:
  LogLoadTest() { load_.Begin(kStart, kServer); }
  // An event so long after the beginning, logged so long before that.
  bool HangsUp(Micros after, std::size_t bytes, seconds age = seconds(0)) {
    const auto at =
        kServer + static_cast<std::uint32_t>(std::chrono::floor<seconds>(after).count() - age.count());
    return load_.Add(kStart + after, bytes, at, false).has_value();
  }

  LogLoad load_;
};

TEST_F(LogLoadTest, ABurstIsFollowedAndAFloodIsNot) {
  EXPECT_FALSE(HangsUp(milliseconds(10), 7 << 20)) << "under the bound over two seconds";
  EXPECT_FALSE(HangsUp(seconds(2), 100));
  EXPECT_FALSE(HangsUp(seconds(3), 7 << 20)) << "counted anew";
  EXPECT_TRUE(HangsUp(milliseconds(3500), 2 << 20));
}

TEST_F(LogLoadTest, AListenerThatStaysBehindHangsUp) {
  EXPECT_FALSE(HangsUp(seconds(10), 100, seconds(5)));
  EXPECT_FALSE(HangsUp(seconds(12), 100, seconds(6)));
  EXPECT_TRUE(HangsUp(seconds(14), 100, seconds(7)));
}

TEST_F(LogLoadTest, ALongStatementIsNoLag) {
  EXPECT_FALSE(HangsUp(seconds(10), 100, seconds(600)));
  EXPECT_FALSE(HangsUp(seconds(11), 100, seconds(0)));
  EXPECT_FALSE(HangsUp(seconds(14), 100, seconds(600)));
  EXPECT_FALSE(load_.Add(kStart + seconds(15), 40, std::nullopt, true)) << "a heartbeat";
  EXPECT_FALSE(HangsUp(seconds(18), 100, seconds(600)));
}

TEST_F(LogLoadTest, AServerWhoseClockIsAheadIsFollowed) {
  EXPECT_FALSE(HangsUp(seconds(10), 100, seconds(-100)));
}

TEST(RedialTest, ACutIsTriedAgainSoonAndLessAndLessOften) {
  Redial redial;
  EXPECT_EQ(redial.After(ErrorCode::Unavailable, seconds(0)), milliseconds(100));
  EXPECT_EQ(redial.After(ErrorCode::Unavailable, seconds(0)), milliseconds(200));
  for (int i = 0; i < 20; ++i) redial.After(ErrorCode::Unavailable, seconds(0));
  EXPECT_EQ(redial.After(ErrorCode::Unavailable, seconds(0)), seconds(30));
  EXPECT_EQ(redial.After(ErrorCode::Unavailable, minutes(2)), milliseconds(100)) << "it went well in between";
}

TEST(RedialTest, AFloodIsLeftAloneForLonger) {
  Redial redial;
  EXPECT_EQ(redial.After(ErrorCode::Conflict, seconds(2)), seconds(30));
  EXPECT_EQ(redial.After(ErrorCode::Conflict, seconds(2)), minutes(1));
  for (int i = 0; i < 20; ++i) redial.After(ErrorCode::Conflict, seconds(2));
  EXPECT_EQ(redial.After(ErrorCode::Conflict, seconds(2)), minutes(5));
}

TEST(RedialTest, WhatAPersonHasToMendIsAskedEveryMinute) {
  Redial redial;
  EXPECT_EQ(redial.After(ErrorCode::Invalid, seconds(0)), minutes(1));
  EXPECT_EQ(redial.After(ErrorCode::Invalid, seconds(0)), minutes(1));
}

}  // namespace
}  // namespace millrace::engine
