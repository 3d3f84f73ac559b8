// What a worker finds while whole due maps are so dear that most of its looks are parts of one
// (mill/known_groups.h). A worker's mill, on a real store, in a time that the test moves.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Micros kBeat = milliseconds(10);
constexpr Micros kShortly = milliseconds(250);  // the poll interval, and a few steps

class PartsTest : public ::testing::Test {
 protected:
  PartsTest() {
    worker_.scan.maps_take = milliseconds(500);
    worker_.scan.parts_take = milliseconds(1);
  }
  void Submit(std::size_t count, Micros delay = Micros(0)) {
    const NewTask task{.handler = "noop", .run_at = clock_.WallNow() + delay};
    ASSERT_TRUE(store_.OpenOperations()->Submit("tasks", std::vector<NewTask>(count, task)));
    store_.Run("UPDATE tasks SET slice=1");
  }
  // A held row, after which the others are found by no id that is asked for again.
  void AddLargeId() {
    Submit(1);
    store_.Run("UPDATE tasks SET id=20000, state=3 WHERE id=(SELECT MAX(id) FROM tasks)");
  }
  // Until the first part, which comes right after a whole map; the next one is ten seconds away.
  void Begin() {
    for (int i = 0; i < 3000 && worker_.scan.asked.parts == 0; ++i) Step();
    ASSERT_EQ(worker_.scan.asked.parts, 1);
    whole_ = Whole();
  }
  // No whole map has come since: what was found, parts have found.
  void ExpectPartsAlone() const { EXPECT_EQ(Whole(), whole_); }
  void Step() {
    worker_.Work();
    clock_.Advance(kBeat);
  }
  void Go(Micros span) {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end;) Step();
  }
  std::size_t Claims() const {
    std::size_t claims = 0;
    for (const ClaimSeen& claim : worker_.scan.seen) claims += claim.tasks.size();
    return claims;
  }
  int Whole() const { return worker_.scan.asked.maps - worker_.scan.asked.parts; }

  ManualClock clock_;
  ScratchStore store_{clock_};
  RoundWorker worker_{clock_, store_, "w", {}};
  int whole_ = 0;
};

TEST_F(PartsTest, NewTasksStartAsSoonAsEver) {
  Begin();
  for (std::size_t i = 1; i <= 5; ++i) {
    Submit(3);
    Go(kShortly);
    ASSERT_EQ(Claims(), 3 * i);
  }
  ExpectPartsAlone();
}

TEST_F(PartsTest, APageAsksForNoMoreRowsThanAreNew) {
  Begin();
  worker_.scan.asked.most = 0;
  Submit(3);
  Go(kShortly);
  EXPECT_EQ(Claims(), 3U);
  EXPECT_EQ(worker_.scan.asked.most, 3);
  ExpectPartsAlone();
}

TEST_F(PartsTest, WhatComesDueStartsAtItsTime) {
  for (const int comes : {8, 10, 12}) Submit(2, seconds(comes));
  Submit(1);
  const BootTime submitted = clock_.Now();
  Begin();
  ASSERT_LT(clock_.Now(), submitted + seconds(8) - kShortly);
  std::size_t expected = 1;
  for (const int comes : {8, 10, 12}) {
    Go(submitted + seconds(comes) - clock_.Now());
    EXPECT_EQ(Claims(), expected) << comes;
    Go(kShortly);
    EXPECT_EQ(Claims(), expected += 2) << comes;
  }
  ExpectPartsAlone();
}

TEST_F(PartsTest, WhatASnoozePutsOffStartsAtItsTime) {
  Begin();
  worker_.runner.outcomes[1] = {.kind = OutcomeKind::Snooze, .delay = seconds(2)};
  Submit(1);
  Go(kShortly);
  ASSERT_EQ(Claims(), 1U);
  Go(seconds(2) - kShortly);
  EXPECT_EQ(Claims(), 1U);
  Go(2 * kShortly);
  EXPECT_EQ(Claims(), 2U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, WhatIsGivenBackStartsAgain) {
  Begin();
  worker_.runner.takes = seconds(60);
  Submit(150);
  Go(kShortly);
  ASSERT_EQ(Claims(), 150U);
  worker_.runner.GiveAllBack();
  Go(2 * kShortly);
  EXPECT_EQ(Claims(), 300U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, WhatIsGivenBackBehindThePlaceToWhichItsGroupHasBeenReadStartsAgain) {
  worker_.runner.most = 50;
  worker_.runner.takes = seconds(3);
  Begin();
  for (int i = 0; i < 150; ++i) {
    Submit(1);
    clock_.Advance(milliseconds(1));
  }
  Go(kShortly);
  ASSERT_EQ(Claims(), 50U);
  worker_.runner.takes = milliseconds(50);
  worker_.runner.GiveAllBack();
  Go(seconds(2));
  EXPECT_EQ(Claims(), 200U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, WhatIsGivenBackRightBeforeAWholeMapStartsAgain) {
  worker_.runner.most = 0;
  Submit(150);
  AddLargeId();
  Begin();
  worker_.runner.takes = seconds(60);
  worker_.runner.most = 250;
  for (int i = 0; i < 25 && Claims() < 150; ++i) Step();
  ASSERT_EQ(Claims(), 150U);
  worker_.runner.GiveAllBack();
  Step();
  worker_.Own({{"tasks", false, {0, 1, 2, 3}}});
  Go(seconds(1));
  EXPECT_EQ(Claims(), 300U);
  EXPECT_EQ(Whole(), whole_ + 1);
}

TEST_F(PartsTest, WhatAHandlerPutsOffToATimeThatIsOverStartsAgain) {
  Begin();
  worker_.runner.outcomes[1] = {.kind = OutcomeKind::Snooze, .at = clock_.WallNow() - seconds(60)};
  Submit(1);
  Go(3 * kShortly);
  EXPECT_EQ(Claims(), 2U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, RowsThatAClaimMissesAreLookedForAgain) {
  worker_.runner.most = 0;
  Submit(3);
  AddLargeId();
  Begin();
  worker_.scan.after_page = [this] { store_.Run("UPDATE tasks SET attempt=7 WHERE id=2"); };
  worker_.runner.most = 50;
  Go(kShortly);
  ASSERT_EQ(Claims(), 2U);
  Go(seconds(1) + kShortly);
  EXPECT_EQ(Claims(), 3U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, WhatRanElsewhereWhenItWasSeenIsLookedForAgain) {
  Submit(1);
  store_.Run("UPDATE tasks SET state=2, claimed_by=99, attempt=1");
  AddLargeId();
  Begin();
  Go(seconds(1));
  ASSERT_EQ(Claims(), 0U);
  store_.Run("UPDATE tasks SET state=0, claimed_by=0 WHERE state=2");
  Go(seconds(1) + kShortly);
  EXPECT_EQ(Claims(), 1U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, ABacklogIsWorkedOff) {
  worker_.runner.most = 50;
  Begin();
  Submit(900);
  Go(seconds(2));
  EXPECT_EQ(Claims(), 900U);
  ExpectPartsAlone();
}

TEST_F(PartsTest, ACommitThatComesLateIsFoundWithinASecond) {
  Submit(20);
  Begin();
  const auto claimed = Claims();
  Submit(1);
  store_.Run("UPDATE tasks SET id=31 WHERE id=21");
  Go(kShortly);
  ASSERT_EQ(Claims(), claimed + 1);
  Submit(1);
  store_.Run("UPDATE tasks SET id=25 WHERE id=32");
  Go(seconds(1) + kShortly);
  EXPECT_EQ(Claims(), claimed + 2);
  ExpectPartsAlone();
}

TEST_F(PartsTest, OnceWholeMapsAreCheapAgainAllAreWhole) {
  Begin();
  worker_.scan.maps_take = milliseconds(1);
  Go(seconds(70));
  const int parts = worker_.scan.asked.parts;
  Go(seconds(5));
  EXPECT_EQ(worker_.scan.asked.parts, parts);
}

}  // namespace
}  // namespace millrace::engine
