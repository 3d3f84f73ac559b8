#include "framework/policy/fair_shares.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "framework/base/random.h"

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;

TEST(FairSharesTest, WhereThereIsEnoughForAllEachGetsAllThatItWants) {
  FairShares shares;
  EXPECT_THAT(shares.Divide(std::vector<ShareWish>{{"a", 1, 300}, {"b", 7, 0}, {"c", 1, 20}}, 320),
              ElementsAre(300, 0, 20));
}

TEST(FairSharesTest, WhatIsScarceIsDividedByWeight) {
  FairShares shares;
  EXPECT_THAT(shares.Divide(std::vector<ShareWish>{{"a", 1, 999}, {"b", 3, 999}}, 400),
              ElementsAre(100, 300));
}

TEST(FairSharesTest, WhatOneDoesNotWantIsTheOthers) {
  FairShares shares;
  EXPECT_THAT(shares.Divide(std::vector<ShareWish>{{"a", 1, 999}, {"b", 1, 999}, {"c", 8, 10}}, 110),
              ElementsAre(50, 50, 10));
}

TEST(FairSharesTest, WeightsHoldInTheLongRunHoweverLittleThereIsToDivide) {
  FairShares shares;
  const std::vector<ShareWish> wishes{{"a", 1, 100}, {"b", 3, 100}, {"c", 1, 100}};
  std::vector<std::size_t> got(wishes.size());
  for (int i = 0; i < 500; ++i) {
    const auto divided = shares.Divide(wishes, 2);
    for (std::size_t j = 0; j < got.size(); ++j) got[j] += divided[j];
  }
  EXPECT_THAT(got, ElementsAre(200, 600, 200));
}

// What each gets is asked of the database by itself.
TEST(FairSharesTest, OfVeryManyAFewGetMuchAtATimeAndAllTheSameInTheEnd) {
  FairShares shares;
  std::vector<ShareWish> wishes;
  for (int i = 0; i < 200; ++i) wishes.push_back({std::to_string(1000 + i), 1, 1000});
  std::vector<std::size_t> got(wishes.size());
  for (int turn = 0; turn < 25; ++turn) {
    const auto divided = shares.Divide(wishes, 1000);
    EXPECT_LE(std::ranges::count_if(divided, [](std::size_t share) { return share > 0; }), 34);
    for (std::size_t i = 0; i < got.size(); ++i) got[i] += divided[i];
  }
  const auto [least, most] = std::ranges::minmax(got);
  EXPECT_GE(least, 124U - 31);
  EXPECT_LE(most, 124U + 31);
  const auto few = shares.Divide(wishes, 20);  // then nobody gets more than one, but who had part of its own
  EXPECT_LE(std::ranges::count_if(few, [](std::size_t share) { return share > 1; }), 1);
}

TEST(FairSharesTest, NothingIsLostAndNobodyGetsMoreThanItWants) {
  Random random(13);
  FairShares shares;
  for (int round = 0; round < 2000; ++round) {
    std::vector<ShareWish> wishes;
    std::size_t wanted = 0;
    for (std::uint64_t i = 0; i <= random.Below(6); ++i) {
      wishes.push_back({std::string(1, static_cast<char>('a' + i)),
                        static_cast<std::uint32_t>(1 + random.Below(1000)), random.Below(1000)});
      wanted += wishes.back().wanted;
    }
    const std::size_t room = random.Below(3000);
    const auto divided = shares.Divide(wishes, room);
    EXPECT_EQ(std::accumulate(divided.begin(), divided.end(), std::size_t{0}), std::min(room, wanted));
    for (std::size_t i = 0; i < wishes.size(); ++i) EXPECT_LE(divided[i], wishes[i].wanted);
  }
}

}  // namespace
}  // namespace millrace::engine
