#include "coordinator/testing/modelled_database.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Tasks = Result<std::vector<Task>>;

class ModelledDatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    task_ = database_.shard().Insert(CompactShard::kTable, 0, "a", database_.clock().WallNow());
    ASSERT_TRUE(database_.shard().Register({"w.1", "w", "h", 1, seconds(1), {}}));
  }

  void Claim() {
    database_.Claim(
        link_, strand_, {CompactShard::kTable, "w.1", 0, {task_}}, false,
        [this](const Tasks& tasks) { reply_ = tasks ? "claimed" : ToString(tasks.error().code); });
  }
  void Run(Micros span) { timeline_.RunUntil(timeline_.Now() + span); }
  // Claims the task, whose handler then says this, and ends it so. What the checks say of that.
  std::string End(Settlement::To to, std::optional<OutcomeKind> said) {
    Claim();
    Run(seconds(1));
    const TaskKey key{CompactShard::kTable, task_};
    if (said) database_.checked().Said("w.1", key, 1, *said);
    const Settlement end{
        .key = key, .attempt = 1, .to = to, .failed_attempt = to == Settlement::To::Failed, .handler = "a"};
    EXPECT_TRUE(database_.checked().Settle("w.1", std::span(&end, 1)));
    return journal_.FirstViolation();
  }
  bool Claimed() {
    return database_.shard().Find({CompactShard::kTable, task_})->state == TaskState::Running;
  }

  Timeline timeline_{1};
  Journal journal_{timeline_, {}};
  ModelledDatabase database_{timeline_, journal_, {}};
  DatabaseLink link_;
  Strand strand_;
  std::uint64_t task_ = 0;
  std::string reply_;
};

TEST_F(ModelledDatabaseTest, AStatementIsCarriedOutAndAnswered) {
  Claim();
  Run(seconds(1));
  EXPECT_EQ(reply_, "claimed");
}

TEST_F(ModelledDatabaseTest, ADatabaseThatIsDownSaysSoAndChangesNothing) {
  database_.Stop();
  Claim();
  Run(seconds(1));
  EXPECT_EQ(reply_, ToString(ErrorCode::Unavailable));
  EXPECT_FALSE(Claimed());
}

TEST_F(ModelledDatabaseTest, AReplyThatIsLostLeavesTheOutcomeOpen) {
  link_.lost_replies = 100;
  Claim();
  Run(seconds(3));
  EXPECT_EQ(reply_, ToString(ErrorCode::Unknown));
  EXPECT_TRUE(Claimed());
}

TEST_F(ModelledDatabaseTest, AStatementMayArriveAfterItsSenderHasGivenUp) {
  link_.late = 100;
  Claim();
  Run(milliseconds(2'000));
  EXPECT_EQ(reply_, ToString(ErrorCode::Unknown));
  EXPECT_FALSE(Claimed());
  Run(seconds(15));
  EXPECT_TRUE(Claimed());
}

TEST_F(ModelledDatabaseTest, AStatementOfADeadProcessIsCarriedOutAndItsReplyDropped) {
  Claim();
  ++strand_.life;
  Run(seconds(1));
  EXPECT_TRUE(Claimed());
  EXPECT_EQ(reply_, "");
}

TEST_F(ModelledDatabaseTest, AFlagThatAClaimHoldsIsSetAfterIt) {
  Claim();
  Run(Micros(1'100));
  ASSERT_FALSE(Claimed()) << "it holds the flag, and has not written yet";
  database_.SetFlag(
      link_, strand_, "w.1", [](CheckedShard& shard) { return shard.shard().Retire("w.1"); },
      [](const Result<bool>&) {});
  while (database_.shard().IsAlive("w.1")) Run(milliseconds(1));
  EXPECT_TRUE(Claimed());
  EXPECT_EQ(journal_.FirstViolation(), "");
}

TEST_F(ModelledDatabaseTest, ASuccessThatItsHandlerHasToldIsOne) {
  EXPECT_EQ(End(Settlement::To::Succeeded, OutcomeKind::Done), "");
}

TEST_F(ModelledDatabaseTest, ASuccessThatNoHandlerHasToldIsNone) {
  EXPECT_NE(End(Settlement::To::Succeeded, std::nullopt), "");
}

TEST_F(ModelledDatabaseTest, ATaskIsCancelledBySomebody) {
  database_.shard().Cancel({CompactShard::kTable, task_});
  EXPECT_EQ(End(Settlement::To::Cancelled, std::nullopt), "");
}

TEST_F(ModelledDatabaseTest, ATaskIsNotCancelledByNobody) {
  EXPECT_NE(End(Settlement::To::Cancelled, std::nullopt), "");
}

TEST_F(ModelledDatabaseTest, ATaskThatMayFailOnceIsGivenUpAfterThat) {
  database_.checked().MayFail("a", 1);
  EXPECT_EQ(End(Settlement::To::Failed, OutcomeKind::Retry), "");
}

TEST_F(ModelledDatabaseTest, ATaskThatMayFailTwiceIsNotGivenUpAfterOnce) {
  database_.checked().MayFail("a", 2);
  EXPECT_NE(End(Settlement::To::Failed, OutcomeKind::Retry), "");
}

TEST_F(ModelledDatabaseTest, ATaskThatCouldBeClaimedIsNotFailedUnclaimed) {
  EXPECT_TRUE(database_.checked().FailUnclaimed({CompactShard::kTable, "w.1", 0, {task_}}));
  EXPECT_NE(journal_.FirstViolation(), "");
}

TEST_F(ModelledDatabaseTest, AFailoverGoesBackToWhatWasCommittedThen) {
  const auto copy = database_.checked().Keep();
  Claim();
  Run(seconds(1));
  ASSERT_TRUE(Claimed());
  const std::uint64_t lost =
      database_.shard().Insert(CompactShard::kTable, 0, "a", database_.clock().WallNow());
  ASSERT_TRUE(database_.shard().Register({"w.2", "w", "h", 1, seconds(1), {}}));
  database_.FailOver(*copy);
  EXPECT_FALSE(Claimed());
  EXPECT_EQ(database_.shard().Find({CompactShard::kTable, lost}), nullptr);
  EXPECT_FALSE(database_.shard().IsAlive("w.2"));
  EXPECT_TRUE(database_.checked().MayStart("w.2")) << "it can't know yet";
  EXPECT_EQ(database_.shard().Insert(CompactShard::kTable, 1, "a", database_.clock().WallNow()), lost);
}

TEST_F(ModelledDatabaseTest, AClaimThatHeldItsLockBeforeAFailoverWritesNothingAfterIt) {
  const auto copy = database_.checked().Keep();
  Claim();
  Run(Micros(1'100));
  database_.FailOver(*copy);
  Run(seconds(3));
  EXPECT_FALSE(Claimed());
  EXPECT_EQ(reply_, ToString(ErrorCode::Unknown));
}

}  // namespace
}  // namespace millrace::engine
