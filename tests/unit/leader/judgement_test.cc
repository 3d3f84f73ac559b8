#include "coordinator/leader/membership.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;

class JudgementTest : public testing::Test {
 protected:
  static BootTime At(int second) { return BootTime(seconds(1000 + second)); }
  void Lose(int from, int to) {
    judgement_.Disconnected(At(from));
    EXPECT_EQ(judgement_.From(), BootTime::max());
    judgement_.Connected(At(to));
  }

  Judgement judgement_{seconds(10)};
};

TEST_F(JudgementTest, WaitsOneTimeOutAfterTheConnection) {
  judgement_.Connected(At(0));
  EXPECT_EQ(judgement_.From(), At(10));
  judgement_.Decided(At(10));
  Lose(100, 101);
  EXPECT_EQ(judgement_.From(), At(111));
}

TEST_F(JudgementTest, ARowOfShortLossesPutsItOffNoFurtherThanOneAndAHalfTimeOuts) {
  judgement_.Connected(At(0));
  judgement_.Decided(At(10));
  Lose(20, 21);
  EXPECT_EQ(judgement_.From(), At(31));
  Lose(28, 29);
  EXPECT_EQ(judgement_.From(), At(36));
  Lose(35, 37);
  EXPECT_EQ(judgement_.From(), At(36));  // at once
  judgement_.Decided(At(37));
  Lose(43, 44);  // a new row
  EXPECT_EQ(judgement_.From(), At(54));
}

TEST_F(JudgementTest, WhatIsDecidedTooSoonEndsNoRow) {
  judgement_.Connected(At(0));
  judgement_.Decided(At(9));
  Lose(9, 9);
  EXPECT_EQ(judgement_.From(), At(15));
}

TEST_F(JudgementTest, AnOutageAsLongAsASessionLivesGivesEverybodyTheWholeTimeAgain) {
  judgement_.Connected(At(0));
  Lose(5, 15);
  EXPECT_EQ(judgement_.From(), At(25));
  Lose(20, 60);
  EXPECT_EQ(judgement_.From(), At(70));
}

}  // namespace
}  // namespace millrace::engine
