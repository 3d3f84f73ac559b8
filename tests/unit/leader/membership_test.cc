#include "coordinator/leader/membership.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Micros kSession = seconds(10);

// A cluster in which workers come and go by name; each coming is a new life.
class MembershipTest : public testing::Test {
 protected:
  MembershipTest() : membership_({.session_timeout = kSession}) { membership_.Begin(BootTime{}); }

  void Come(const std::string& id) {
    view_.present[id] = WorkerDocument{.host = "h", .incarnation = id + "." + std::to_string(++lives_)};
    view_.owners.insert(id);
    Look();
  }
  void ComeAll(std::initializer_list<const char*> ids) {
    for (const char* id : ids) Come(id);
  }
  void Go(const std::string& id) {
    view_.present.erase(id);
    Look();
  }
  // As a worker does that is stopped in good order.
  void Leave(const std::string& id) {
    view_.left[view_.present[id].incarnation] = id;
    Go(id);
  }
  void Announce(const std::string& id, std::uint32_t for_seconds = 60) {
    const std::int32_t version = view_.expected.contains(id) ? view_.expected[id].version + 1 : 0;
    view_.expected[id] = {{view_.present[id].incarnation, for_seconds}, 1, version};
    Look();
  }
  void Look() { membership_.Observe(view_, now_); }
  void Pass(Micros time) {
    now_ += time;
    Look();
  }
  MemberRole Role(const std::string& id) { return membership_.Roles(now_).at(id); }

  Membership membership_;
  MembershipView view_;
  BootTime now_{seconds(1000)};
  int lives_ = 0;
};

TEST_F(MembershipTest, ANewWorkerIsActiveAtOnceAndTheClusterQuietAfterFiveSeconds) {
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
  EXPECT_FALSE(membership_.Quiet(now_));
  EXPECT_EQ(membership_.NextChange(now_), now_ + seconds(5));
  Pass(seconds(5));
  EXPECT_TRUE(membership_.Quiet(now_));
}

TEST_F(MembershipTest, WhoVanishesIsGoneOnceNobodyElseFollowsForAWhile) {
  ComeAll({"w1", "w2", "w3"});
  Go("w2");
  EXPECT_EQ(Role("w2"), MemberRole::Kept);
  EXPECT_EQ(membership_.NextChange(now_), now_ + milliseconds(700));
  Pass(milliseconds(600));
  Go("w3");
  Pass(milliseconds(600));
  EXPECT_EQ(Role("w2"), MemberRole::Kept);
  Pass(milliseconds(100));
  EXPECT_EQ(Role("w2"), MemberRole::Gone);
  EXPECT_EQ(Role("w3"), MemberRole::Gone);
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, ThoseLostTogetherKeepTheirSlicesThoughTheirSessionsEndOneByOne) {
  ComeAll({"w1", "w2", "w3", "w4", "w5"});
  for (const char* id : {"w1", "w2", "w3"}) {
    Go(id);
    Pass(milliseconds(600));
    EXPECT_EQ(Role("w1"), MemberRole::Kept);
  }
  EXPECT_TRUE(membership_.Holding(now_));
}

TEST_F(MembershipTest, ALeaderWhosePredecessorWasLostWithManyHolds) {
  ComeAll({"w1", "w2", "w3", "w4", "w5"});
  for (const char* id : {"w1", "w2", "w3"}) view_.present.erase(id);
  membership_.Begin(now_);
  Look();
  EXPECT_TRUE(membership_.Holding(now_));
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
}

TEST_F(MembershipTest, ALeaderOfANewClusterDoesNotWaitForTheWorkersOfAnOldOne) {
  ComeAll({"w1", "w2", "w3", "w4", "w5"});
  view_.present.clear();
  membership_.Begin(now_);
  view_.present["w6"] = WorkerDocument{.host = "h", .incarnation = "w6.1"};
  Look();
  EXPECT_FALSE(membership_.Holding(now_));
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
}

TEST_F(MembershipTest, AnExpectedRestartKeepsItsSlicesAndLeavesNoMark) {
  ComeAll({"w1", "w2"});
  Announce("w1");
  Go("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
  Pass(seconds(20));
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
  EXPECT_THAT(membership_.EndedExpectations(now_), testing::ElementsAre("w1"));
}

TEST_F(MembershipTest, AnExpectedRestartThatDoesNotComeBackIsGone) {
  ComeAll({"w1", "w2"});
  Announce("w1", 30);
  Go("w1");
  Pass(seconds(29));
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
  EXPECT_EQ(membership_.NextChange(now_), now_ + seconds(1));
  Pass(seconds(1));
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
  EXPECT_THAT(membership_.EndedExpectations(now_), testing::ElementsAre("w1"));
}

TEST_F(MembershipTest, AnAnnouncementThatIsMadeAnewCountsAnew) {
  ComeAll({"w1", "w2"});
  Announce("w1", 30);
  const WorkerDocument life = view_.present["w1"];
  Go("w1");
  Pass(seconds(20));
  view_.expected["w1"] = {{life.incarnation, 30}, 1, 1};
  Look();
  Pass(seconds(29));
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
  Pass(seconds(1));
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
}

TEST_F(MembershipTest, AnAnnouncedRestartThatWasNeverMadeIsForgotten) {
  Come("w1");
  Announce("w1", 30);
  EXPECT_THAT(membership_.EndedExpectations(now_), testing::IsEmpty());
  Pass(seconds(30));
  EXPECT_THAT(membership_.EndedExpectations(now_), testing::ElementsAre("w1"));
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, AnAnnouncementForAnUnknownWorkerEnds) {
  view_.expected["nobody"] = {{.seconds = 10}};
  Look();
  Pass(seconds(10));
  EXPECT_THAT(membership_.EndedExpectations(now_), testing::ElementsAre("nobody"));
}

TEST_F(MembershipTest, AnUnannouncedEndIsFollowedByProbationThatDoubles) {
  ComeAll({"w1", "w2"});
  for (const Micros probation : {seconds(15), seconds(30), seconds(60)}) {
    const MemberRole role = probation < seconds(60) ? MemberRole::Probation : MemberRole::Flapping;
    Go("w1");
    Come("w1");
    EXPECT_EQ(Role("w1"), role);
    EXPECT_THAT(membership_.Probations(now_), testing::ElementsAre(testing::Pair("w1", now_ + probation)));
    Pass(probation - milliseconds(1));
    EXPECT_EQ(Role("w1"), role);
    Pass(milliseconds(1));
    EXPECT_EQ(Role("w1"), MemberRole::Active);
    EXPECT_THAT(membership_.Probations(now_), testing::IsEmpty());
  }
}

TEST_F(MembershipTest, WhereMostFlapEachKeepsWhatItHas) {
  ComeAll({"w1", "w2", "w3", "w4"});
  const auto crash = [&](std::initializer_list<const char*> ids) {
    for (int i = 0; i < 3; ++i) ComeAll(ids);
  };
  crash({"w1", "w2"});
  EXPECT_EQ(Role("w1"), MemberRole::Flapping);
  crash({"w3"});
  for (const char* id : {"w1", "w2", "w3"}) EXPECT_EQ(Role(id), MemberRole::Probation);
  EXPECT_EQ(Role("w4"), MemberRole::Active);
  EXPECT_THAT(membership_.Probations(now_), testing::SizeIs(3));
  Go("w3");
  EXPECT_EQ(Role("w1"), MemberRole::Probation) << "w3 is between two lives";
  Come("w3");
  Pass(seconds(60));
  EXPECT_EQ(Role("w1"), MemberRole::Active);
  EXPECT_EQ(Role("w3"), MemberRole::Probation) << "the others have only just held out";
}

TEST_F(MembershipTest, AnAnnouncedRestartOfOneThatFlappedKeepsItsSlices) {
  ComeAll({"w1", "w2", "w3"});
  for (int i = 0; i < 3; ++i) Come("w1");
  ASSERT_EQ(Role("w1"), MemberRole::Flapping);
  Pass(minutes(2));
  Announce("w1");
  Go("w1");
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Probation);
}

TEST_F(MembershipTest, NothingIsTakenFromThoseThatFlapWhileNothingMoves) {
  ComeAll({"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10"});
  for (int i = 0; i < 3; ++i) {
    for (const char* id : {"w1", "w2", "w3", "w4"}) Go(id);
    ComeAll({"w1", "w2", "w3", "w4"});
  }
  ASSERT_TRUE(membership_.Holding(now_));
  EXPECT_EQ(Role("w1"), MemberRole::Probation);
  Pass(seconds(31));
  EXPECT_EQ(Role("w1"), MemberRole::Flapping);
}

TEST_F(MembershipTest, ARestartBetweenTwoLooksCountsAsAnEnd) {
  Come("w1");
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Probation);
}

TEST_F(MembershipTest, WhoLeavesInGoodOrderIsGoneAtOnceAndIsActiveAtOnceWhenItIsBack) {
  ComeAll({"w1", "w2"});
  Leave("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, ALeaveAndAReturnBetweenTwoLooksLeaveNoMark) {
  Come("w1");
  view_.left[view_.present["w1"].incarnation] = "w1";
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, ALeaveSpeaksForOneLifeAlone) {
  ComeAll({"w1", "w2"});
  Leave("w1");
  Come("w1");
  Go("w1");  // this one crashed
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Probation);
}

TEST_F(MembershipTest, HoweverManyLeaveInGoodOrderNothingIsHeld) {
  ComeAll({"w1", "w2", "w3", "w4", "w5", "w6"});
  for (const char* id : {"w1", "w2", "w3", "w4", "w5"}) Leave(id);
  EXPECT_FALSE(membership_.Holding(now_));
  EXPECT_EQ(Role("w5"), MemberRole::Gone);
}

TEST_F(MembershipTest, WhoLeavesInTheMidstOfAMassLossIsNotKept) {
  ComeAll({"w1", "w2", "w3", "w4", "w5", "w6"});
  for (const char* id : {"w1", "w2", "w3"}) Go(id);
  ASSERT_TRUE(membership_.Holding(now_));
  Leave("w4");
  EXPECT_EQ(Role("w3"), MemberRole::Kept);
  EXPECT_EQ(Role("w4"), MemberRole::Gone);
}

TEST_F(MembershipTest, AnExpectedRestartKeepsTheSlicesOfOneThatLeavesInGoodOrder) {
  ComeAll({"w1", "w2"});
  Announce("w1", 30);
  Leave("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
  EXPECT_THAT(membership_.EndedLeaves(), testing::IsEmpty());  // it matters when nobody expects it any more
  Pass(seconds(30));
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
}

TEST_F(MembershipTest, ANewLeaderKnowsWhoLeftInGoodOrder) {
  ComeAll({"w1", "w2", "w3", "w4", "w5"});
  for (const char* id : {"w1", "w2", "w3"}) {
    view_.left[view_.present[id].incarnation] = id;
    view_.present.erase(id);
  }
  membership_.Begin(now_);
  Look();
  EXPECT_FALSE(membership_.Holding(now_));
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, ALeaveIsHeededOnceItsSlicesAreElsewhereOrItsWorkerIsBack) {
  ComeAll({"w1", "w2"});
  Leave("w1");
  EXPECT_THAT(membership_.EndedLeaves(), testing::IsEmpty());
  view_.owners.erase("w1");
  Look();
  EXPECT_THAT(membership_.EndedLeaves(), testing::ElementsAre("w1.1"));
  view_.owners.insert("w1");
  Come("w1");
  EXPECT_THAT(membership_.EndedLeaves(), testing::ElementsAre("w1.1"));
}

TEST_F(MembershipTest, UnannouncedEndsAreForgotten) {
  ComeAll({"w1", "w2"});
  Go("w1");
  Come("w1");
  Pass(minutes(11));
  Go("w1");
  Come("w1");
  Pass(seconds(15));
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, ADrainedWorkerIsGoneWithItsProcessAndLeavesNoMark) {
  ComeAll({"w1", "w2"});
  view_.draining.insert("w1");
  Look();
  EXPECT_EQ(Role("w1"), MemberRole::Draining);
  Go("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
  view_.draining.clear();
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

TEST_F(MembershipTest, WhenManyVanishWithinASessionTimeOutNothingMovesForHalfAMinute) {
  ComeAll({"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8"});
  Pass(minutes(1));
  Go("w1");
  Pass(seconds(4));
  Go("w2");
  EXPECT_FALSE(membership_.Holding(now_));
  Pass(seconds(4));
  Go("w3");
  EXPECT_TRUE(membership_.Holding(now_));
  EXPECT_EQ(Role("w3"), MemberRole::Kept);
  EXPECT_FALSE(membership_.Quiet(now_));
  Pass(seconds(30));
  EXPECT_FALSE(membership_.Holding(now_));
  EXPECT_EQ(Role("w3"), MemberRole::Gone);
}

TEST_F(MembershipTest, AQuarterIsNotMoreThanAQuarter) {
  ComeAll({"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11", "w12"});
  for (const char* id : {"w1", "w2", "w3"}) Go(id);
  EXPECT_FALSE(membership_.Holding(now_));
  Go("w4");
  EXPECT_TRUE(membership_.Holding(now_));
}

TEST_F(MembershipTest, ThoseThatVanishSlowlyAreNoMassLoss) {
  ComeAll({"w1", "w2", "w3", "w4", "w5", "w6"});
  for (const char* id : {"w1", "w2", "w3"}) {
    Go(id);
    Pass(kSession + seconds(1));
  }
  EXPECT_FALSE(membership_.Holding(now_));
}

TEST_F(MembershipTest, TheOperatorsWordEndsTheHold) {
  ComeAll({"w1", "w2", "w3", "w4"});
  for (const char* id : {"w1", "w2", "w3"}) Go(id);
  ASSERT_TRUE(membership_.Holding(now_));
  Pass(seconds(1));
  membership_.Proceed(now_);
  Look();
  EXPECT_FALSE(membership_.Holding(now_));
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
  EXPECT_TRUE(membership_.Quiet(now_));
}

TEST_F(MembershipTest, ALeaderThatWasCutOffCallsNobodyMissingForAWhile) {
  membership_.Begin(now_ + kSession);
  view_.owners = {"w1", "w2"};
  Come("w2");
  EXPECT_EQ(Role("w1"), MemberRole::Kept);
  EXPECT_FALSE(membership_.Quiet(now_));
  Pass(kSession);
  EXPECT_EQ(Role("w1"), MemberRole::Gone);
}

TEST_F(MembershipTest, KnowsWhatAnAbsentWorkerSaidLast) {
  Come("w1");
  Announce("w1");
  Go("w1");
  EXPECT_EQ(membership_.Documents().at("w1").host, "h");
}

// Else some that crash again and again would keep everybody's orphans where they are.
TEST_F(MembershipTest, WhoVanishesIsGoneAfterASessionsTimeWhoeverElseComesAndGoes) {
  for (int i = 0; i < 40; ++i) Come("w" + std::to_string(i));
  Go("w0");
  const BootTime gone = now_;
  while (now_ < gone + kSession) {
    EXPECT_EQ(Role("w0"), MemberRole::Kept);
    Go("w1");
    Come("w1");
    Pass(milliseconds(500));
  }
  EXPECT_EQ(Role("w0"), MemberRole::Gone);
}

TEST_F(MembershipTest, WhoHasNothingAndCrashesAgainAndAgainKeepsNobodyFromBalance) {
  ComeAll({"w1", "w2", "w3", "w4"});
  for (int i = 0; i < 15 && !membership_.Quiet(now_); ++i) {
    Go("w3");
    view_.owners.erase("w3");
    Come("w3");
    view_.owners.erase("w3");
    Pass(seconds(4));
  }
  EXPECT_TRUE(membership_.Quiet(now_));
}

TEST_F(MembershipTest, AnEndLongAgoIsForgottenBehindALeave) {
  ComeAll({"w1", "w2"});
  Go("w1");
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Probation);
  Pass(minutes(11));
  Leave("w1");
  Come("w1");
  EXPECT_EQ(Role("w1"), MemberRole::Active);
}

}  // namespace
}  // namespace millrace::engine
