#include "framework/mill/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

TEST(MemoryBudgetTest, AClaimBringsInAPartOfItAtMost) {
  const MemoryBudget memory;
  EXPECT_GT(memory.Room(0), 0u);
  EXPECT_LE(memory.Room(0), MemoryBudget::kInAll / 4);
}

TEST(MemoryBudgetTest, WhereAllIsInUseEachShardHasALittleStill) {
  MemoryBudget memory;
  memory.Add(MemoryBudget::kInAll);
  EXPECT_EQ(memory.Room(0), MemoryBudget::kEachShard);
  EXPECT_EQ(memory.Room(MemoryBudget::kEachShard), 0u);
  memory.Remove(MemoryBudget::kInAll);
  EXPECT_GT(memory.Room(MemoryBudget::kEachShard), 0u);
}

TEST(MemoryBudgetTest, TooLittleIsNothing) {
  MemoryBudget memory;
  memory.Add(MemoryBudget::kInAll - 1);
  EXPECT_EQ(memory.Room(MemoryBudget::kEachShard - 1), 0u);
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class InFlightTest : public ::testing::Test {
 protected:
  using Stay = InFlight::Stay;

  void TakeInHand(std::uint64_t id, std::size_t bytes) {
    Task task;
    task.key = {"tasks", id};
    task.params.assign(bytes, 'x');
    attempts.Enter("tasks", std::vector<std::uint64_t>{id});
    const auto attempt = std::make_shared<Attempt>(nullptr, "main", task, nullptr, false);
    attempts.Claimed(std::span(&attempt, 1));
  }
  bool Leave(std::uint64_t id) {
    const TaskKey key{"tasks", id};
    const TaskKey* const one = &key;
    return attempts.Leave(std::span(&one, 1));
  }
  std::vector<Stay> StaysOf(std::initializer_list<std::uint64_t> ids,
                            const TableName& table = "tasks") const {
    std::vector<ScanRow> rows;
    for (const std::uint64_t id : ids) rows.push_back({id, {}, TaskState::Running, 1, 0, "w.1"});
    return attempts.StaysOf(table, rows);
  }

  MemoryBudget memory;
  InFlight attempts{memory};
};

TEST_F(InFlightTest, WhatAClaimOnItsWayMayBringInIsNoRoomForAnother) {
  attempts.Expect(MemoryBudget::kInAll);
  EXPECT_EQ(attempts.Room(), 0u);
  EXPECT_EQ(InFlight(memory).Room(), MemoryBudget::kEachShard) << "nor of another shard";
  EXPECT_TRUE(attempts.Arrived(MemoryBudget::kInAll)) << "it came short, and somebody had asked";
  EXPECT_FALSE(attempts.Arrived(0));
  EXPECT_EQ(attempts.Left(), MemoryBudget::kInAll);
}

TEST_F(InFlightTest, WhatIsExpectedStaysSoWhenAllElseIsGone) {
  TakeInHand(1, 1000);
  attempts.Expect(5000);
  attempts.Clear();
  EXPECT_EQ(attempts.Left(), MemoryBudget::kInAll - 5000);
  attempts.Arrived(5000);
  EXPECT_EQ(attempts.Left(), MemoryBudget::kInAll);
}

TEST_F(InFlightTest, AnIdEntersOnceUntilItLeaves) {
  const std::vector<std::uint64_t> ids{1, 2, 3};
  EXPECT_THAT(attempts.Enter("tasks", ids), ElementsAre(1, 2, 3));
  EXPECT_THAT(attempts.Enter("tasks", std::vector<std::uint64_t>{2, 4}), ElementsAre(4));
  Leave(2);
  EXPECT_THAT(attempts.Enter("tasks", std::vector<std::uint64_t>{2}), ElementsAre(2));
}

TEST_F(InFlightTest, WhatAClaimMissedLeavesAndWhatItGotStays) {
  const ClaimRequest request{"tasks", "w.1", 0, {1, 2, 3}};
  attempts.Enter("tasks", request.ids);
  Task claimed;
  claimed.key = {"tasks", 2};
  attempts.LeaveMissed(request, std::span(&claimed, 1));
  EXPECT_THAT(StaysOf({1, 2}), ElementsAre(Stay::Out, Stay::In));
  EXPECT_EQ(attempts.Size(), 1u);
}

TEST_F(InFlightTest, WhatComesAndLeavesWhileItIsWatchedPasses) {
  for (const std::uint64_t id : {1, 2, 3}) TakeInHand(id, 0);
  attempts.Enter("tasks", std::vector<std::uint64_t>{4});  // and its reply is lost
  attempts.Enter("tasks_001", std::vector<std::uint64_t>{9});
  Leave(2);
  {
    InFlight::Watch watch(attempts);
    Leave(3);
    attempts.Enter("tasks", std::vector<std::uint64_t>{5});
    TakeInHand(6, 0);
    TakeInHand(7, 0);
    Leave(7);
    EXPECT_THAT(StaysOf({1, 2, 3, 4, 5, 6, 7, 8}),
                ElementsAre(Stay::In, Stay::Out, Stay::Passing, Stay::In, Stay::Passing, Stay::Passing,
                            Stay::Passing, Stay::Out));
    EXPECT_THAT(StaysOf({3, 9}, "tasks_001"), ElementsAre(Stay::Out, Stay::In));
  }
  EXPECT_THAT(StaysOf({3, 5, 6}), ElementsAre(Stay::Out, Stay::In, Stay::In));
  InFlight::Watch watch(attempts);
  EXPECT_THAT(StaysOf({3, 5}), ElementsAre(Stay::Out, Stay::In)) << "that was before";
}

TEST_F(InFlightTest, WhatCameFirstIsKnownFromWhatCameThen) {
  TakeInHand(1, 0);
  const std::uint64_t entries = attempts.Entries();
  TakeInHand(2, 0);
  ASSERT_THAT(attempts.AttemptsOf(entries), SizeIs(1));
  EXPECT_EQ(attempts.AttemptsOf(entries)[0]->task.key.id, 1U);
  EXPECT_THAT(attempts.AttemptsOf(attempts.Entries()), SizeIs(2));
}

TEST_F(InFlightTest, TablesAreApart) {
  const std::vector<std::uint64_t> ids{7};
  attempts.Enter("tasks_000", ids);
  EXPECT_THAT(StaysOf({7}, "tasks_001"), ElementsAre(Stay::Out));
  EXPECT_THAT(attempts.Enter("tasks_001", ids), ElementsAre(7));
  attempts.Leave("tasks_000", ids);
  EXPECT_EQ(attempts.Size(), 1u);
  EXPECT_THAT(attempts.AttemptsOf(attempts.Entries()), IsEmpty());
}

TEST_F(InFlightTest, AFullHandSaysOnceThatItHasRoomAgain) {
  std::uint64_t count = 0;
  while (attempts.Room() > 0) TakeInHand(++count, kMaxParams);
  EXPECT_LE(count * MemoryBudget::Of(kMaxParams), MemoryBudget::kInAll);
  int said = 0;
  for (std::uint64_t id = 1; id <= count; ++id) said += Leave(id) ? 1 : 0;
  EXPECT_EQ(said, 1);
  EXPECT_GT(attempts.Room(), 0u);
}

TEST_F(InFlightTest, WhatIsForgottenTakesNoMemory) {
  TakeInHand(1, MemoryBudget::kInAll);
  EXPECT_LT(memory.Room(MemoryBudget::kEachShard), 1u);
  attempts.Clear();
  EXPECT_GT(memory.Room(MemoryBudget::kEachShard), 0u);
}

}  // namespace

}  // namespace millrace::engine
