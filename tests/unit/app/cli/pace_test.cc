#include "coordinator/app/cli/pace.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;

constexpr BootTime kStart{};

TEST(PaceTest, ARateIsReadBySecondsAndMinutes) {
  EXPECT_EQ(ParseRate("500/s").value(), 500);
  EXPECT_EQ(ParseRate("500").value(), 500);
  EXPECT_EQ(ParseRate("0.5/s").value(), 0.5);
  EXPECT_EQ(ParseRate("30/m").value(), 0.5);
  for (const char* wrong : {"", "0", "-1", "500/h", "fast", "500 /s", "1e9", "nan", "inf"})
    EXPECT_FALSE(ParseRate(wrong)) << wrong;
}

TEST(PaceTest, AStepIsAQuarterOfASecondsTasksWithinItsBounds) {
  EXPECT_EQ(Pace(100, 999).StepSize(), 25U);
  EXPECT_EQ(Pace(0.5, 999).StepSize(), 1U);
  EXPECT_EQ(Pace(1'000'000, 999).StepSize(), 999U);
}

TEST(PaceTest, TheRestFillsTheTimeOfTheTasks) {
  const Pace pace(100, 999);
  EXPECT_EQ(pace.Rest(25, kStart, kStart + milliseconds(50)), milliseconds(200));
  EXPECT_EQ(pace.Rest(1, kStart, kStart), milliseconds(10)) << "of those that were changed alone";
  EXPECT_EQ(Pace(0.5, 999).Rest(1, kStart, kStart), milliseconds(2000));
}

TEST(PaceTest, ASlowDatabaseGetsAsLongARestAsTheStepTook) {
  const Pace pace(1'000'000, 999);
  EXPECT_EQ(pace.Rest(999, kStart, kStart + milliseconds(300)), milliseconds(300));
  EXPECT_EQ(pace.Rest(999, kStart, kStart + milliseconds(60'000)), milliseconds(2000));
}

// A million tasks at the rate that holds unless somebody says otherwise.
TEST(PaceTest, TheTotalKeepsToTheRate) {
  const Pace pace(kBulkRate, 999);
  BootTime now = kStart;
  std::size_t done = 0;
  while (done < 1'000'000) {
    const BootTime began = now;
    now += milliseconds(20);
    done += pace.StepSize();
    now += pace.Rest(pace.StepSize(), began, now);
  }
  EXPECT_GE(now - kStart, std::chrono::seconds(199));
  EXPECT_LE(now - kStart, std::chrono::seconds(202));
}

}  // namespace
}  // namespace millrace::engine
