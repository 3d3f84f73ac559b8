#include <gtest/gtest.h>

#include "framework/store/change_feed.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime At(Micros time) { return BootTime(std::chrono::hours(1)) + time; }

class HeardWritesTest : public testing::Test {
 protected:
  HeardWritesTest() {
    heard_.Begin(At(seconds(0)));
    heard_.Beat();
  }
  bool Unchanged(Micros read, Micros now) const { return heard_.UnchangedSince(At(read), At(now)); }

  HeardWrites heard_;
};

TEST_F(HeardWritesTest, WhatWasReadAfterTheLastWriteIsAsItWas) {
  EXPECT_TRUE(Unchanged(seconds(2), seconds(3)));
  heard_.Write(At(seconds(3)));
  EXPECT_FALSE(Unchanged(seconds(2), seconds(3)));
  EXPECT_TRUE(Unchanged(seconds(5), seconds(6)));
}

TEST_F(HeardWritesTest, AWriteMayBeSeenLaterThanItIsHeard) {
  EXPECT_FALSE(Unchanged(milliseconds(1999), seconds(3)));
}

TEST_F(HeardWritesTest, EvenSoItIsReadNowAndThen) {
  EXPECT_TRUE(Unchanged(seconds(2), milliseconds(31'999)));
  EXPECT_FALSE(Unchanged(seconds(2), seconds(32)));
}

TEST_F(HeardWritesTest, NothingIsKnownOfALogInWhichNobodyBeats) {
  heard_.Begin(At(seconds(10)));
  EXPECT_FALSE(Unchanged(seconds(13), seconds(14))) << "beats of another log";
  heard_.Beat();
  EXPECT_TRUE(Unchanged(seconds(13), seconds(14)));
}

TEST_F(HeardWritesTest, NothingIsKnownWhereNobodyListens) {
  heard_.End();
  EXPECT_FALSE(Unchanged(seconds(2), seconds(3)));
  EXPECT_FALSE(HeardWrites().UnchangedSince(At(seconds(2)), At(seconds(3))));
}

}  // namespace
}  // namespace millrace::engine
