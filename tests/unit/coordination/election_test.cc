#include "coordinator/coordination/election.h"

#include <gmock/gmock.h>

#include "coordinator/coordination/documents.h"
#include "tests/support/machine_room.h"

namespace millrace {
namespace {

class ElectionTest : public testing::Test {
 protected:
  EpochDocument Epoch() { return *ReadEpoch(room_.Data("/epoch")); }

  MachineRoom room_;
  Election first_{"w1", "w1.a"};
  Election second_{"w2", "w2.b"};
};

TEST_F(ElectionTest, TheFirstToStandLeadsWithANewTerm) {
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  room_.Add(second_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
  EXPECT_FALSE(second_.Leading());
  EXPECT_EQ(Epoch().epoch, 1u);
  EXPECT_EQ(Epoch().leader, "w1");
}

TEST_F(ElectionTest, TheNextOneFollowsADeadLeader) {
  room_.Add(first_);
  room_.Settle();
  room_.Add(second_);
  room_.Settle();
  room_.Kill(first_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(second_.Leading());
  EXPECT_EQ(second_.Leading()->epoch, 2u);
  EXPECT_EQ(Epoch().leader, "w2");
}

TEST_F(ElectionTest, TheTermOfAPausedLeaderIsRefused) {
  room_.Add(first_);
  room_.Settle();
  const TreeWrite stale = first_.Guard();
  room_.Add(second_);
  room_.Settle();
  room_.Kill(first_);
  room_.Settle();
  EXPECT_EQ(room_.Write({stale, {TreeWrite::Kind::Create, "/assign/w9"}}), TreeStatus::Conflict);
  EXPECT_EQ(room_.Write({second_.Guard(), {TreeWrite::Kind::Create, "/assign/w9"}}), TreeStatus::Ok);
}

TEST_F(ElectionTest, ACreateWhoseReplyWasLostIsFoundAgain) {
  room_.LoseNextReply();
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
  EXPECT_EQ(Epoch().epoch, 1u);
}

TEST_F(ElectionTest, AnExpiredLeaderStandsBehindTheOthers) {
  room_.Add(first_);
  room_.Settle();
  room_.Add(second_);
  room_.Settle();
  room_.Expire(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_FALSE(first_.Leading());
  EXPECT_TRUE(second_.Leading());
  room_.Kill(second_);
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 3u);
}

TEST_F(ElectionTest, RubbishInTheEpochStopsNobody) {
  room_.Put("/epoch", "rubbish");
  room_.Add(first_);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(first_.Leading());
  EXPECT_EQ(Epoch().leader, "w1");
}

TEST_F(ElectionTest, ATermTakenByHandIsTakenBack) {
  room_.Add(first_);
  room_.Settle();
  room_.Put("/epoch", R"({"epoch":7})");
  ASSERT_TRUE(room_.Settle());
  ASSERT_TRUE(first_.Leading());
  EXPECT_EQ(first_.Leading()->epoch, 8u);
}

TEST_F(ElectionTest, NoMoreStandThanAreNeeded) {
  std::vector<std::unique_ptr<Election>> many;
  for (int i = 0; i < 20; ++i) {
    const std::string id = "w" + std::to_string(i);
    many.push_back(std::make_unique<Election>(id, id + ".x"));
    room_.Add(*many.back());
    ASSERT_TRUE(room_.Settle());
  }
  EXPECT_TRUE(room_.Has("/election/w7.x"));
  EXPECT_FALSE(room_.Has("/election/w8.x"));
  room_.Kill(*many[0]);
  ASSERT_TRUE(room_.Settle());
  EXPECT_TRUE(many[1]->Leading());
  int standing = 0;  // one of those that stood back has come forward, whoever was asked first
  for (int i = 0; i < 20; ++i) standing += room_.Has("/election/w" + std::to_string(i) + ".x") ? 1 : 0;
  EXPECT_EQ(standing, 8);
}

}  // namespace
}  // namespace millrace
