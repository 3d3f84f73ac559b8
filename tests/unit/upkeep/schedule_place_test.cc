#include "coordinator/upkeep/schedule_place.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using Act = PlaceStep::Act;

constexpr BootTime At(int seconds) { return BootTime(std::chrono::seconds(seconds)); }

// A schedule seen from the shard `de`, whose row is as it is since second 10. Other shards: `eu` and `us`.
class SchedulePlaceTest : public testing::Test {
 protected:
  SchedulePlaceTest() { readings_["eu"] = readings_["us"] = {At(11), {}}; }

  static ScheduleRow Row(const std::string& moved_to = "") {
    return {.name = "nightly", .moved_to = moved_to};
  }
  void Has(const std::string& shard, const std::string& moved_to = "") {
    readings_[shard].rows["nightly"] = Row(moved_to);
  }
  PlaceStep Step(const std::string& home, const ScheduleRow* own) {
    return Place({"nightly", home, own, At(10), confirmed_}, "de", shards_, readings_);
  }
  PlaceStep Without(const std::string& home) { return Step(home, nullptr); }
  PlaceStep With(const std::string& home, const std::string& moved_to = "") {
    own_ = Row(moved_to);
    return Step(home, &own_);
  }

  std::vector<std::string> shards_ = {"de", "eu", "us"};
  ScheduleReadings readings_;
  ScheduleRow own_;
  bool confirmed_ = true;
};

TEST_F(SchedulePlaceTest, FiresWhatIsAtHomeWhateverIsKnownOfOthers) {
  readings_.clear();
  EXPECT_EQ(With("de").act, Act::Fire);
}

TEST_F(SchedulePlaceTest, MakesARowAtHomeWhereNoOtherShardHasOne) {
  EXPECT_EQ(Without("de").act, Act::Make);
  EXPECT_EQ(Without("eu").act, Act::Leave);
}

TEST_F(SchedulePlaceTest, ReadsAllShardsTwiceBeforeItMakesOne) {
  confirmed_ = false;
  EXPECT_EQ(Without("de").act, Act::Confirm);
}

TEST_F(SchedulePlaceTest, MakesNoneBeforeEveryOtherShardWasReadSinceItHadNone) {
  readings_["us"].begun = At(10);
  EXPECT_EQ(Without("de").act, Act::Wait);
  EXPECT_EQ(Without("de").shard, "us");
  readings_.erase("us");
  EXPECT_EQ(Without("de").act, Act::Wait);
}

TEST_F(SchedulePlaceTest, MakesNoneWhereAnotherShardHasOne) {
  Has("us");
  EXPECT_EQ(Without("de").act, Act::Wait);
  Has("us", "eu");
  EXPECT_EQ(Without("de").act, Act::Wait);
}

TEST_F(SchedulePlaceTest, TakesWhatIsSentHereWhateverTheDocumentSays) {
  Has("us", "de");
  EXPECT_EQ(Without("de").act, Act::Take);
  EXPECT_EQ(Without("eu").act, Act::Take);
  EXPECT_EQ(Without("eu").row->moved_to, "de");
}

TEST_F(SchedulePlaceTest, TakesNothingThatWasReadBeforeItsOwnRowWent) {
  Has("us", "de");
  readings_["us"].begun = At(9);
  EXPECT_EQ(Without("de").act, Act::Wait);
  EXPECT_EQ(Without("de").shard, "us");
}

TEST_F(SchedulePlaceTest, SendsARowToItsHomeWhereNobodyElseHasOne) {
  EXPECT_EQ(With("eu").act, Act::Send);
  EXPECT_EQ(With("eu").shard, "eu");
  readings_["us"].begun = At(9);  // what was sent here may stand there yet
  EXPECT_EQ(With("eu").act, Act::Wait);
  readings_["us"].begun = At(11);
  Has("us", "de");
  EXPECT_EQ(With("eu").act, Act::Wait);
}

TEST_F(SchedulePlaceTest, WhatWentElsewhereGoesOnceItIsThereAndNotBefore) {
  EXPECT_EQ(With("eu", "eu").act, Act::Wait);
  EXPECT_EQ(With("de", "eu").act, Act::Wait);  // the document has changed back
  Has("eu");
  EXPECT_EQ(With("eu", "eu").act, Act::Drop);
  EXPECT_EQ(With("de", "eu").act, Act::Drop);
}

TEST_F(SchedulePlaceTest, WhatWasToGoWhereThereIsNoShardStays) {
  EXPECT_EQ(With("de", "gone").act, Act::Keep);
}

TEST_F(SchedulePlaceTest, OfTwoRowsTheOneAtHomeStays) {
  Has("eu");
  EXPECT_EQ(With("eu").act, Act::Drop);
  EXPECT_EQ(With("de").act, Act::Fire);
  readings_["eu"].begun = At(9);  // before this one was made
  EXPECT_EQ(With("eu").act, Act::Wait);
}

TEST_F(SchedulePlaceTest, ARowThatIsOnItsWayHereIsNoReasonToGoThere) {
  Has("eu", "de");
  EXPECT_EQ(With("eu").act, Act::Wait);
}

}  // namespace
}  // namespace millrace::engine
