#include "framework/http/admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::engine {
namespace {

using Phase = HeldConnection::Phase;

constexpr Micros kSlow = std::chrono::seconds(1);

BootTime At(int seconds) { return BootTime(std::chrono::seconds(seconds)); }

TEST(AdmissionTest, TheOldestIdleOneGoesFirst) {
  const std::vector<HeldConnection> held{
      {1, Phase::Reading, At(1)}, {2, Phase::Idle, At(8)}, {3, Phase::Idle, At(7)}};
  EXPECT_EQ(WhoMakesRoom(held, At(9), kSlow), 3U);
}

TEST(AdmissionTest, ThenWhoeverHasTakenLongestToAsk) {
  const std::vector<HeldConnection> held{
      {1, Phase::Writing, At(1)}, {2, Phase::Reading, At(8)}, {3, Phase::Reading, At(7)}};
  EXPECT_EQ(WhoMakesRoom(held, At(9), kSlow), 3U);
}

TEST(AdmissionTest, ThenTheSlowestReader) {
  const std::vector<HeldConnection> held{{1, Phase::Writing, At(5)}, {2, Phase::Writing, At(4)}};
  EXPECT_EQ(WhoMakesRoom(held, At(6), kSlow), 2U);
}

TEST(AdmissionTest, WhoReadsItsAnswerAtAnHonestPaceStays) {
  const std::vector<HeldConnection> held{{1, Phase::Writing, At(5)}, {2, Phase::Writing, At(5)}};
  EXPECT_EQ(WhoMakesRoom(held, At(6), kSlow), std::nullopt);
}

TEST(AdmissionTest, OfUnsentAnswersTheOldestGoes) {
  const std::vector<HeldConnection> held{
      {1, Phase::Writing, At(5)}, {2, Phase::Writing, At(4)}, {3, Phase::Idle, At(1)}};
  EXPECT_EQ(SlowestReader(held), 2U);
  EXPECT_EQ(SlowestReader(std::vector<HeldConnection>{{3, Phase::Idle, At(1)}}), std::nullopt);
}

}  // namespace
}  // namespace millrace::engine
