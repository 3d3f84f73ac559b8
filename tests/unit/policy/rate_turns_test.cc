#include "framework/policy/rate_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;

class RateTurnsTest : public ::testing::Test {
 protected:
  // Who has it from now on, once all have heard of it.
  std::set<std::string> Choose(double rate) {
    now_ += milliseconds(300);
    const std::set<std::string> chosen = turns_.Choose(rate, takers_, now_);
    for (auto& [id, taker] : takers_) taker.has = chosen.contains(id);
    return chosen;
  }
  void Wants(const std::string& id, bool wants = true) { takers_[id].use.wants_rate = wants; }

  RateTurns turns_;
  std::map<std::string, RateTurns::Taker> takers_{{"w1", {}}, {"w2", {}}, {"w3", {}}};
  BootTime now_{seconds(1000)};
};

TEST_F(RateTurnsTest, OfLessThanAStartASecondEachIsARateTooSlow) {
  EXPECT_TRUE(RateTurns::Slow(2.9, 3));
  EXPECT_FALSE(RateTurns::Slow(3, 3));
  EXPECT_TRUE(RateTurns::Slow(0.01, 1));
  EXPECT_FALSE(RateTurns::Slow(1, 1));
}

TEST_F(RateTurnsTest, OneHasItWhoWantsIt) {
  Wants("w2");
  EXPECT_THAT(Choose(0.5), ElementsAre("w2"));
  EXPECT_THAT(Choose(0.5), ElementsAre("w2"));
  Wants("w2", false);
  EXPECT_THAT(Choose(0.5), ElementsAre("w2")) << "nobody else wants it";
  now_ += seconds(1);
  Wants("w3");
  EXPECT_THAT(Choose(0.5), ElementsAre("w3"));
  Wants("w3", false);
  Wants("w1");
  EXPECT_THAT(Choose(0.5), ElementsAre("w3")) << "it has had no time to claim a task";
}

TEST_F(RateTurnsTest, WhoWantItTakeTurns) {
  for (const char* id : {"w1", "w2", "w3"}) Wants(id);
  std::map<std::string, int> had;
  for (int i = 0; i < 400; ++i) {  // two minutes
    const auto chosen = Choose(1);
    ASSERT_EQ(chosen.size(), 1u);
    ++had[*chosen.begin()];
  }
  for (const char* id : {"w1", "w2", "w3"}) EXPECT_NEAR(had[id], 133, 40) << id;
}

TEST_F(RateTurnsTest, ATurnIsAtLeastOneStart) {
  for (const char* id : {"w1", "w2"}) Wants(id);
  const auto first = Choose(1.0 / 60);
  ASSERT_EQ(Choose(1.0 / 60), first);
  now_ += seconds(50);
  EXPECT_EQ(Choose(1.0 / 60), first);
  now_ += seconds(10);
  EXPECT_NE(Choose(1.0 / 60), first);
}

TEST_F(RateTurnsTest, AsManyHaveItAsThereAreStartsASecond) {
  for (const char* id : {"w1", "w2", "w3"}) Wants(id);
  EXPECT_EQ(Choose(2.5).size(), 2u);
  EXPECT_EQ(Choose(0.001).size(), 1u);
}

TEST_F(RateTurnsTest, WhatIsSavedOfAStartGoesOnToTheNext) {
  EXPECT_EQ(turns_.Saved(0.01, now_), 1) << "the first of all waits for nothing";
  Wants("w1");
  Choose(0.01);
  takers_["w1"].use.saved = 0.2;
  Choose(0.01);
  EXPECT_DOUBLE_EQ(turns_.Saved(0.01, now_ + seconds(30)), 0.5);
  takers_.erase("w1");  // it died
  Choose(0.01);
  EXPECT_NEAR(turns_.Saved(0.01, now_ + seconds(30)), 0.5, 0.01);
  EXPECT_EQ(turns_.Saved(0.01, now_ + minutes(30)), 1) << "no more than a start";
}

}  // namespace
}  // namespace millrace::engine
