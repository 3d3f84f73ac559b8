#include "framework/mill/limit_policy.h"

#include <gtest/gtest.h>

#include <random>

#include "framework/testing/manual_clock.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr BootTime kBegin{seconds(1000)};
constexpr std::size_t kMany = 100'000;

TEST(TokenBucketTest, OverAnyTimeNoMoreThanTheBurstAndTheRate) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const double rate = 1 + static_cast<double>(random() % 500);
    const double burst = 1 + static_cast<double>(random() % 20);
    TokenBucket bucket(rate, burst, burst, kBegin);
    std::vector<std::pair<BootTime, std::size_t>> taken;
    BootTime now = kBegin;
    for (int i = 0; i < 300; ++i) {
      now += Micros(random() % 100'000);
      taken.emplace_back(now, bucket.Take(random() % 30, now));
    }
    for (std::size_t from = 0; from < taken.size(); from += 7) {
      std::size_t sum = 0;
      for (std::size_t i = from; i < taken.size(); ++i) {
        sum += taken[i].second;
        const double passed = std::chrono::duration<double>(taken[i].first - taken[from].first).count();
        ASSERT_LE(static_cast<double>(sum), burst + rate * passed + 1e-6) << "seed " << seed;
      }
    }
  }
}

TEST(TokenBucketTest, WhoAsksWhenItSaysGetsOne) {
  TokenBucket bucket(3, 1, 1, kBegin);
  EXPECT_EQ(bucket.Take(2, kBegin), 1u);
  const BootTime next = bucket.Next(kBegin);
  EXPECT_EQ(bucket.Take(1, next - milliseconds(1)), 0u);
  EXPECT_EQ(bucket.Take(1, next), 1u);
}

TEST(TokenBucketTest, WhatIsGivenBackFillsItNoFurtherThanToItsBurst) {
  TokenBucket bucket(10, 5, 5, kBegin);
  EXPECT_EQ(bucket.Take(4, kBegin), 4u);
  bucket.GiveBack(2);
  EXPECT_EQ(bucket.Left(kBegin), 3u);
  bucket.Left(kBegin + seconds(1));
  bucket.GiveBack(2);
  EXPECT_EQ(bucket.Take(kMany, kBegin + seconds(1)), 5u);
}

TEST(TokenBucketTest, AtALowerRateWhatWasSavedIsLost) {
  TokenBucket bucket(100, 10, 10, kBegin);
  bucket.Set(10, 1, kBegin);
  EXPECT_EQ(bucket.Take(kMany, kBegin), 1u);
  bucket.Set(0, 0, kBegin);
  EXPECT_EQ(bucket.Take(kMany, kBegin + seconds(1000)), 0u);
  EXPECT_EQ(bucket.Next(kBegin), BootTime::max());
}

LimitConfig Rate(double rate, std::uint32_t burst = 0) { return {.rate = rate, .burst = burst}; }
LimitConfig Places(std::uint32_t concurrency) { return {.concurrency = concurrency}; }

TEST(LimitPolicyTest, WithoutABurstATenthOfASecondsStartAtOnce) {
  EXPECT_EQ(LimitPolicy(Rate(100), {}, kBegin).Take(kMany, kBegin), 10u);
  EXPECT_EQ(LimitPolicy(Rate(2), {}, kBegin).Take(kMany, kBegin), 1u);
  EXPECT_EQ(LimitPolicy(Rate(2, 7), {}, kBegin).Take(kMany, kBegin), 7u);
}

TEST(LimitPolicyTest, ARateThatIsAddedBeginsAsOneThatWasThereAtTheStart) {
  LimitPolicy policy(Places(9), {}, kBegin);
  policy.Follow({.rate = 1.0 / 3600, .burst = 5, .concurrency = 9}, {}, kBegin + seconds(7));
  EXPECT_EQ(policy.Take(kMany, kBegin + seconds(7)), 5u);
}

TEST(LimitPolicyTest, ARateThatIsTakenAwayAndAddedAgainBringsNoFurtherBurst) {
  const LimitConfig both{.rate = 1.0 / 3600, .burst = 5, .concurrency = 9};
  LimitPolicy policy(both, {}, kBegin);
  ASSERT_EQ(policy.Take(kMany, kBegin), 5u);
  for (int turn = 0; turn < 3; ++turn) {
    policy.Follow(Places(9), {}, kBegin);
    policy.Follow(both, {}, kBegin);
    EXPECT_EQ(policy.Take(kMany, kBegin), 0u);
  }
}

TEST(LimitPolicyTest, AShareOfARateThatIsAddedBeginsWithNothing) {
  LimitPolicy policy(Places(9), LimitShare{.concurrency = 2}, kBegin);
  policy.Follow(Rate(100), LimitShare{.rate = 30}, kBegin);
  EXPECT_EQ(policy.Take(kMany, kBegin), 0u);
  policy.Follow(Rate(100), {}, kBegin);
  EXPECT_EQ(policy.Take(kMany, kBegin), 0u) << "another may have used the rest of it";
}

TEST(LimitPolicyTest, AShareBeginsWithNothingAndHasItsPartOfTheBurst) {
  LimitPolicy policy(Rate(100), LimitShare{.rate = 30}, kBegin);
  EXPECT_EQ(policy.Take(kMany, kBegin), 0u);
  EXPECT_EQ(policy.Take(kMany, kBegin + seconds(10)), 3u);
}

TEST(LimitPolicyTest, WhatIsSavedOfASlowStartGoesWithTheShare) {
  LimitPolicy policy(Rate(0.1), LimitShare{.rate = 0.1}, kBegin);
  policy.Follow(LimitShare{}, kBegin + seconds(4));
  EXPECT_NEAR(policy.View(kBegin + seconds(9), 0).use.saved, 0.4, 1e-6);
  LimitPolicy next(Rate(0.1), LimitShare{}, kBegin);
  next.Follow(LimitShare{.rate = 0.1, .saved = 0.4}, kBegin + seconds(5));
  EXPECT_EQ(next.Take(1, kBegin + seconds(10)), 0u);
  EXPECT_EQ(next.Take(1, kBegin + seconds(11)), 1u);
  next.Follow(LimitShare{.rate = 0.1, .saved = 0.4}, kBegin + seconds(12));
  EXPECT_NEAR(next.View(kBegin + seconds(12), 0).use.saved, 0.1, 1e-6) << "told again it is the same share";
}

TEST(LimitPolicyTest, WhoHasTasksAndNoShareOfTheRateWantsOne) {
  LimitPolicy policy(Rate(0.1), LimitShare{}, kBegin);
  EXPECT_FALSE(policy.View(kBegin, 0).use.wants_rate);
  policy.ClaimRoom(kBegin, 0);  // asked where there are tasks
  EXPECT_TRUE(policy.View(kBegin + seconds(5), 0).use.wants_rate);
  EXPECT_FALSE(policy.View(kBegin + seconds(15), 0).use.wants_rate);
}

TEST(LimitPolicyTest, WithoutAShareNothingIsClaimedOrStarted) {
  LimitPolicy policy({.rate = 100, .concurrency = 5}, LimitShare{}, kBegin);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 0), 0u);
  EXPECT_EQ(policy.Take(1, kBegin + seconds(10)), 0u);
  EXPECT_EQ(policy.Next(kBegin), BootTime::max());
  EXPECT_TRUE(policy.Withholds()) << "what is claimed is others'";
  policy.Follow(LimitShare{.rate = 1, .permits = 1}, kBegin);
  EXPECT_FALSE(policy.Withholds());
}

TEST(LimitPolicyTest, StartsThatWereNotUsedAreThereAgain) {
  LimitPolicy policy(Rate(2, 7), {}, kBegin);
  EXPECT_EQ(policy.Take(kMany, kBegin), 7u);
  policy.GiveBack(3);
  EXPECT_EQ(policy.Take(kMany, kBegin), 3u);
}

TEST(LimitPolicyTest, AsManyRunAsThereArePlaces) {
  LimitPolicy policy(Places(3), {}, kBegin);
  EXPECT_EQ(policy.Take(5, kBegin), 3u);
  EXPECT_EQ(policy.Take(1, kBegin), 0u);
  EXPECT_EQ(policy.Next(kBegin), BootTime::max());
  policy.Ended({.called = true}, kBegin);
  policy.GiveBack(1);
  EXPECT_EQ(policy.Next(kBegin), kBegin);
  EXPECT_EQ(policy.Take(5, kBegin), 2u);
}

TEST(LimitPolicyTest, AChangedLimitStillCountsWhatRuns) {
  LimitPolicy policy(Places(4), {}, kBegin);
  EXPECT_EQ(policy.Take(4, kBegin), 4u);
  policy.Follow(Places(2), {}, kBegin);
  for (int ended = 0; ended < 2; ++ended) policy.Ended({}, kBegin);
  EXPECT_EQ(policy.Take(1, kBegin), 0u);
  policy.Ended({}, kBegin);
  EXPECT_EQ(policy.Take(2, kBegin), 1u);
}

TEST(LimitPolicyTest, UnderPermitsItCountsAndHoldsNobodyBack) {
  LimitPolicy policy(Places(1), LimitShare{.permits = 1}, kBegin);
  EXPECT_EQ(policy.Take(2, kBegin), 2u);
  EXPECT_EQ(policy.View(kBegin, 0).use.running, 2u);
}

TEST(LimitPolicyTest, WhatRunsWithAPermitIsNotInAPlace) {
  LimitPolicy policy(Places(3), LimitShare{.concurrency = 1}, kBegin);
  ASSERT_EQ(policy.Take(1, kBegin), 1u);
  policy.Follow(LimitShare{.permits = 2}, kBegin);
  ASSERT_EQ(policy.Take(2, kBegin), 2u);
  policy.HasPermit(false);
  policy.HasPermit(false);
  EXPECT_EQ(policy.View(kBegin, 0).use.running, 3u);
  EXPECT_EQ(policy.View(kBegin, 0).use.placed, 1u);
  policy.HasPermit(true);
  policy.GiveBack(1);
  policy.Ended({.called = true, .permit = true}, kBegin);
  EXPECT_EQ(policy.View(kBegin, 0).use.placed, 1u);
  policy.Ended({.called = true}, kBegin);
  EXPECT_EQ(policy.View(kBegin, 0).use.placed, 0u);
}

TEST(LimitPolicyTest, ClaimsHalfASecondAheadAndNotUntilHalfOfThatIsFree) {
  LimitPolicy policy(Rate(100), {}, kBegin);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 0), 50u);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 26), 0u);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 25), 25u);
  LimitPolicy slow(Rate(0.01), {}, kBegin);
  EXPECT_EQ(slow.ClaimRoom(kBegin, 0), 1u);
  EXPECT_EQ(slow.ClaimRoom(kBegin, 1), 0u);
}

TEST(LimitPolicyTest, AtALowRateItClaimsNothingThatCantStartWithinASecond) {
  LimitPolicy slow(Rate(0.1), {}, kBegin);
  ASSERT_EQ(slow.Take(1, kBegin), 1u);
  EXPECT_EQ(slow.ClaimRoom(kBegin, 0), 0u);
  EXPECT_EQ(slow.ClaimRoom(kBegin + milliseconds(8'900), 0), 0u);
  EXPECT_EQ(slow.ClaimRoom(kBegin + milliseconds(9'100), 0), 1u);
  LimitPolicy share(Rate(0.1), LimitShare{.rate = 0.1}, kBegin);
  EXPECT_EQ(share.ClaimRoom(kBegin, 0), 1u) << "the leader is to see that there is work";
}

TEST(LimitPolicyTest, ByPermitsItClaimsNothingThatCantStartWithinATenthOfASecondAndWantsMoreOfTheRate) {
  LimitPolicy policy({.rate = 20, .concurrency = 2}, LimitShare{.rate = 2, .permits = 2}, kBegin);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 0), 0u) << "the permit is for others meanwhile";
  EXPECT_TRUE(policy.View(kBegin, 0).use.wants_rate);
  EXPECT_EQ(policy.ClaimRoom(kBegin + milliseconds(390), 0), 0u);
  EXPECT_EQ(policy.ClaimRoom(kBegin + milliseconds(410), 0), 1u);
  EXPECT_FALSE(policy.View(kBegin + seconds(2), 0).use.wants_rate) << "nobody has asked lately";
}

TEST(LimitPolicyTest, OfShortTasksItClaimsMoreThanThereArePlaces) {
  LimitPolicy policy(Places(2), {}, kBegin);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 0), 2u);
  ASSERT_EQ(policy.Take(1, kBegin), 1u);
  policy.Ended({.called = true, .took = milliseconds(10)}, kBegin);
  EXPECT_EQ(policy.ClaimRoom(kBegin, 0), 100u);
}

TEST(LimitPolicyTest, WantsMoreWhileWhatItHasClaimedMustWait) {
  LimitPolicy policy({.rate = 10, .concurrency = 5}, {}, kBegin);
  EXPECT_FALSE(policy.View(kBegin, 3).use.wants_rate);
  EXPECT_EQ(policy.Take(3, kBegin), 1u);
  EXPECT_TRUE(policy.View(kBegin, 2).use.wants_rate);
  EXPECT_FALSE(policy.View(kBegin, 2).use.wants_concurrency);
  EXPECT_FALSE(policy.View(kBegin, 0).use.wants_rate);
}

TEST(LimitPolicyTest, TellsHowManyItStartsASecond) {
  LimitPolicy policy(Rate(50), {}, kBegin);
  BootTime now = kBegin;
  for (; now < kBegin + seconds(5); now += milliseconds(10)) policy.Take(3, now);
  EXPECT_NEAR(policy.View(now, 0).use.rate, 50, 5);
  EXPECT_LT(policy.View(now + seconds(5), 0).use.rate, 1);
}

class AdmissionTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Config> With(std::map<std::string, LimitConfig> limits) {
    auto config = std::make_shared<Config>();
    for (const auto& [type, limit] : limits) config->handlers[type].limit = limit;
    config->handlers["free"];
    return config;
  }

  ManualClock clock_;
  Admission admission_{clock_};
};

TEST_F(AdmissionTest, ATypeWithoutPoliciesHasNoGate) {
  admission_.Follow(With({{"mail", Places(1)}}));
  EXPECT_EQ(admission_.Of("free"), nullptr);
  ASSERT_NE(admission_.Of("mail"), nullptr);
  admission_.Follow(With({}));
  EXPECT_EQ(admission_.Of("mail"), nullptr);
}

TEST_F(AdmissionTest, WhatStaysTheSameKeepsItsState) {
  admission_.Follow(With({{"mail", Places(2)}, {"sms", Places(2)}}));
  const auto gate = admission_.Of("mail");
  const std::uint64_t version = admission_.Version();
  EXPECT_EQ(gate->TakeStarts(2, clock_.Now()), 2u);
  admission_.Follow(With({{"mail", Places(2)}, {"sms", Places(9)}}));
  EXPECT_EQ(admission_.Version(), version) << "nobody needs to ask for another gate";
  EXPECT_EQ(admission_.Of("mail"), gate);
  EXPECT_EQ(admission_.Of("mail")->TakeStarts(1, clock_.Now()), 0u);
}

TEST_F(AdmissionTest, OfSeveralPoliciesTheStrictestHoldsAndTheOthersHaveBackWhatItRefused) {
  const auto wide = std::make_shared<LimitPolicy>(Rate(2, 7), std::nullopt, clock_.Now());
  const auto narrow = std::make_shared<LimitPolicy>(Places(3), std::nullopt, clock_.Now());
  for (const StartPolicies& policies : {StartPolicies{narrow, wide}, StartPolicies{wide, narrow}})
    EXPECT_EQ(TypeGate("mail", policies).ClaimRoom(clock_.Now()), 3u);
  TypeGate gate("mail", {wide, narrow});
  EXPECT_EQ(gate.TakeStarts(7, clock_.Now()), 3u);
  EXPECT_EQ(wide->Take(kMany, clock_.Now()), 4u);
}

TEST_F(AdmissionTest, SharesTakeThePlaceOfTheWholeLimit) {
  admission_.Follow(With({{"mail", Places(9)}}));
  admission_.FollowShares(std::make_shared<const LimitShares>(LimitShares{{"mail", {.concurrency = 2}}}));
  EXPECT_EQ(admission_.Of("mail")->TakeStarts(5, clock_.Now()), 2u);
  admission_.Follow(With({{"mail", Places(9)}, {"sms", Places(9)}}));
  EXPECT_EQ(admission_.Of("sms")->TakeStarts(5, clock_.Now()), 0u);  // its share has not come
  EXPECT_EQ(admission_.Limits().at("mail").share.concurrency, 2u);
}

TEST_F(AdmissionTest, ATypeStartsNowWhereItHasATokenAndAPlace) {
  admission_.Follow(With({{"mail", Rate(0.1)}, {"sms", Places(1)}}));
  for (const char* type : {"mail", "sms"}) {
    EXPECT_TRUE(admission_.StartsNow(type));
    admission_.Of(type)->TakeStarts(1, clock_.Now());
    EXPECT_FALSE(admission_.StartsNow(type));
  }
  EXPECT_TRUE(admission_.StartsNow("free"));
  clock_.Advance(seconds(10));
  EXPECT_TRUE(admission_.StartsNow("mail"));
}

TEST_F(AdmissionTest, WhoOnlyTellsWhatHoldsATypeAsksForNothing) {
  admission_.Follow(With({{"mail", Rate(0.1)}}));
  const auto gate = admission_.Of("mail");
  EXPECT_EQ(gate->HeldBy(clock_.Now(), clock_.WallNow()), "");
  gate->TakeStarts(1, clock_.Now());
  EXPECT_EQ(gate->HeldBy(clock_.Now(), clock_.WallNow()), "limit");
  EXPECT_FALSE(admission_.Limits().at("mail").use.wants_rate);
}

TEST_F(AdmissionTest, WhoWasRefusedIsToldWhenAStartEndsOrAShareComes) {
  admission_.Follow(With({{"mail", Places(1)}}));
  std::vector<std::string> told;
  admission_.starts_again().Listen([&](const std::string& type) { told.push_back(type); });
  const auto gate = admission_.Of("mail");
  gate->TakeStarts(1, clock_.Now());
  EXPECT_EQ(gate->TakeStarts(1, clock_.Now()), 0u);
  gate->Ended({.called = true}, clock_.Now());
  EXPECT_EQ(told, std::vector<std::string>{"mail"});
  gate->Ended({.called = true}, clock_.Now());
  EXPECT_EQ(told.size(), 1u);  // nobody was refused since
  admission_.FollowShares(std::make_shared<const LimitShares>());
  EXPECT_EQ(gate->TakeStarts(1, clock_.Now()), 0u);
  admission_.FollowShares(std::make_shared<const LimitShares>(LimitShares{{"mail", {.concurrency = 1}}}));
  EXPECT_EQ(told.size(), 2u);
}

}  // namespace
}  // namespace millrace::engine
