#include "coordinator/coordination/tree_mirror.h"

#include <gmock/gmock.h>

namespace millrace {
namespace {

using testing::ElementsAre;

class TreeMirrorTest : public testing::Test {
 protected:
  // Answers what is asked next; the path that was asked for.
  std::string Answer(const TreeReply& reply) {
    const auto request = mirror_.NextRead();
    if (!request) return "";
    mirror_.Replied(*request, reply);
    return request->path;
  }

  TreeMirror mirror_;
};

TEST_F(TreeMirrorTest, ReadsEachThingOnceAndAgainAfterAChange) {
  mirror_.TrackNode("/a");
  EXPECT_FALSE(mirror_.Fresh());
  EXPECT_EQ(Answer({TreeStatus::Ok, {"x", 3}}), "/a");
  EXPECT_TRUE(mirror_.Fresh());
  EXPECT_EQ(mirror_.Node("/a")->data, "x");
  mirror_.Event({TreeEvent::Kind::Changed, "/a"});
  EXPECT_EQ(Answer({TreeStatus::NotFound}), "/a");
  EXPECT_EQ(mirror_.Node("/a"), nullptr);
  mirror_.Event({TreeEvent::Kind::Connected, "", 7});
  EXPECT_FALSE(mirror_.Fresh());
}

TEST_F(TreeMirrorTest, AFailedReadIsAskedAgain) {
  mirror_.TrackList("/a");
  EXPECT_EQ(Answer({TreeStatus::Lost}), "/a");
  EXPECT_EQ(Answer({TreeStatus::Ok, {}, {"b", "c"}}), "/a");
  EXPECT_THAT(mirror_.List("/a"), ElementsAre("b", "c"));
}

TEST_F(TreeMirrorTest, TellsWhetherAnAnswerSaysSomethingNew) {
  mirror_.TrackNode("/a");
  const TreeRequest get{TreeRequest::Kind::Get, "/a"};
  EXPECT_TRUE(mirror_.Replied(get, {TreeStatus::NotFound}));
  EXPECT_FALSE(mirror_.Replied(get, {TreeStatus::NotFound}));
  EXPECT_TRUE(mirror_.Replied(get, {TreeStatus::Ok, {"x", 1}}));
  EXPECT_FALSE(mirror_.Replied(get, {TreeStatus::Ok, {"x", 1}}));
  EXPECT_FALSE(mirror_.Replied(get, {TreeStatus::Lost}));
  EXPECT_TRUE(mirror_.Replied(get, {TreeStatus::Ok, {"x", 2}}));
}

TEST_F(TreeMirrorTest, FollowsTheChildrenOfAFolder) {
  mirror_.TrackNodesOf("/a", {"b", "c"});
  Answer({TreeStatus::Ok});
  Answer({TreeStatus::Ok});
  mirror_.TrackNodesOf("/a", {"c", "d"});
  EXPECT_EQ(mirror_.Node("/a/b"), nullptr);
  EXPECT_NE(mirror_.Node("/a/c"), nullptr);
  EXPECT_EQ(mirror_.NextRead()->path, "/a/d");
}

TEST_F(TreeMirrorTest, AListThatIsForgottenGoesWithItsChildren) {
  mirror_.TrackListsOf("/a", {"b", "c"});
  mirror_.TrackNodesOf("/a/b", {"1"});
  mirror_.TrackListsOf("/a", {"c"});
  EXPECT_EQ(Answer({TreeStatus::Ok}), "/a/c");
  EXPECT_TRUE(mirror_.Fresh());
}

TEST_F(TreeMirrorTest, WhatAWriteTouchedIsReadAgain) {
  mirror_.TrackNode("/epoch");
  mirror_.TrackNode("/a/b");
  mirror_.TrackList("/a");
  for (int i = 0; i < 3; ++i) Answer({TreeStatus::Ok});
  TreeRequest write{TreeRequest::Kind::Write};
  write.writes = {{TreeWrite::Kind::Check, "/epoch"}, {TreeWrite::Kind::Create, "/a/b"}};
  mirror_.Touched(write);
  EXPECT_EQ(Answer({TreeStatus::Ok}), "/a");
  EXPECT_EQ(Answer({TreeStatus::Ok}), "/a/b");
  EXPECT_EQ(Answer({TreeStatus::Ok}), "/epoch");
  EXPECT_TRUE(mirror_.Fresh());
}

TEST_F(TreeMirrorTest, EverythingIsReadAnewNowAndThen) {
  mirror_.TrackNode("/a");
  BootTime now{std::chrono::hours(1)};
  mirror_.ReconcileEvery(std::chrono::seconds(10), now);
  Answer({TreeStatus::Ok});
  mirror_.ReconcileEvery(std::chrono::seconds(10), now + std::chrono::seconds(9));
  EXPECT_TRUE(mirror_.Fresh());
  mirror_.ReconcileEvery(std::chrono::seconds(10), now + std::chrono::seconds(10));
  EXPECT_FALSE(mirror_.Fresh());
}

}  // namespace
}  // namespace millrace
