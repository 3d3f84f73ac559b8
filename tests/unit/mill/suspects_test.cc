#include "framework/mill/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/testing/manual_clock.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class SoloGateTest : public ::testing::Test {
 protected:
  // Asks each second, for so long, beside what is expected to take ten minutes yet. True if it is alone then.
  bool AsksBesideLongWork(Micros span, const std::string& suspect = "a") {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end; clock_.Advance(seconds(1))) {
      if (gate_.EnterAlone(suspect, minutes(10))) return true;
    }
    return false;
  }

  ManualClock clock_;
  SoloGate gate_{clock_};
};

TEST_F(SoloGateTest, SolitudeWaitsForEverybodyInside) {
  ASSERT_TRUE(gate_.Enter(2));
  EXPECT_FALSE(gate_.EnterAlone("a"));
  gate_.Leave();
  EXPECT_FALSE(gate_.EnterAlone("a"));
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("a"));
}

TEST_F(SoloGateTest, NobodyEntersWhileSolitudeIsWantedOrHad) {
  ASSERT_TRUE(gate_.Enter(1));
  EXPECT_FALSE(gate_.EnterAlone("a"));
  EXPECT_FALSE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("a"));
  EXPECT_FALSE(gate_.Enter(1));
  EXPECT_FALSE(gate_.EnterAlone("b"));
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SoloGateTest, ATaskThatIsClaimedAlreadyCountsButIsToldNotToRun) {
  EXPECT_FALSE(gate_.Wanted());
  EXPECT_TRUE(gate_.EnterClaimed());
  EXPECT_FALSE(gate_.EnterAlone("a"));
  EXPECT_FALSE(gate_.EnterClaimed());
  gate_.Leave(2);
  EXPECT_TRUE(gate_.EnterAlone("a"));
}

TEST_F(SoloGateTest, SuspectsFollowEachOtherForAStretchThenTheOthersHaveAsLong) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(gate_.EnterAlone(std::to_string(i)));
    clock_.Advance(seconds(1));
    gate_.LeaveAlone();
  }
  EXPECT_FALSE(gate_.EnterAlone("next"));
  EXPECT_FALSE(gate_.Wanted()) << "a wish in their turn keeps nobody out";
  ASSERT_TRUE(gate_.Enter(1));
  clock_.Advance(seconds(9));
  EXPECT_FALSE(gate_.EnterAlone("next"));
  clock_.Advance(seconds(2));
  EXPECT_FALSE(gate_.EnterAlone("next"));
  EXPECT_FALSE(gate_.Enter(1)) << "their turn is over";
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("next"));
}

TEST_F(SoloGateTest, ATurnThatNobodyUsesIsOverAtOnce) {
  ASSERT_TRUE(gate_.EnterAlone("a"));
  clock_.Advance(seconds(30));
  gate_.LeaveAlone();
  EXPECT_FALSE(gate_.EnterAlone("b"));
  clock_.Advance(milliseconds(500));
  EXPECT_TRUE(gate_.EnterAlone("b"));
}

TEST_F(SoloGateTest, HoursInWhichNobodyCameAreNoStretch) {
  ASSERT_TRUE(gate_.EnterAlone("a"));
  clock_.Advance(seconds(1));
  gate_.LeaveAlone();
  clock_.Advance(std::chrono::hours(3));
  ASSERT_TRUE(gate_.EnterAlone("b"));
  clock_.Advance(seconds(1));
  gate_.LeaveAlone();
  ASSERT_TRUE(gate_.Enter(1));
  clock_.Advance(seconds(20));
  EXPECT_FALSE(gate_.EnterAlone("c"));
  EXPECT_TRUE(gate_.Wanted());
}

// Its scan may hang in the shard, and no thread comes to take the wish back.
TEST_F(SoloGateTest, AShardThatClaimsNoMoreKeepsNobodyOut) {
  gate_.Enter(1);
  EXPECT_FALSE(gate_.EnterAlone("gone/tasks/7"));
  gate_.WithdrawAll("other");
  EXPECT_FALSE(gate_.Enter(1));
  gate_.WithdrawAll("gone");
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SoloGateTest, ASuspectThatRunsAloneDoesSoToItsEndAlsoInAShardThatClaimsNoMore) {
  EXPECT_TRUE(gate_.EnterAlone("gone/tasks/7"));
  gate_.WithdrawAll("gone");
  EXPECT_FALSE(gate_.Enter(1));
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.Enter(1));
}

// Where parts were dealt anew two strands may know of the same one.
TEST_F(SoloGateTest, WhoIsAloneStaysSoThoughAnotherStrandWithdrawsTheSameOne) {
  ASSERT_TRUE(gate_.EnterAlone("main/tasks/7"));
  gate_.Withdraw("main/tasks/7");
  EXPECT_FALSE(gate_.Enter(1));
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SoloGateTest, WhoIsAloneIsSoOnceThoughAnotherStrandAsksForTheSameOne) {
  ASSERT_TRUE(gate_.EnterAlone("main/tasks/7"));
  EXPECT_FALSE(gate_.EnterAlone("main/tasks/7"));
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.EnterAlone("main/tasks/7"));
}

TEST_F(SoloGateTest, AWishThatNobodyRenewsKeepsNobodyOut) {
  gate_.Enter(1);
  EXPECT_FALSE(gate_.EnterAlone("a/tasks/7"));
  clock_.Advance(milliseconds(2900));
  EXPECT_FALSE(gate_.EnterAlone("a/tasks/7"));
  clock_.Advance(milliseconds(2900));
  EXPECT_FALSE(gate_.Enter(1));
  EXPECT_TRUE(gate_.Wanted());
  clock_.Advance(milliseconds(200));
  EXPECT_FALSE(gate_.Wanted());
  EXPECT_TRUE(gate_.EnterClaimed());
  EXPECT_TRUE(gate_.Enter(1));
  gate_.Leave(3);
  EXPECT_TRUE(gate_.EnterAlone("b/tasks/1")) << "nor another that wants to be alone";
  clock_.Advance(seconds(100));
  EXPECT_FALSE(gate_.Enter(1)) << "who is alone need not say so again";
}

TEST_F(SoloGateTest, BesideWhatRunsForLongNobodyIsKeptOutUntilThatIsDueToEndSoon) {
  gate_.Enter(1);
  EXPECT_FALSE(gate_.EnterAlone("a", std::chrono::hours(1)));
  EXPECT_TRUE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_FALSE(gate_.EnterAlone("a", seconds(20)));
  EXPECT_FALSE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_TRUE(gate_.EnterAlone("a"));
}

// Long tasks that follow each other would keep it waiting for ever: neither run nor in quarantine.
TEST_F(SoloGateTest, BesideSteadyLongWorkASuspectHasItsTurnAfterAQuarterOfAnHour) {
  ASSERT_TRUE(gate_.Enter(1));
  EXPECT_FALSE(AsksBesideLongWork(minutes(15)));
  EXPECT_TRUE(gate_.Enter(1)) << "nobody was kept out";
  gate_.Leave();
  EXPECT_FALSE(AsksBesideLongWork(minutes(10)));
  EXPECT_FALSE(gate_.Enter(1));
  gate_.Leave();
  EXPECT_TRUE(AsksBesideLongWork(seconds(1)));
  gate_.LeaveAlone();
  clock_.Advance(seconds(1));
  ASSERT_TRUE(gate_.Enter(1));
  clock_.Advance(minutes(11));  // they were kept out for as long
  EXPECT_FALSE(AsksBesideLongWork(minutes(14), "b"));
  EXPECT_TRUE(gate_.Enter(1)) << "the next one waits as long";
}

TEST_F(SoloGateTest, ItKeepsOthersOutForAsLongAsItWasKeptWaiting) {
  ASSERT_TRUE(gate_.Enter(1));
  EXPECT_FALSE(AsksBesideLongWork(minutes(15)));
  EXPECT_FALSE(AsksBesideLongWork(minutes(15)));
  EXPECT_FALSE(gate_.Enter(1));
  EXPECT_FALSE(AsksBesideLongWork(seconds(2)));
  EXPECT_TRUE(gate_.Enter(1)) << "what runs takes longer still";
  EXPECT_FALSE(AsksBesideLongWork(minutes(14)));
  EXPECT_TRUE(gate_.Enter(1)) << "that is their turn";
  EXPECT_FALSE(AsksBesideLongWork(minutes(44)));
  EXPECT_FALSE(gate_.Enter(1));
  gate_.Leave(3);
  EXPECT_TRUE(AsksBesideLongWork(seconds(1)));
}

TEST_F(SoloGateTest, WhatWasRefusedToOneThatIsGoneCountsForNobody) {
  ASSERT_TRUE(gate_.Enter(1));
  EXPECT_FALSE(AsksBesideLongWork(minutes(14)));
  clock_.Advance(minutes(5));
  EXPECT_FALSE(AsksBesideLongWork(minutes(14), "b"));
  EXPECT_TRUE(gate_.Enter(1));
}

}  // namespace

namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class SuspectsTest : public ::testing::Test {
 protected:
  // What is to become of the task, claimed for the `attempt`th time, of which so many ended by a rescue.
  std::optional<Outcome> Objection(std::uint32_t attempt, std::size_t rescues = 0) {
    Task task;
    task.key = {"tasks", 1};
    task.attempt = attempt;
    if (!suspects_.MayObject(task)) return std::nullopt;
    if (suspects_.WantsRecord(task)) {
      ++asked_;
      suspects_.Note(task, rescues);
    }
    return suspects_.Objection(task);
  }
  static ScanRow Row(std::uint32_t crashes, std::uint64_t id = 1) {
    return {id, {}, TaskState::Waiting, 2, crashes, ""};
  }
  bool IsSuspect(const ScanRow& row, std::uint32_t slice = 0, const std::string& type = "noop") {
    return suspects_.IsSuspect({"tasks", slice, type, 50, {}}, row);
  }
  // The id of the one that may be claimed now; 0: none.
  std::uint64_t Turn() {
    const auto turn = suspects_.Turn(
        "w.1",
        [this](const DueGroup& group) {
          if (group.slice == moved_slice_) return Suspects::Take::Never;
          return group.handler == limited_ ? Suspects::Take::Later : Suspects::Take::Now;
        },
        Micros(0));
    return turn ? turn->ids.at(0) : 0;
  }

  ManualClock clock_;
  const std::string shard_ = "main";
  SoloGate gate_{clock_};
  std::uint32_t moved_slice_ = 9;
  std::string limited_ = "none";  // a type that has no start now
  int asked_ = 0;
  Suspects suspects_{shard_, gate_};
};

TEST_F(SuspectsTest, ATaskThatKilledItsProcessTwiceWaitsUntilNothingElseRuns) {
  EXPECT_FALSE(IsSuspect(Row(1)));
  gate_.Enter(1);
  EXPECT_TRUE(IsSuspect(Row(2)));
  EXPECT_EQ(Turn(), 0U);
  gate_.Leave();
  EXPECT_EQ(Turn(), 1U);
  EXPECT_FALSE(gate_.Enter(1));
}

TEST_F(SuspectsTest, AllThatAScanHasPassedTakeTheirTurnsInOrderAndOnce) {
  for (const std::uint64_t id : {1, 2, 3, 2, 1}) EXPECT_TRUE(IsSuspect(Row(2, id)));
  for (const std::uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(Turn(), id);
    EXPECT_EQ(Turn(), 0U) << "one at a time";
    gate_.LeaveAlone();
  }
  EXPECT_FALSE(suspects_.Waits());
}

TEST_F(SuspectsTest, OneWhoseSliceMovesWhileItWaitsKeepsNobodyOut) {
  gate_.Enter(1);
  EXPECT_TRUE(IsSuspect(Row(2, 1), 3));
  EXPECT_TRUE(IsSuspect(Row(2, 2), 4));
  EXPECT_EQ(Turn(), 0U);
  moved_slice_ = 3;
  gate_.Leave();
  EXPECT_EQ(Turn(), 2U);
  gate_.LeaveAlone();
  EXPECT_TRUE(gate_.Enter(1));
}

TEST_F(SuspectsTest, OneWhoseTypeHasNoStartNowKeepsNobodyOutAndHasItsTurnLater) {
  gate_.Enter(1);
  EXPECT_TRUE(IsSuspect(Row(2, 1), 0, "mail"));
  EXPECT_EQ(Turn(), 0U);
  EXPECT_TRUE(gate_.Wanted());
  limited_ = "mail";
  EXPECT_EQ(Turn(), 0U);
  EXPECT_FALSE(gate_.Wanted()) << "it lost its start to another";
  EXPECT_FALSE(suspects_.Asks());
  EXPECT_TRUE(gate_.Enter(1));
  EXPECT_TRUE(IsSuspect(Row(2, 2)));
  gate_.Leave(2);
  EXPECT_EQ(Turn(), 2U) << "another type's is not held up";
  gate_.LeaveAlone();
  limited_ = "none";
  EXPECT_EQ(Turn(), 1U);
}

TEST_F(SuspectsTest, ASuspectThatWaitsTooLongLetsTheOthersWork) {
  gate_.Enter(1);
  IsSuspect(Row(2));
  EXPECT_EQ(Turn(), 0U);
  clock_.Advance(seconds(61));
  EXPECT_EQ(Turn(), 0U);
  EXPECT_TRUE(gate_.Enter(1));
  clock_.Advance(seconds(50));
  EXPECT_EQ(Turn(), 0U);
  EXPECT_TRUE(gate_.Enter(1)) << "for as long as they were kept out";
  gate_.Leave(3);
  EXPECT_EQ(Turn(), 1U) << "or until they are done";
}

TEST_F(SuspectsTest, FiveRescuesMakeASuspectAndTheSixthEndsIt) {
  EXPECT_FALSE(Objection(5, 4));
  const auto again = Objection(6, 5);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kind, OutcomeKind::GiveBack);
  EXPECT_TRUE(IsSuspect(Row(0)));
  const auto last = Objection(7, 6);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->kind, OutcomeKind::Fail);
  EXPECT_THAT(last->text, HasSubstr("6 workers died"));
}

TEST_F(SuspectsTest, ATaskThatSnoozesOftenIsLookedIntoOnceInFiveClaims) {
  for (std::uint32_t attempt = 1; attempt <= 105; ++attempt) EXPECT_FALSE(Objection(attempt));
  EXPECT_EQ(asked_, 20);
}

}  // namespace

}  // namespace millrace::engine
