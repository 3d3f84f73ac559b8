#include "framework/schedule/run_hours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "framework/schedule/timing.h"
#include "tests/support/time_of.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunHours Hours(std::chrono::minutes from, std::chrono::minutes to, const char* zone = "Europe/Berlin") {
  return {from, to, TimeZone::Find(zone).value()};
}

// What the clock shows where they open (+) and close (-) in the night before the given day and in it.
std::vector<std::string> Changes(const RunHours& hours, const char* from, const char* until) {
  std::vector<std::string> changes;
  for (auto next = NextChange(hours, At(from)); next && *next < At(until); next = NextChange(hours, *next))
    changes.push_back((IsOpen(hours, *next) ? "+" : "-") + FormatLocal(*next, hours.zone).substr(11));
  return changes;
}

TEST(RunHoursTest, AreOpenFromTheirBeginningAndBeforeTheirEnd) {
  const RunHours night = Hours(60min, 360min, "UTC");
  EXPECT_FALSE(IsOpen(night, At("2026-11-22T00:59:59.999999Z")));
  EXPECT_TRUE(IsOpen(night, At("2026-11-22T01:00:00Z")));
  EXPECT_TRUE(IsOpen(night, At("2026-11-22T05:59:59.999999Z")));
  EXPECT_FALSE(IsOpen(night, At("2026-11-22T06:00:00Z")));
  EXPECT_EQ(NextChange(night, At("2026-11-22T00:30:00.5Z")), At("2026-11-22T01:00:00Z"));
  EXPECT_EQ(NextChange(night, At("2026-11-22T01:00:00Z")), At("2026-11-22T06:00:00Z"));
  EXPECT_EQ(NextChange(night, At("2026-11-22T06:00:00Z")), At("2026-11-23T01:00:00Z"));
}

TEST(RunHoursTest, MayGoOverMidnight) {
  const RunHours night = Hours(22h, 6h);
  EXPECT_TRUE(IsOpen(night, At("2026-11-22T22:00:00Z")));
  EXPECT_TRUE(IsOpen(night, At("2026-11-22T23:30:00Z")));
  EXPECT_FALSE(IsOpen(night, At("2026-11-23T05:00:00Z")));
  EXPECT_THAT(Changes(night, "2026-11-22T12:00:00Z", "2026-11-24T00:00:00Z"),
              ElementsAre("+22:00 +0100", "-06:00 +0100", "+22:00 +0100"));
}

TEST(RunHoursTest, TheDaysEndIsAnEnd) {
  EXPECT_THAT(Changes(Hours(22h, 24h), "2026-11-22T12:00:00Z", "2026-11-23T12:00:00Z"),
              ElementsAre("+22:00 +0100", "-00:00 +0100"));
  EXPECT_THAT(Changes(Hours(0h, 6h), "2026-11-22T12:00:00Z", "2026-11-23T12:00:00Z"),
              ElementsAre("+00:00 +0100", "-06:00 +0100"));
  const RunHours always = Hours(0h, 24h);
  EXPECT_TRUE(IsOpen(always, At("2026-11-22T23:59:59Z")));
  EXPECT_EQ(NextChange(always, At("2026-11-22T12:00:00Z")), std::nullopt);
}

// 2026-03-29: 02:00 to 03:00 is skipped.
TEST(RunHoursTest, OpenAtTheJumpWhereTheirBeginningIsSkipped) {
  const auto spring = [](RunHours hours) {
    return Changes(hours, "2026-03-28T23:30:00Z", "2026-03-29T12:00:00Z");
  };
  EXPECT_THAT(spring(Hours(150min, 240min)), ElementsAre("+03:00 +0200", "-04:00 +0200"));
  EXPECT_THAT(spring(Hours(90min, 150min)), ElementsAre("+01:30 +0100", "-03:00 +0200"));
  EXPECT_THAT(spring(Hours(1h, 6h)), ElementsAre("+01:00 +0100", "-06:00 +0200")) << "an hour shorter";
  EXPECT_THAT(spring(Hours(2h, 3h)), IsEmpty()) << "the clock shows none of it";
  EXPECT_THAT(spring(Hours(3h, 2h)), ElementsAre()) << "it is open over the jump";
}

// 2026-10-25: 02:00 to 03:00 comes twice.
TEST(RunHoursTest, WhatTheClockShowsTwiceIsOpenTwice) {
  const auto autumn = [](RunHours hours) {
    return Changes(hours, "2026-10-24T22:30:00Z", "2026-10-25T12:00:00Z");
  };
  EXPECT_THAT(autumn(Hours(1h, 6h)), ElementsAre("+01:00 +0200", "-06:00 +0100")) << "an hour longer";
  EXPECT_THAT(autumn(Hours(2h, 150min)),
              ElementsAre("+02:00 +0200", "-02:30 +0200", "+02:00 +0100", "-02:30 +0100"));
  EXPECT_THAT(autumn(Hours(150min, 180min)),
              ElementsAre("+02:30 +0200", "-02:00 +0100", "+02:30 +0100", "-03:00 +0100"));
  EXPECT_THAT(autumn(Hours(2h, 3h)), ElementsAre("+02:00 +0200", "-03:00 +0100"));
}

TEST(RunHoursTest, SayWhenTheyOpen) {
  EXPECT_EQ(OutsideHours(Hours(1h, 6h), At("2026-11-22T12:00:00Z")),
            "outside its hours until 01:00 Europe/Berlin");
  EXPECT_EQ(OutsideHours(Hours(150min, 4h), At("2026-03-29T00:00:00Z")),
            "outside its hours until 03:00 Europe/Berlin")
      << "at the jump";
  EXPECT_EQ(OutsideHours(Hours(1h, 6h), At("2026-11-22T02:00:00Z")), "");
}

// Against a minute by minute look at the clock, over the nights in which it jumps.
RC_GTEST_PROP(RunHoursProperty, ChangeWhereTheClockSaysSo, ()) {
  const auto from = std::chrono::minutes(*rc::gen::inRange(0, 24 * 60));
  const auto to = std::chrono::minutes(*rc::gen::inRange(0, 24 * 60 + 1));
  RC_PRE(from != to && to - from != 24h);
  const char* zone = *rc::gen::element("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC");
  const RunHours hours = Hours(from, to, zone);
  const auto day = *rc::gen::inRange(0, 365);
  const WallTime at = At("2026-01-01T00:00:00Z") + std::chrono::days(day) +
                      std::chrono::minutes(*rc::gen::inRange(0, 24 * 60));
  WallTime changed = at + 1min;
  while (IsOpen(hours, changed) == IsOpen(hours, at)) changed += 1min;
  RC_ASSERT(NextChange(hours, at).value() == changed);
}

}  // namespace
}  // namespace millrace::engine
