#include "framework/threads/pulse.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

constexpr Micros kPatience = std::chrono::seconds(5);

BootTime After(int seconds) { return BootTime(std::chrono::hours(1) + std::chrono::seconds(seconds)); }

TEST(PulseTest, NothingIsExpectedBeforeItsFirstWord) {
  const Pulse pulse;
  EXPECT_FALSE(pulse.StandsStill(After(1'000'000), kPatience));
}

TEST(PulseTest, StandsStillOnceItIsOverdueForLongerThanThePatience) {
  Pulse pulse;
  pulse.Expect(After(10));
  EXPECT_FALSE(pulse.StandsStill(After(0), kPatience));
  EXPECT_FALSE(pulse.StandsStill(After(15), kPatience));
  EXPECT_TRUE(pulse.StandsStill(After(16), kPatience));
  pulse.Expect(After(16));
  EXPECT_FALSE(pulse.StandsStill(After(16), kPatience));
}

TEST(PulseTest, WhoRestsIsNotExpectedUntilTheRestIsOver) {
  Pulse pulse;
  const BootTime now = BootClock::now();
  pulse.Within(std::chrono::hours(1));
  EXPECT_FALSE(pulse.StandsStill(now + std::chrono::minutes(59), Micros(0)));
  EXPECT_TRUE(pulse.StandsStill(now + std::chrono::minutes(62), Micros(0)));
}

TEST(PulseTest, ARestWithoutAnEndIsNone) {
  Pulse pulse;
  pulse.Within(Micros::max());
  EXPECT_FALSE(pulse.StandsStill(BootClock::now(), Micros(0)));
}

TEST(PulseTest, NothingIsExpectedOfOneThatHasEnded) {
  Pulse pulse;
  pulse.Now();
  pulse.Never();
  EXPECT_FALSE(pulse.StandsStill(BootClock::now() + std::chrono::hours(1), kPatience));
}

}  // namespace
}  // namespace millrace::engine
