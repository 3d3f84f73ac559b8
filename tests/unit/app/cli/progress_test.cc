#include "coordinator/app/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/app/cli/text.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;

const ProgressNumbers kNumbers{10'000, 3, 5, 5'000, false, 2500};

TEST(ProgressTextTest, SaysAllThatMattersWhereThereIsRoom) {
  const std::string line = ProgressText(kNumbers, 120);
  EXPECT_THAT(line,
              HasSubstr("66 %  10,000 done · 3 failed · 5 retrying · 5,000 waiting · 2,500/s · 2 s left"));
}

TEST(ProgressTextTest, IsNeverWiderThanTheTerminal) {
  for (std::size_t width = 0; width < 140; ++width) {
    EXPECT_LE(DisplayWidth(ProgressText(kNumbers, width)), width);
  }
}

TEST(ProgressTextTest, ABoundGivesNoShareAndNoTimeLeft) {
  const std::string line = ProgressText({5, 0, 0, 10'000, true, 100}, 120);
  EXPECT_EQ(line, "5 done · 10,000 or more waiting · 100/s");
}

TEST(ProgressTextTest, WhatGoesInSaysHowMuchIsLeftWhereThatIsKnown) {
  EXPECT_EQ(IntakeText(1'234'000, 5'000'000, 98'300), "1,234,000 of 5,000,000 in · 98,300/s · 39 s left");
  EXPECT_EQ(IntakeText(1'234'000, std::nullopt, 98'300), "1,234,000 in · 98,300/s");
  EXPECT_EQ(IntakeText(0, 5, 0), "0 of 5 in");
  EXPECT_EQ(IntakeText(5, 5, 10), "5 of 5 in · 10/s");
}

TEST(ProgressTextTest, TheRateFollowsTheWork) {
  RateMeter meter;
  const BootTime begin{};
  EXPECT_EQ(meter.Rate(0, begin), 0);
  EXPECT_DOUBLE_EQ(meter.Rate(100, begin + std::chrono::seconds(1)), 100);
}

}  // namespace
}  // namespace millrace::engine
