#include "framework/policy/brake.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Micros kLimit = milliseconds(50);

class BrakeTest : public ::testing::Test {
 protected:
  // Answers that took so long, one every 20 ms.
  void Answer(Micros took, Micros span, Micros limit = kLimit) {
    for (const BootTime end = now_ + span; now_ < end; now_ += milliseconds(20)) {
      brake_.Answered(now_, took, limit);
    }
  }
  void FailFor(Micros span) {
    for (const BootTime end = now_ + span; now_ < end; now_ += milliseconds(100)) brake_.Failed(now_);
  }

  Brake brake_;
  BootTime now_{seconds(100)};
};

TEST_F(BrakeTest, WithinTheLimitNothingIsHeldBack) {
  Answer(kLimit, seconds(5));
  EXPECT_EQ(brake_.Speed(), 1);
  EXPECT_EQ(brake_.Rows(999), 999u);
  EXPECT_EQ(brake_.RestAfter(seconds(5)), Micros(0));
}

TEST_F(BrakeTest, AnAnswerBeyondItHalvesTheSpeedOnceAStep) {
  brake_.Answered(now_, milliseconds(51), kLimit);
  EXPECT_EQ(brake_.Speed(), 0.5);
  EXPECT_EQ(brake_.Rows(999), 499u);
  EXPECT_EQ(brake_.RestAfter(milliseconds(30)), milliseconds(30));
  Answer(milliseconds(51), Brake::kStep);
  EXPECT_EQ(brake_.Speed(), 0.5);
  brake_.Answered(now_, milliseconds(51), kLimit);
  EXPECT_EQ(brake_.Speed(), 0.25);
}

TEST_F(BrakeTest, ItNeverStandsStill) {
  Answer(seconds(1), seconds(60));
  EXPECT_EQ(brake_.Speed(), Brake::kLeast);
  EXPECT_GE(brake_.Rows(10), 1u);
  EXPECT_LE(brake_.RestAfter(seconds(60)), Brake::kLongestPause);
}

TEST_F(BrakeTest, ItRisesStepByStep) {
  brake_.Answered(now_, seconds(1), kLimit);
  Answer(milliseconds(1), 3 * Brake::kStep);
  EXPECT_DOUBLE_EQ(brake_.Speed(), 0.5 + 2 * Brake::kRise);
  Answer(milliseconds(1), 10 * Brake::kStep);
  EXPECT_EQ(brake_.Speed(), 1);
}

TEST_F(BrakeTest, WithoutALimitNothingIsTooSlow) {
  brake_.Answered(now_, seconds(1), kLimit);
  brake_.Answered(now_, seconds(1), Micros(0));
  EXPECT_EQ(brake_.Speed(), 1);
}

TEST_F(BrakeTest, AfterAnOutageItBeginsAtTheLeastAndDoublesWithALimitOrWithout) {
  for (const Micros limit : {kLimit, Micros(0)}) {
    brake_ = {};
    FailFor(seconds(2));
    brake_.Answered(now_, milliseconds(1), limit);
    EXPECT_EQ(brake_.Speed(), Brake::kLeast);
    Answer(milliseconds(1), 3 * Brake::kStep + milliseconds(20), limit);
    EXPECT_EQ(brake_.Speed(), 8 * Brake::kLeast);
    Answer(milliseconds(1), seconds(1), limit);
    EXPECT_EQ(brake_.Speed(), 1);
  }
}

TEST_F(BrakeTest, TroubleOfAMomentIsNoOutage) {
  FailFor(milliseconds(500));
  brake_.Answered(now_, milliseconds(1), kLimit);
  EXPECT_EQ(brake_.Speed(), 1);
}

}  // namespace
}  // namespace millrace::engine
