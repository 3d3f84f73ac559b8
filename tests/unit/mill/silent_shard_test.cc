// What is others' while a scan strand waits in a database that does not answer: two mills of a worker, on
// real stores, in a time that the test moves.
#include <gmock/gmock.h>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SilentShardTest : public ::testing::Test {
 protected:
  static void Submit(ScratchStore& store, std::size_t tasks) {
    ASSERT_TRUE(store.OpenOperations()->Submit("tasks", std::vector<NewTask>(tasks, {.handler = "mail"})));
    store.Run("UPDATE tasks SET slice=1");
  }
  void Go(Micros span) {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end;) {
      silent_.Work();
      other_.Work();
      clock_.Advance(milliseconds(10));
    }
  }

  // The silent one has seen a suspect, wants it to be alone, and hangs.
  void WishToBeAlone() {
    other_.runner.takes = seconds(1);
    Submit(other_store_, 1);
    Go(milliseconds(50));
    ASSERT_EQ(other_.runner.took, 1u);
    Submit(silent_store_, 1);
    silent_store_.Run("UPDATE tasks SET crashes=2");
    for (int i = 0; i < 90 && !gate_->Wanted(); ++i) {
      Go(milliseconds(10));
      silent_.scan.hangs = silent_.scan.asked.pages > 0;
    }
    ASSERT_TRUE(gate_->Wanted());
  }

  ManualClock clock_;
  ScratchStore silent_store_{clock_};
  ScratchStore other_store_{clock_};
  std::shared_ptr<SoloGate> gate_ = std::make_shared<SoloGate>(clock_);
  RoundWorker silent_{clock_, silent_store_, "w", {}, false, gate_};
  RoundWorker other_{clock_, other_store_, "w", {}, false, gate_};
};

TEST_F(SilentShardTest, ASuspectThatNobodyComesToClaimKeepsNoOtherShardFromClaiming) {
  WishToBeAlone();
  Submit(other_store_, 10);
  Go(seconds(5));
  EXPECT_EQ(silent_.runner.took, 0u);
  EXPECT_EQ(other_.runner.took, 11u);
}

TEST_F(SilentShardTest, TheWishOfAMillThatEndsGoesWithIt) {
  WishToBeAlone();
  silent_.mill().Retire();
  EXPECT_FALSE(gate_->Wanted()) << "while its scan hangs";
}

TEST_F(SilentShardTest, AScanThatHangsUntilItsMillEndsLeavesThatEmpty) {
  Go(milliseconds(50));
  silent_.scan.hangs = true;
  Go(seconds(3));
  silent_.mill().Retire();
  Go(seconds(1));
  EXPECT_FALSE(silent_.mill().Empty()) << "a claim might be on its way";
  silent_.mill().Stop();
  silent_.scan.GoOn();
  Go(milliseconds(50));
  EXPECT_TRUE(silent_.mill().Empty());
}

}  // namespace
}  // namespace millrace::engine
