#include "framework/mill/hours_policy.h"

#include <gtest/gtest.h>

#include "framework/mill/starts.h"
#include "framework/testing/manual_clock.h"

namespace millrace::engine {
namespace {

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::seconds;

const HoursConfig kNight{.from = 60, .to = 300};
constexpr Micros kLastSecond = minutes(300) - seconds(1);

TEST(HoursPolicyTest, NothingStartsOnceTheyHaveEnded) {
  ManualClock clock(WallTime(days(20'000)) + kLastSecond);
  HoursPolicy hours(kNight, clock);
  EXPECT_EQ(hours.Take(3, clock.Now()), 3u);
  clock.Advance(seconds(1));
  EXPECT_EQ(hours.Take(3, clock.Now()), 0u) << "though no look has seen their end";
  clock.Advance(days(1) - minutes(240));
  EXPECT_EQ(hours.Take(3, clock.Now()), 3u);
}

TEST(HoursPolicyTest, WhatIsQueuedAtTheirEndStaysWithoutAStart) {
  ManualClock clock(WallTime(days(20'000)) + kLastSecond);
  const auto gate =
      std::make_shared<TypeGate>("report", StartPolicies{std::make_shared<HoursPolicy>(kNight, clock)});
  std::vector<AttemptPtr> queued;
  for (int i = 0; i < 2; ++i) {
    queued.push_back(std::make_shared<Attempt>(nullptr, "s", Task{}, nullptr, false));
    queued.back()->gate = gate;
  }
  gate->Claimed(2);
  clock.Advance(seconds(1));
  ASSERT_TRUE(gate->Open(clock.Now(), clock.WallNow() - seconds(1))) << "as the worker saw it last";
  EXPECT_EQ(TakeStarts(queued, clock.Now()).size(), 2u);
  EXPECT_TRUE(queued.empty());
  EXPECT_EQ(gate->Waiting(), 2u);
}

}  // namespace
}  // namespace millrace::engine
