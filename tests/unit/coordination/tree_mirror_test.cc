#include "coordinator/coordination/tree_mirror.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace millrace::engine {
namespace {

using std::chrono::seconds;
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

// Of very many none is watched; they may become fewer.
TEST_F(TreeMirrorTest, WhatIsToBeWatchedAfterAllIsReadOnceMoreWithAWatch) {
  mirror_.TrackNode("/a", TreeMirror::Watch::No);
  const auto first = mirror_.NextRead();
  EXPECT_FALSE(first->watch);
  mirror_.Replied(*first, {TreeStatus::Ok, {"x", 1}});
  mirror_.TrackNode("/a", TreeMirror::Watch::Yes);
  const auto second = mirror_.NextRead();
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->watch);
  mirror_.Replied(*second, {TreeStatus::Ok, {"x", 1}});
  mirror_.TrackNode("/a", TreeMirror::Watch::Yes);
  EXPECT_TRUE(mirror_.Fresh()) << "it is watched already";
}

TEST_F(TreeMirrorTest, SeveralReadsMayBeUnderWayAndNoneIsAskedForTwice) {
  mirror_.TrackNodesOf("/a", {"b", "c"});
  const auto b = mirror_.NextRead();
  const auto c = mirror_.NextRead();
  EXPECT_EQ(c->path, "/a/c");
  EXPECT_EQ(mirror_.NextRead(), std::nullopt);
  EXPECT_FALSE(mirror_.Fresh());
  mirror_.Replied(*b, {TreeStatus::Ok});
  EXPECT_FALSE(mirror_.Fresh());
  mirror_.Replied(*c, {TreeStatus::Lost});
  EXPECT_EQ(Answer({TreeStatus::Ok}), "/a/c");
  EXPECT_TRUE(mirror_.Fresh());
}

TEST_F(TreeMirrorTest, AChangeThatIsToldDuringAReadIsReadToo) {
  mirror_.TrackNode("/a");
  const auto read = mirror_.NextRead();
  mirror_.MakeStale("/a");
  mirror_.Replied(*read, {TreeStatus::Ok, {"x", 1}});
  EXPECT_FALSE(mirror_.Fresh());
  EXPECT_EQ(Answer({TreeStatus::Ok, {"y", 2}}), "/a");
  EXPECT_TRUE(mirror_.Fresh());
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

TEST_F(TreeMirrorTest, WhatIsForgottenGoesWithAllBelowIt) {
  mirror_.TrackNodesOf("/a", {"b", "c"});
  mirror_.TrackList("/a/b");
  mirror_.TrackNodesOf("/a/b", {"1"});
  mirror_.TrackNodesOf("/a", {"c"});
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

TEST_F(TreeMirrorTest, WhatMayNotBeReadIsAsItWasAndHoldsUpNothing) {
  mirror_.TrackNode("/a");
  mirror_.TrackNode("/b");
  EXPECT_EQ(Answer({TreeStatus::Ok, {"x", 3}}), "/a");
  EXPECT_EQ(Answer({TreeStatus::Denied}), "/b");
  EXPECT_TRUE(mirror_.Fresh());
  EXPECT_EQ(mirror_.Node("/b"), nullptr);
  EXPECT_THAT(mirror_.Denied(), ElementsAre("/b"));
  mirror_.MakeStale("/a");
  EXPECT_EQ(Answer({TreeStatus::Denied}), "/a");
  EXPECT_TRUE(mirror_.Fresh());
  EXPECT_EQ(mirror_.Node("/a")->data, "x");
  EXPECT_TRUE(mirror_.IsDenied("/a"));
}

TEST_F(TreeMirrorTest, ThatSomethingMayNotBeReadIsNewsOnceAndSoIsItsEnd) {
  mirror_.TrackNode("/a");
  mirror_.TrackList("/a");
  const TreeRequest get{TreeRequest::Kind::Get, "/a"};
  const TreeRequest list{TreeRequest::Kind::List, "/a"};
  EXPECT_TRUE(mirror_.Replied(get, {TreeStatus::Denied}));
  EXPECT_FALSE(mirror_.Replied(list, {TreeStatus::Denied}));
  EXPECT_FALSE(mirror_.Replied(get, {TreeStatus::Denied}));
  EXPECT_FALSE(mirror_.Replied(get, {TreeStatus::Lost}));
  EXPECT_TRUE(mirror_.Replied(get, {TreeStatus::Ok}));
  EXPECT_TRUE(mirror_.IsDenied("/a")) << "its children still may not be listed";
  EXPECT_TRUE(mirror_.Replied(list, {TreeStatus::NotFound}));
  EXPECT_THAT(mirror_.Denied(), ElementsAre());
}

TEST_F(TreeMirrorTest, WhatIsForgottenIsNotSaidToBeDenied) {
  mirror_.TrackNodesOf("/a", {"b"});
  EXPECT_EQ(Answer({TreeStatus::Denied}), "/a/b");
  mirror_.TrackNodesOf("/a", {});
  EXPECT_THAT(mirror_.Denied(), ElementsAre());
}

// Everything is read anew within each interval, in parts.
class TreeMirrorSweepTest : public TreeMirrorTest {
 protected:
  void Track(int nodes) {
    for (int i = 0; i < nodes; ++i) mirror_.TrackNode("/" + std::to_string(i));
    while (!Answer({TreeStatus::Ok}).empty()) {
    }
    Look(Micros(0));
  }
  void Look(Micros later) {
    now_ += later;
    mirror_.ReconcileEvery(seconds(10), now_);
  }
  std::set<std::string> ReadAll() {
    std::set<std::string> all;
    for (std::string path; !(path = Answer({TreeStatus::Ok})).empty();) all.insert(path);
    return all;
  }

  BootTime now_{std::chrono::hours(1)};
};

TEST_F(TreeMirrorSweepTest, TakesEverythingInTurnAndHoldsUpNoDecision) {
  Track(120);
  std::set<std::string> seen;
  for (int i = 1; i <= 10; ++i) {
    Look(seconds(1));
    EXPECT_TRUE(mirror_.Fresh());
    const auto part = ReadAll();
    EXPECT_EQ(part.size(), i % 4 == 0 ? 60u : 0u) << i;
    seen.insert(part.begin(), part.end());
  }
  EXPECT_EQ(seen.size(), 120u);
}

TEST_F(TreeMirrorSweepTest, ReadsEverythingWithinTheIntervalHoweverMuchAndHoweverOftenItIsAsked) {
  using std::chrono::milliseconds;
  const auto longest_unread = [this](int nodes, Micros step) {
    mirror_ = {};
    Track(nodes);
    std::map<std::string, BootTime> read;
    for (int i = 0; i < nodes; ++i) read["/" + std::to_string(i)] = now_;
    Micros longest{0};
    int parts = 0;
    for (const BootTime end = now_ + seconds(60); now_ < end;) {
      Look(step);
      const std::set<std::string> part = ReadAll();
      parts += part.empty() ? 0 : 1;
      for (const std::string& path : part) {
        longest = std::max<Micros>(longest, now_ - read[path]);
        read[path] = now_;
      }
    }
    for (const auto& [path, at] : read) longest = std::max<Micros>(longest, now_ - at);
    EXPECT_LE(parts, nodes < 100 ? 8 : 60) << nodes;
    return longest;
  };
  for (int nodes = 1; nodes <= 980; nodes += nodes < 200 ? 3 : 60) {
    for (const int ms : {200, 500, 1000, 2000}) {
      if (nodes > 500 && ms > 1000) continue;  // a hundred each time are not enough
      EXPECT_LE(longest_unread(nodes, milliseconds(ms)), seconds(10))
          << nodes << " nodes each " << ms << " ms";
    }
  }
}

TEST_F(TreeMirrorSweepTest, WhoIsAskedSeldomReadsAllAtOnce) {
  Track(20);
  Look(seconds(60));
  EXPECT_EQ(ReadAll().size(), 20u);
}

TEST_F(TreeMirrorSweepTest, ReadsNoMoreThanAHundredThingsASecond) {
  Track(3000);
  for (int i = 0; i < 10; ++i) {
    Look(seconds(1));
    EXPECT_EQ(ReadAll().size(), 100u);
  }
}

TEST_F(TreeMirrorSweepTest, BeginsNoPartBesideAnUnfinishedOne) {
  Track(20);
  Look(seconds(8));
  std::vector<TreeRequest> part;
  while (const auto read = mirror_.NextRead()) part.push_back(*read);
  EXPECT_EQ(part.size(), 20u);
  Look(seconds(8));
  EXPECT_EQ(mirror_.NextRead(), std::nullopt);
  for (std::size_t i = 1; i < part.size(); ++i) mirror_.Replied(part[i], {TreeStatus::Ok});
  Look(seconds(8));
  EXPECT_EQ(mirror_.NextRead(), std::nullopt);  // one is still under way
  mirror_.Replied(part[0], {TreeStatus::Ok});
  Look(Micros(0));
  EXPECT_TRUE(mirror_.NextRead());
}

TEST_F(TreeMirrorSweepTest, AsksAgainForWhatMayNotBeRead) {
  mirror_.TrackNode("/a");
  EXPECT_EQ(Answer({TreeStatus::Denied}), "/a");
  Look(Micros(0));
  EXPECT_EQ(mirror_.NextRead(), std::nullopt);
  Look(seconds(10));
  EXPECT_EQ(Answer({TreeStatus::Ok, {"x", 1}}), "/a");
  EXPECT_EQ(mirror_.Node("/a")->data, "x");
  EXPECT_FALSE(mirror_.IsDenied("/a"));
}

TEST_F(TreeMirrorSweepTest, WhatBecomesStaleMeanwhileIsWaitedFor) {
  Track(20);
  Look(seconds(10));
  mirror_.MakeAllStale();
  EXPECT_FALSE(mirror_.Fresh());
  EXPECT_EQ(ReadAll().size(), 20u);
  EXPECT_TRUE(mirror_.Fresh());
}

}  // namespace
}  // namespace millrace::engine
