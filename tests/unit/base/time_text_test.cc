#include "framework/base/time_text.h"

#include <gtest/gtest.h>

#include "framework/base/log.h"
#include "framework/base/random.h"

namespace millrace::engine {
namespace {

TEST(TimeTextTest, ReadsWhatItWrites) {
  for (const char* text :
       {"2026-11-20T18:00:00Z", "2024-02-29T23:59:59.25Z", "1969-12-31T23:59:59.999999Z"}) {
    const auto time = ParseTime(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(FormatTime(*time), text);
  }
}

TEST(TimeTextTest, TurnsOtherZonesIntoUtc) {
  EXPECT_EQ(FormatTime(ParseTime("2026-11-20T20:00:00+02:00").value()), "2026-11-20T18:00:00Z");
  EXPECT_EQ(FormatTime(ParseTime("2026-11-20T18:30:00-05:30").value()), "2026-11-21T00:00:00Z");
}

TEST(TimeTextTest, RefusesWhatIsNoTimeAndSaysHowToWriteIt) {
  for (const char* text :
       {"", "tomorrow", "2026-11-20", "2026-11-20T18:00:00", "2026-02-30T00:00:00Z", "2026-11-20T25:00:00Z",
        "2026-11-20T18:00:00.Z", "2026-11-20T18:00:00Zx", "2026-11-20T18:00:00+2:00"}) {
    const auto time = ParseTime(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error().code, ErrorCode::Invalid);
    EXPECT_NE(time.error().message.find("2026-11-20T18:00:00Z"), std::string::npos);
  }
}

TEST(TimeTextTest, DurationsAreReadWithEachUnit) {
  EXPECT_EQ(ParseDuration("200ms").value(), Micros(200'000));
  EXPECT_EQ(ParseDuration("1h30m").value(), std::chrono::minutes(90));
  EXPECT_EQ(ParseDuration("2.5s").value(), Micros(2'500'000));
  EXPECT_EQ(ParseDuration("7d").value(), std::chrono::days(7));
  EXPECT_EQ(ParseDuration("0s").value(), Micros(0));
}

TEST(TimeTextTest, DurationsWithoutAUnitOrWithASignAreRefused) {
  for (const char* text : {"", "5", "-1s", "1x", "m", "1h 30m", "99999999d"})
    EXPECT_FALSE(ParseDuration(text)) << text;
}

TEST(TimeTextTest, DurationsComeBackAsTheyWere) {
  Random random(7);
  for (int i = 0; i < 1'000; ++i) {
    const Micros duration(static_cast<std::int64_t>(random.Below(1'000'000'000'000)));
    EXPECT_EQ(ParseDuration(FormatDuration(duration)).value(), duration) << FormatDuration(duration);
  }
}

TEST(RandomTest, ASeedFixesTheSequence) {
  Random one(42);
  Random other(42);
  EXPECT_EQ(one.Next(), other.Next());
  EXPECT_EQ(one.Hex(12), other.Hex(12));
  EXPECT_EQ(one.Hex(12).size(), 12U);
  for (int i = 0; i < 100; ++i) {
    const double unit = one.Unit();
    EXPECT_GE(unit, 0.0);
    EXPECT_LT(unit, 1.0);
    EXPECT_LT(one.Below(3), 3U);
  }
}

}  // namespace
}  // namespace millrace::engine
