#include "framework/schedule/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/time_of.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Timing CronIn(const char* expression, const char* zone) {
  return {Cron::Parse(expression).value(), TimeZone::Find(zone).value()};
}

// What the clock of the zone shows at the firings in (after, until].
std::vector<std::string> Fired(const Timing& timing, const char* after, const char* until) {
  std::vector<std::string> shown;
  auto next = NextFiring(timing, WallTime(), At(after));
  for (; next && *next <= At(until); next = NextFiring(timing, WallTime(), *next))
    shown.push_back(FormatLocal(*next, timing.zone).substr(5));
  return shown;
}

// 2026-03-29: 02:00 to 03:00 is skipped.
std::vector<std::string> BerlinSpring(const char* expression) {
  return Fired(CronIn(expression, "Europe/Berlin"), "2026-03-28T23:30:00Z", "2026-03-29T02:30:00Z");
}

TEST(BerlinTest, ASkippedTimeFiresOnceBehindTheGap) {
  EXPECT_THAT(BerlinSpring("30 2 * * *"), ElementsAre("03-29 03:00 +0200"));
  EXPECT_THAT(BerlinSpring("0 2 * * *"), ElementsAre("03-29 03:00 +0200"));
  EXPECT_THAT(BerlinSpring("0,20,40 2 * * *"), ElementsAre("03-29 03:00 +0200"));
  EXPECT_THAT(BerlinSpring("0 2,3 * * *"), ElementsAre("03-29 03:00 +0200"));
  EXPECT_THAT(BerlinSpring("15 1-3 * * *"),
              ElementsAre("03-29 01:15 +0100", "03-29 03:00 +0200", "03-29 03:15 +0200"));
  EXPECT_THAT(BerlinSpring("59 1 * * *"), ElementsAre("03-29 01:59 +0100"));
  EXPECT_THAT(BerlinSpring("0 3 * * *"), ElementsAre("03-29 03:00 +0200"));
}

TEST(BerlinTest, WhatCountsTimeGoesOnOverTheGap) {
  EXPECT_THAT(BerlinSpring("*/30 * * * *"),
              ElementsAre("03-29 01:00 +0100", "03-29 01:30 +0100", "03-29 03:00 +0200", "03-29 03:30 +0200",
                          "03-29 04:00 +0200", "03-29 04:30 +0200"));
  EXPECT_THAT(BerlinSpring("5 * * * *"),
              ElementsAre("03-29 01:05 +0100", "03-29 03:05 +0200", "03-29 04:05 +0200"));
  EXPECT_THAT(BerlinSpring("0 */2 * * *"), ElementsAre("03-29 04:00 +0200"));
}

TEST(BerlinTest, StepsInASkippedHourLoseNoDay) {
  EXPECT_THAT(BerlinSpring("*/15 2 * * *"), ElementsAre("03-29 03:00 +0200"));
}

// 2026-10-25: 02:00 to 03:00 comes twice.
std::vector<std::string> BerlinAutumn(const char* expression) {
  return Fired(CronIn(expression, "Europe/Berlin"), "2026-10-24T22:30:00Z", "2026-10-25T03:00:00Z");
}

TEST(BerlinTest, ADoubledTimeFiresTheFirstTime) {
  EXPECT_THAT(BerlinAutumn("30 2 * * *"), ElementsAre("10-25 02:30 +0200"));
  EXPECT_THAT(BerlinAutumn("0 2,3 * * *"), ElementsAre("10-25 02:00 +0200", "10-25 03:00 +0100"));
  EXPECT_THAT(BerlinAutumn("0,30 1-3 * * *"),
              ElementsAre("10-25 01:00 +0200", "10-25 01:30 +0200", "10-25 02:00 +0200", "10-25 02:30 +0200",
                          "10-25 03:00 +0100", "10-25 03:30 +0100"));
}

TEST(BerlinTest, WhatCountsTimeFiresBothTimes) {
  EXPECT_THAT(BerlinAutumn("15 * * * *"), ElementsAre("10-25 01:15 +0200", "10-25 02:15 +0200",
                                                      "10-25 02:15 +0100", "10-25 03:15 +0100"));
  EXPECT_THAT(BerlinAutumn("*/30 2 * * *"), ElementsAre("10-25 02:00 +0200", "10-25 02:30 +0200",
                                                        "10-25 02:00 +0100", "10-25 02:30 +0100"));
}

TEST(BerlinTest, ADoubledHourThatHasPassedOnceIsOverFromWithinItsSecondTime) {
  const Timing nightly = CronIn("30 2 * * *", "Europe/Berlin");
  EXPECT_EQ(NextFiring(nightly, WallTime(), At("2026-10-25T01:10:00Z")), At("2026-10-26T01:30:00Z"));
}

// 2026-03-08: 02:00 to 03:00 is skipped; 2026-11-01: 01:00 to 02:00 comes twice.
TEST(NewYorkTest, BothNights) {
  const char* zone = "America/New_York";
  const auto spring = [&](const char* expression) {
    return Fired(CronIn(expression, zone), "2026-03-08T05:30:00Z", "2026-03-08T08:00:00Z");
  };
  EXPECT_THAT(spring("30 2 * * *"), ElementsAre("03-08 03:00 -0400"));
  EXPECT_THAT(spring("0 * * * *"),
              ElementsAre("03-08 01:00 -0500", "03-08 03:00 -0400", "03-08 04:00 -0400"));
  const auto autumn = [&](const char* expression) {
    return Fired(CronIn(expression, zone), "2026-11-01T04:30:00Z", "2026-11-01T07:00:00Z");
  };
  EXPECT_THAT(autumn("30 1 * * *"), ElementsAre("11-01 01:30 -0400"));
  EXPECT_THAT(autumn("0,59 1 * * SUN"), ElementsAre("11-01 01:00 -0400", "11-01 01:59 -0400"));
  EXPECT_THAT(autumn("*/30 1 * * *"), ElementsAre("11-01 01:00 -0400", "11-01 01:30 -0400",
                                                  "11-01 01:00 -0500", "11-01 01:30 -0500"));
}

TEST(TimingTest, ADayThatNeverWasFiresAtItsEnd) {
  // Samoa had no 30th of December 2011.
  EXPECT_THAT(Fired(CronIn("0 9 * * *", "Pacific/Apia"), "2011-12-29T20:00:00Z", "2011-12-31T12:00:00Z"),
              ElementsAre("12-31 00:00 +1400", "12-31 09:00 +1400"));
}

TEST(TimingTest, HalfAnHourIsSkippedAndDoubledToo) {
  EXPECT_THAT(
      Fired(CronIn("15 2 * * *", "Australia/Lord_Howe"), "2026-10-03T12:00:00Z", "2026-10-03T23:00:00Z"),
      ElementsAre("10-04 02:30 +1100"));
  EXPECT_THAT(
      Fired(CronIn("45 1 * * *", "Australia/Lord_Howe"), "2026-04-04T10:00:00Z", "2026-04-04T23:00:00Z"),
      ElementsAre("04-05 01:45 +1100"));
}

TEST(TimingTest, AFixedRateKeepsToItsGrid) {
  const Timing timing{FixedRate{5min}};
  const WallTime anchor = At("2026-11-22T18:01:00Z");
  EXPECT_EQ(NextFiring(timing, anchor, At("2026-11-22T10:00:00Z")), anchor);
  EXPECT_EQ(NextFiring(timing, anchor, anchor), anchor + 5min);
  EXPECT_EQ(NextFiring(timing, anchor, anchor + 5min - 1us), anchor + 5min);
  EXPECT_EQ(NextFiring(timing, anchor, anchor + 1000h), anchor + 1000h + 5min);
}

TEST(TimingTest, NothingFiresBeforeTheAnchor) {
  const WallTime anchor = At("2026-11-25T00:00:00Z");
  EXPECT_EQ(NextFiring(CronIn("0 2 * * *", "UTC"), anchor, At("2026-11-22T18:00:00Z")),
            At("2026-11-25T02:00:00Z"));
  EXPECT_EQ(NextFiring(CronIn("0 0 * * *", "UTC"), anchor, At("2026-11-22T18:00:00Z")), anchor);
}

TEST(TimingTest, AOneShotFiresOnce) {
  const Timing timing{OneShot{At("2026-12-01T02:00:00Z")}};
  EXPECT_EQ(NextFiring(timing, WallTime(), At("2026-11-22T18:00:00Z")), At("2026-12-01T02:00:00Z"));
  EXPECT_EQ(NextFiring(timing, WallTime(), At("2026-12-01T02:00:00Z")), std::nullopt);
}

TEST(TimingTest, ARhythmIsKnownByItsText) {
  EXPECT_EQ(RhythmText(CronIn("0  2 * * *", "Europe/Berlin")), "cron 0 2 * * * Europe/Berlin");
  EXPECT_EQ(RhythmText({FixedRate{90s}}), "every 1m30s");
  EXPECT_EQ(RhythmText({FixedDelay{30s}}), "after 30s");
  EXPECT_EQ(RhythmText({OneShot{At("2026-12-01T02:00:00Z")}}), "at 2026-12-01T02:00:00Z");
}

RC_GTEST_PROP(TimingPropertyTest, FiringsOnlyGoOnAndTheLastOfThemIsFound, ()) {
  const char* expression = *rc::gen::element("30 2 * * *", "*/15 * * * *", "0,30 1-3 * * *", "0 0 1 * *",
                                             "*/20 2 * * 0", "15 * * * *", "@daily", "0 0 29 2 *");
  const char* zone = *rc::gen::element("Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                       "Antarctica/Troll", "Africa/Casablanca", "UTC");
  const Timing timing = CronIn(expression, zone);
  const WallTime start =
      At("2026-01-01T00:00:00Z") + Micros(*rc::gen::inRange<std::int64_t>(0, 31'536'000'000'000));
  const auto first = NextFiring(timing, WallTime(), start);
  RC_ASSERT(first.has_value());
  WallTime last = *first;
  const int count = *rc::gen::inRange(0, 60);
  for (int i = 0; i < count; ++i) {
    const auto next = NextFiring(timing, WallTime(), last);
    RC_ASSERT(next.has_value());
    RC_ASSERT(*next > last);
    RC_ASSERT(NextFiring(timing, WallTime(), *next - Micros(1)) == *next);
    last = *next;
  }
  const WallTime behind = *NextFiring(timing, WallTime(), last);
  RC_ASSERT(LastFiring(timing, WallTime(), *first, last) == last);
  RC_ASSERT(LastFiring(timing, WallTime(), *first, behind - Micros(1)) == last);
  RC_ASSERT(CountFirings(timing, WallTime(), start, last, 1000) == static_cast<std::size_t>(count) + 1);
}

TEST(TimeZoneTest, IsFoundByItsExactName) {
  for (const char* name :
       {"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Argentina/Buenos_Aires", "EST5EDT"})
    EXPECT_EQ(TimeZone::Find(name)->name(), name);
}

TEST(TimeZoneTest, IsSuggestedWhereNoneIsMeant) {
  const auto refusal = [](std::string_view name) {
    const auto zone = TimeZone::Find(name);
    return zone ? "taken" : zone.error().message;
  };
  EXPECT_THAT(refusal("Europe/Berln"), HasSubstr("(did you mean 'Europe/Berlin'?)"));
  EXPECT_THAT(refusal("europe/berlin"), HasSubstr("(did you mean 'Europe/Berlin'?)"));
  EXPECT_THAT(refusal("Kathmandu"), HasSubstr("(did you mean 'Asia/Kathmandu'?)"));
  EXPECT_THAT(refusal("new york"), HasSubstr("(did you mean 'America/New_York'?)"));
  EXPECT_THAT(refusal("Middle-earth/Shire"), HasSubstr("write a name of the IANA database"));
  EXPECT_EQ(TimeZone::Find("nowhere").error().code, ErrorCode::Invalid);
}

// They would be read as another zone on each machine, as files that are none, or with leap seconds.
TEST(TimeZoneTest, RefusesWhatIsNoZoneOfItsOwn) {
  for (const char* name : {"localtime", "leapseconds", "tzdata.zi", "zone.tab", "right/Europe/Berlin",
                           "posixrules", "../../../etc/passwd", "/etc/localtime", "", "Europe", "Europe/"}) {
    EXPECT_FALSE(TimeZone::Find(name)) << name;
  }
}

TEST(FormatLocalTest, ShowsSecondsWhereThereAreAny) {
  EXPECT_EQ(FormatLocal(At("2026-11-22T17:00:00Z"), {}), "2026-11-22 17:00 +0000");
  EXPECT_EQ(FormatLocal(At("2026-11-22T17:00:05Z"), {}), "2026-11-22 17:00:05 +0000");
}

}  // namespace
}  // namespace millrace::engine
