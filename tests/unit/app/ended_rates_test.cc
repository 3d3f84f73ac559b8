#include "coordinator/app/status/ended_rates.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const BootTime kFirstLook(seconds(1000));

TaskTotals Totals(const std::string& handler, std::uint64_t succeeded) {
  TaskTotals totals;
  totals.handler = handler;
  totals.succeeded = succeeded;
  return totals;
}

class EndedRatesTest : public testing::Test {
 protected:
  static ShardFacts Shard(std::vector<TaskTotals> totals) {
    ShardFacts shard;
    shard.totals = std::move(totals);
    return shard;
  }
  static ShardFacts Away() {
    ShardFacts shard;
    shard.error = "it does not answer";
    return shard;
  }
  // Two seconds after the last one.
  StatusFacts Look(std::map<std::string, ShardFacts> shards) {
    StatusFacts facts;
    facts.shards = std::move(shards);
    rates_.Look(facts, now_);
    now_ += seconds(2);
    return facts;
  }

  EndedRates rates_;
  BootTime now_ = kFirstLook;
};

TEST_F(EndedRatesTest, WhatEndedBetweenTwoLooksIsCountedOverAllShards) {
  const StatusFacts first = Look({{"a", Shard({Totals("pay", 100)})}, {"b", Shard({Totals("pay", 10)})}});
  EXPECT_FALSE(first.window);
  EXPECT_THAT(first.ended, IsEmpty());
  const StatusFacts second =
      Look({{"a", Shard({Totals("pay", 106)})}, {"b", Shard({Totals("pay", 14), Totals("mail", 2)})}});
  EXPECT_EQ(second.window, seconds(2));
  EXPECT_THAT(second.ended, ElementsAre(Pair("mail", 1.0), Pair("pay", 5.0)));
}

TEST_F(EndedRatesTest, AShardThatComesBackHasNotEndedAllItsTasksInOneLook) {
  Look({{"a", Shard({Totals("pay", 100)})}, {"b", Away()}});
  const StatusFacts back =
      Look({{"a", Shard({Totals("pay", 102)})}, {"b", Shard({Totals("pay", 1'000'000)})}});
  EXPECT_THAT(back.ended, ElementsAre(Pair("pay", 1.0)));
  const StatusFacts again =
      Look({{"a", Shard({Totals("pay", 102)})}, {"b", Shard({Totals("pay", 1'000'004)})}});
  EXPECT_THAT(again.ended, ElementsAre(Pair("pay", 2.0)));
}

TEST_F(EndedRatesTest, NorWhatEndedWhileItWasAway) {
  Look({{"b", Shard({Totals("pay", 100)})}});
  EXPECT_THAT(Look({{"b", Away()}}).ended, IsEmpty());
  EXPECT_THAT(Look({{"b", Shard({Totals("pay", 900)})}}).ended, IsEmpty());
}

TEST_F(EndedRatesTest, WhatPeopleTakeOutOfTheFailedPoolOfOneShardIsNotSetOffAgainstAnother) {
  Look({{"a", Shard({Totals("pay", 100)})}, {"b", Shard({Totals("pay", 10)})}});
  const StatusFacts next = Look({{"a", Shard({Totals("pay", 90)})}, {"b", Shard({Totals("pay", 14)})}});
  EXPECT_THAT(next.ended, ElementsAre(Pair("pay", 2.0)));
}

}  // namespace
}  // namespace millrace::engine
