#include "framework/policy/breaker.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/task/error_class.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A breaker in virtual time. Its calls take no time unless a test says so.
class BreakerTest : public ::testing::Test {
 protected:
  static BreakerRules Rules() {
    BreakerRules rules;
    rules.minimum = 10;
    rules.classes = {"timeout", "connection", "http_5*"};
    return rules;
  }

  // Starts a call, which has to be let through.
  BreakerMark Start(Breaker& breaker) {
    const auto mark = breaker.Begin(now_);
    EXPECT_TRUE(mark);
    return mark.value_or(BreakerMark{});
  }
  void End(Breaker& breaker, BreakerMark mark, CallSays says) { breaker.Ended(mark, says, now_); }
  void Call(Breaker& breaker, CallSays says, int times = 1) {
    for (int i = 0; i < times; ++i) End(breaker, Start(breaker), says);
  }
  bool IsOpen(const Breaker& breaker) const { return breaker.View(now_).open; }
  void Pass(Micros time) { now_ += time; }
  Breaker Opened() {
    Breaker breaker(Rules());
    Call(breaker, CallSays::Failed, 10);
    EXPECT_TRUE(IsOpen(breaker));
    return breaker;
  }
  static BreakerWord Word(std::int64_t opening, std::int64_t turn, bool mine) {
    return {opening, turn, mine, "10 of 10 calls failed within 10s"};
  }

  BootTime now_{seconds(1000)};
};

TEST_F(BreakerTest, StaysClosedBelowTheMinimumOfCalls) {
  Breaker breaker(Rules());
  Call(breaker, CallSays::Failed, 9);
  EXPECT_FALSE(IsOpen(breaker));
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_EQ(breaker.View(now_).why, "10 of 10 calls failed within 10s");
}

TEST_F(BreakerTest, OpensAtTheShareOfFailuresAndNotBelow) {
  Breaker breaker(Rules());
  Call(breaker, CallSays::Answered, 11);
  Call(breaker, CallSays::Failed, 10);
  EXPECT_FALSE(IsOpen(breaker));
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker));
}

TEST_F(BreakerTest, ForgetsCallsThatHaveLeftTheWindow) {
  Breaker breaker(Rules());
  Call(breaker, CallSays::Failed, 9);
  Pass(seconds(10));
  Call(breaker, CallSays::Answered, 10);
  EXPECT_EQ(breaker.View(now_).calls, 10U);
  Call(breaker, CallSays::Failed, 9);
  EXPECT_FALSE(IsOpen(breaker));
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker));
}

TEST_F(BreakerTest, CallsThatHangAreJudgedThoughTheWindowHoldsFewerThanTheMinimum) {
  Breaker breaker(Rules());
  for (int i = 0; i < 9; ++i) {
    const BreakerMark mark = Start(breaker);
    Pass(seconds(60));
    breaker.Ended(mark, CallSays::Failed, now_, seconds(60));
    EXPECT_FALSE(IsOpen(breaker));
  }
  const BreakerMark last = Start(breaker);
  Pass(seconds(60));
  EXPECT_TRUE(breaker.Charges(last, true, now_)) << "nine say nothing yet";
  breaker.Ended(last, CallSays::Failed, now_, seconds(60));
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_EQ(breaker.View(now_).why, "10 of 10 calls failed within 10m");
}

TEST_F(BreakerTest, SlowCallsThatMostlySucceedLeaveItClosed) {
  Breaker breaker(Rules());
  for (int i = 0; i < 50; ++i) {
    Pass(seconds(5));
    breaker.Ended(Start(breaker), i % 3 == 0 ? CallSays::Failed : CallSays::Answered, now_, seconds(5));
  }
  EXPECT_FALSE(IsOpen(breaker));
}

TEST_F(BreakerTest, AWorkerWhoseShareOfTheCallsIsSmallJudgesTheLastOfThem) {
  Breaker breaker(Rules());
  for (int i = 0; i < 9; ++i) {
    Pass(seconds(5));
    Call(breaker, CallSays::Failed);
    EXPECT_FALSE(IsOpen(breaker));
  }
  Pass(seconds(5));
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker)) << "two in each window";
}

TEST_F(BreakerTest, AMinimumAboveAllThatItRemembersIsMetByThose) {
  BreakerRules rules = Rules();
  rules.minimum = 2000;
  Breaker breaker(rules);
  Call(breaker, CallSays::Failed, 999);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_TRUE(breaker.Charges(Start(breaker), true, now_));
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_EQ(breaker.View(now_).why, "1000 of 1000 calls failed within 10s");
}

TEST_F(BreakerTest, CallsThatAreFarApartAreNotJudgedHoweverManyHaveFailed) {
  Breaker breaker(Rules());
  for (int i = 0; i < 50; ++i) {
    Pass(seconds(12));
    Call(breaker, CallSays::Failed);
  }
  EXPECT_FALSE(IsOpen(breaker)) << "ten of them in 108 s";
}

TEST_F(BreakerTest, SlowCallsAreJudgedNoLongerThanTheyTakeAndNeverMoreThanAnHour) {
  Breaker idle_between(Rules());
  for (int i = 0; i < 20; ++i) {
    Pass(seconds(60));
    idle_between.Ended(Start(idle_between), CallSays::Failed, now_, seconds(20));
  }
  EXPECT_FALSE(IsOpen(idle_between)) << "ten take 200 s, and come within 540 s";
  Breaker very_slow(Rules());
  for (int i = 0; i < 20; ++i) {
    Pass(seconds(500));
    very_slow.Ended(Start(very_slow), CallSays::Failed, now_, seconds(500));
  }
  EXPECT_FALSE(IsOpen(very_slow)) << "ten come within 75 minutes";
}

TEST_F(BreakerTest, ATaskThatHasFailedBeforeIsNotChargedWhileSlowCallsFail) {
  BreakerRules rules = Rules();
  rules.failures = 0.6;
  Breaker breaker(rules);
  for (int i = 0; i < 10; ++i) {
    Pass(seconds(4));
    breaker.Ended(Start(breaker), i % 2 == 0 ? CallSays::Answered : CallSays::Failed, now_, seconds(4));
  }
  EXPECT_TRUE(breaker.Charges(Start(breaker), true, now_));
  breaker.SetRules(Rules());  // at half of them
  EXPECT_FALSE(breaker.Charges(Start(breaker), true, now_));
}

TEST_F(BreakerTest, OnlyAProbeWaitsForTheNextTurnAndOthersComeFirstWhenItCloses) {
  BreakerRules rules = Rules();
  rules.probe_every = std::chrono::hours(1);
  Breaker breaker(rules);
  const BreakerMark under_way = Start(breaker);
  Call(breaker, CallSays::Failed, 10);
  End(breaker, under_way, CallSays::Failed);
  EXPECT_EQ(breaker.DelayOfUncharged(under_way), std::nullopt) << "it keeps its place";
  Pass(std::chrono::hours(1));
  const BreakerMark probe = Start(breaker);
  ASSERT_TRUE(probe.probe);
  End(breaker, probe, CallSays::Failed);
  EXPECT_EQ(breaker.DelayOfUncharged(probe), Micros(std::chrono::hours(1)));
  breaker.SetHand(BreakerHand::Close, now_);
  EXPECT_EQ(breaker.DelayOfUncharged(under_way), Breaker::kShortDelay) << "nothing else holds it back";
}

TEST_F(BreakerTest, CountsTheNamedClassesAlone) {
  const Breaker breaker(Rules());
  EXPECT_EQ(breaker.WhatItSays(true, "timeout"), CallSays::Failed);
  EXPECT_EQ(breaker.WhatItSays(true, "http_503"), CallSays::Failed);
  EXPECT_EQ(breaker.WhatItSays(true, "http_404"), CallSays::Answered);
  EXPECT_EQ(breaker.WhatItSays(true, ""), CallSays::Answered);
  EXPECT_EQ(breaker.WhatItSays(false, ""), CallSays::Answered);
}

TEST_F(BreakerTest, NeverCountsBadParamsWhateverIsNamed) {
  BreakerRules rules = Rules();
  rules.classes = {"*"};
  Breaker breaker(rules);
  EXPECT_EQ(breaker.WhatItSays(true, "anything"), CallSays::Failed);
  EXPECT_EQ(breaker.WhatItSays(true, "bad_params"), CallSays::Undecided);
  Call(breaker, CallSays::Undecided, 100);
  EXPECT_EQ(breaker.View(now_).calls, 0U);
}

TEST_F(BreakerTest, LetsNothingThroughUntilItIsTimeToProbe) {
  Breaker breaker = Opened();
  EXPECT_EQ(breaker.Room(now_), 0U);
  EXPECT_FALSE(breaker.Begin(now_));
  EXPECT_EQ(breaker.Next(now_), now_ + milliseconds(100));
  Pass(seconds(2) - Micros(1));
  EXPECT_EQ(breaker.Room(now_), 0U);
  Pass(Micros(1));
  EXPECT_EQ(breaker.Room(now_), 1U);
  EXPECT_TRUE(breaker.Begin(now_));
  EXPECT_FALSE(breaker.Begin(now_));
  EXPECT_EQ(breaker.Room(now_), 0U);
}

TEST_F(BreakerTest, ClosesWhenAProbeSucceeds) {
  Breaker breaker = Opened();
  Pass(seconds(2));
  const BreakerMark probe = Start(breaker);
  EXPECT_TRUE(probe.probe);
  End(breaker, probe, CallSays::Answered);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_EQ(breaker.Room(now_), Breaker::kAnyNumber);
  // What it had counted is forgotten: one failure opens nothing.
  Call(breaker, CallSays::Failed, 9);
  EXPECT_FALSE(IsOpen(breaker));
}

TEST_F(BreakerTest, StaysOpenWhenAProbeFailsAndTriesAgain) {
  Breaker breaker = Opened();
  for (int turn = 0; turn < 5; ++turn) {
    Pass(seconds(2));
    const BreakerMark probe = Start(breaker);
    EXPECT_FALSE(breaker.Charges(probe, false, now_));
    End(breaker, probe, CallSays::Failed);
    EXPECT_TRUE(IsOpen(breaker));
    EXPECT_EQ(breaker.Room(now_), 0U);
  }
}

TEST_F(BreakerTest, ClosesOnlyAfterAsManySuccessesInSuccessionAsItHasProbes) {
  BreakerRules rules = Rules();
  rules.probes = 3;
  Breaker breaker(rules);
  Call(breaker, CallSays::Failed, 10);
  Pass(seconds(2));
  EXPECT_EQ(breaker.Room(now_), 3U);
  Call(breaker, CallSays::Answered, 2);
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker));
  Pass(seconds(2));
  Call(breaker, CallSays::Answered, 2);
  EXPECT_TRUE(IsOpen(breaker));
  Call(breaker, CallSays::Answered);
  EXPECT_FALSE(IsOpen(breaker));
}

TEST_F(BreakerTest, WaitsForAProbeThatHangs) {
  Breaker breaker = Opened();
  Pass(seconds(2));
  const BreakerMark probe = Start(breaker);
  Pass(seconds(30));
  EXPECT_EQ(breaker.Room(now_), 0U);
  End(breaker, probe, CallSays::Failed);
  EXPECT_EQ(breaker.Room(now_), 1U);
}

TEST_F(BreakerTest, AProbeThatSaysNothingLeavesItsPlaceToAnother) {
  Breaker breaker = Opened();
  Pass(seconds(2));
  End(breaker, Start(breaker), CallSays::Nothing);
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_EQ(breaker.Room(now_), 1U);
}

// A handler that snoozes may have called all the same: its tasks would be tried one after another.
TEST_F(BreakerTest, AProbeThatEndsWithoutAWordOfWhomItCalledIsTheTurnsAllTheSame) {
  Breaker breaker = Opened();
  Pass(seconds(2));
  End(breaker, Start(breaker), CallSays::Undecided);
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_EQ(breaker.Room(now_), 0U);
  Pass(seconds(2));
  EXPECT_EQ(breaker.Room(now_), 1U);
}

TEST_F(BreakerTest, ChargesTheFailuresThatOpenItAndNoLaterOne) {
  Breaker breaker(Rules());
  std::vector<BreakerMark> calls;
  for (int i = 0; i < 30; ++i) calls.push_back(Start(breaker));
  int charged = 0;
  for (const BreakerMark& call : calls) {
    if (breaker.Charges(call, false, now_)) ++charged;
    End(breaker, call, CallSays::Failed);
  }
  EXPECT_EQ(charged, 10);
}

TEST_F(BreakerTest, ACallFromBeforeTheOpeningIsNotChargedOnceItHasClosedAgain) {
  Breaker breaker(Rules());
  const BreakerMark slow = Start(breaker);
  Call(breaker, CallSays::Failed, 10);
  Pass(seconds(2));
  Call(breaker, CallSays::Answered);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_FALSE(breaker.Charges(slow, false, now_));
  End(breaker, slow, CallSays::Failed);
  EXPECT_EQ(breaker.View(now_).calls, 0U);
}

TEST_F(BreakerTest, ACallThatBeganBeforeTheOpeningIsNoProbeAndNotCharged) {
  Breaker breaker(Rules());
  const BreakerMark late = Start(breaker);
  Call(breaker, CallSays::Failed, 10);
  EXPECT_FALSE(late.probe);
  EXPECT_FALSE(breaker.Charges(late, false, now_));
  End(breaker, late, CallSays::Answered);
  EXPECT_TRUE(IsOpen(breaker));
}

TEST_F(BreakerTest, WhileTheLastCallsFailNoTaskIsChargedTwiceThoughTheWindowWasGood) {
  Breaker breaker(Rules());
  Call(breaker, CallSays::Answered, 1000);
  Call(breaker, CallSays::Failed, 4);
  EXPECT_TRUE(breaker.Charges(Start(breaker), true, now_)) << "others succeed: it is the task's own fault";
  Call(breaker, CallSays::Failed);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_FALSE(breaker.Charges(Start(breaker), true, now_));
  EXPECT_TRUE(breaker.Charges(Start(breaker), false, now_)) << "it helps to open";
  Pass(seconds(101));
  EXPECT_TRUE(breaker.Charges(Start(breaker), true, now_)) << "that was long ago";
}

TEST_F(BreakerTest, FewerCallsThanTheMinimumAreChargedAsEver) {
  Breaker breaker(Rules());
  Call(breaker, CallSays::Failed, 9);
  EXPECT_TRUE(breaker.Charges(Start(breaker), true, now_));
}

TEST_F(BreakerTest, OpenByHandItLetsNothingThroughAndAProbeTellsWhenThatIsOver) {
  Breaker breaker(Rules());
  breaker.SetHand(BreakerHand::Open, now_);
  EXPECT_TRUE(IsOpen(breaker));
  Pass(seconds(100));
  EXPECT_EQ(breaker.Room(now_), 0U);
  breaker.SetHand(BreakerHand::Auto, now_);
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_EQ(breaker.Room(now_), 1U);
  Call(breaker, CallSays::Answered);
  EXPECT_FALSE(IsOpen(breaker));
}

TEST_F(BreakerTest, AProbeUnderWayDoesNotCloseWhatIsOpenByHand) {
  Breaker breaker = Opened();
  Pass(seconds(2));
  const BreakerMark probe = Start(breaker);
  breaker.SetHand(BreakerHand::Open, now_);
  End(breaker, probe, CallSays::Answered);
  EXPECT_TRUE(IsOpen(breaker));
}

TEST_F(BreakerTest, ClosedByHandItDoesNotOpen) {
  Breaker breaker = Opened();
  breaker.SetHand(BreakerHand::Close, now_);
  Call(breaker, CallSays::Failed, 100);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_TRUE(breaker.Charges(Start(breaker), true, now_)) << "tasks climb their ladders as ever";
  breaker.SetHand(BreakerHand::Auto, now_);
  Call(breaker, CallSays::Failed);
  EXPECT_TRUE(IsOpen(breaker));
}

TEST_F(BreakerTest, NewRulesKeepTheState) {
  Breaker breaker = Opened();
  BreakerRules rules = Rules();
  rules.probes = 4;
  breaker.SetRules(rules);
  EXPECT_TRUE(IsOpen(breaker));
  Pass(seconds(2));
  EXPECT_EQ(breaker.Room(now_), 4U);
}

TEST_F(BreakerTest, InAClusterItSaysThatItHasOpened) {
  Breaker breaker(Rules());
  breaker.Follow(nullptr, now_);
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::None);
  Call(breaker, CallSays::Failed, 10);
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::Open);
  breaker.Follow(nullptr, now_);  // it is not written yet
  EXPECT_TRUE(IsOpen(breaker));
  const BreakerWord word = Word(7, 0, false);
  breaker.Follow(&word, now_);
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::None);
}

TEST_F(BreakerTest, OpensAndClosesWithTheCluster) {
  Breaker breaker(Rules());
  const BreakerMark running = Start(breaker);
  const BreakerWord word = Word(7, 0, false);
  breaker.Follow(&word, now_);
  EXPECT_TRUE(IsOpen(breaker));
  EXPECT_FALSE(breaker.Charges(running, false, now_));
  breaker.Follow(nullptr, now_);
  EXPECT_FALSE(IsOpen(breaker));
}

TEST_F(BreakerTest, AmongThreeWorkersOneProbesAtATime) {
  std::vector<Breaker> workers(3, Breaker(Rules()));
  BreakerWord word = Word(7, 0, false);
  std::size_t taker = 3;
  int probes = 0;
  for (int tick = 0; tick < 600; ++tick, Pass(milliseconds(50))) {  // 30 s
    for (std::size_t i = 0; i < workers.size(); ++i) {
      word.mine = i == taker;
      workers[i].Follow(&word, now_);
      workers[i].NoteWork(now_);
      if (workers[i].Room(now_) > 0) {
        Call(workers[i], CallSays::Failed);
        ++probes;
      }
    }
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (workers[i].Wish(now_).wish != BreakerWish::Probe) continue;
      taker = i;  // the first write wins; the others' find another version
      ++word.turn;
      break;
    }
  }
  EXPECT_GE(probes, 12);
  EXPECT_LE(probes, 15);
}

TEST_F(BreakerTest, AsksForATurnOnlyWhereTasksWait) {
  Breaker breaker(Rules());
  const BreakerWord word = Word(7, 0, false);
  breaker.Follow(&word, now_);
  Pass(seconds(5));
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::None);
  breaker.NoteWork(now_);
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::Probe);
}

TEST_F(BreakerTest, ATurnOfAnEarlierLifeIsNotItsOwn) {
  Breaker breaker(Rules());
  const BreakerWord word = Word(7, 3, true);
  breaker.Follow(&word, now_);
  EXPECT_EQ(breaker.Room(now_), 0U);
}

TEST_F(BreakerTest, AfterItsProbeSucceededItClosesForAllAndHeedsThatOpeningNoMore) {
  Breaker breaker(Rules());
  BreakerWord word = Word(7, 0, false);
  breaker.Follow(&word, now_);
  word = Word(7, 1, true);
  breaker.Follow(&word, now_);
  Call(breaker, CallSays::Answered);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::Close);
  breaker.Follow(&word, now_);
  EXPECT_FALSE(IsOpen(breaker));
  breaker.Follow(nullptr, now_);
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::None);
  const BreakerWord next = Word(9, 0, false);
  breaker.Follow(&next, now_);
  EXPECT_TRUE(IsOpen(breaker));
}

TEST_F(BreakerTest, WithoutTheClusterItProbesByItself) {
  Breaker breaker(Rules());
  const BreakerWord word = Word(7, 0, false);
  breaker.Follow(&word, now_);
  Pass(seconds(5));
  EXPECT_EQ(breaker.Room(now_), 0U);
  breaker.FollowNobody();
  EXPECT_EQ(breaker.Room(now_), 1U);
  Call(breaker, CallSays::Answered);
  EXPECT_FALSE(IsOpen(breaker));
  // The cluster, when it is back, still says that it is open.
  breaker.Follow(&word, now_);
  EXPECT_FALSE(IsOpen(breaker));
  EXPECT_EQ(breaker.Wish(now_).wish, BreakerWish::Close);
}

TEST(ErrorClassTest, APatternIsAClassOrItsBeginning) {
  EXPECT_TRUE(FitsClass("timeout", "timeout"));
  EXPECT_FALSE(FitsClass("timeout", "timeouts"));
  EXPECT_TRUE(FitsClass("http_5*", "http_503"));
  EXPECT_TRUE(FitsClass("http_5*", "http_5"));
  EXPECT_FALSE(FitsClass("http_5*", "http_404"));
  EXPECT_TRUE(FitsClass("*", ""));
  EXPECT_FALSE(FitsClass("timeout", ""));
}

}  // namespace
}  // namespace millrace::engine
