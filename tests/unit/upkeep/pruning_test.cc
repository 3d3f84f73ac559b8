#include "coordinator/upkeep/pruning.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PrunePaceTest, ItHasATenthOfTheTimeAtMostAndSmallerStepsWhereTheyAreSlow) {
  PrunePace pace;
  BootTime now(hours(1));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows);
  EXPECT_FALSE(pace.Note(now, now + milliseconds(50)));
  EXPECT_TRUE(pace.Note(now, now + milliseconds(50))) << "a turn is over after a tenth of a second";
  EXPECT_TRUE(pace.Rests(now + milliseconds(900)));
  EXPECT_FALSE(pace.Rests(now + milliseconds(950)));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows);
  EXPECT_TRUE(pace.Note(now, now + milliseconds(400))) << "one slow step is a turn";
  EXPECT_TRUE(pace.Rests(now + seconds(3)));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows / 2);
  for (int i = 0; i < 10; ++i) (void)pace.Note(now, now + milliseconds(400));
  EXPECT_EQ(pace.rows(), PrunePace::kFewestRows);
  for (int i = 0; i < 10; ++i) (void)pace.Note(now, now + milliseconds(5));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows);
}

// By attempts without number, whose removal takes longer than a statement may.
TEST(PrunePaceTest, AStepThatWasCutShortIsTriedWithFewerRowsDownToOne) {
  PrunePace pace;
  const BootTime now(hours(1));
  pace.NoteCut(now, now + milliseconds(1));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows) << "a server that is away says nothing of the step";
  pace.NoteCut(now, now + seconds(20));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows / 2);
  EXPECT_TRUE(pace.Rests(now + seconds(60)));
  for (int i = 0; i < 12; ++i) pace.NoteCut(now, now + seconds(20));
  EXPECT_EQ(pace.rows(), 1U);
  EXPECT_TRUE(pace.Note(now, now + milliseconds(400)));
  EXPECT_EQ(pace.rows(), 1U) << "not more because it was slow";
  for (int i = 0; i < 12; ++i) (void)pace.Note(now, now + milliseconds(5));
  EXPECT_EQ(pace.rows(), PrunePace::kMostRows);
}

class PruningTest : public testing::Test {
 protected:
  PruningTest() : store_(clock_, SchemaSpec{.slices = 4}), pruning_("main", store_) {
    EXPECT_TRUE(store_.OpenIncarnations()->Register({.id = "w.1", .worker = "w", .host = "h", .pid = 1}));
  }

  std::vector<std::uint64_t> Submit(const NewTask& task, std::size_t count) {
    const std::vector<NewTask> tasks(count, task);
    const auto added = store_.OpenOperations()->Submit("tasks", tasks);
    EXPECT_TRUE(added) << added.error().message;
    return added ? added->ids : std::vector<std::uint64_t>{};
  }
  void Finish(const std::vector<std::uint64_t>& ids) {
    const auto tasks = store_.OpenTasks();
    const auto claimed = tasks->Claim({.table = "tasks", .incarnation = "w.1", .ids = ids});
    ASSERT_TRUE(claimed) << claimed.error().message;
    ASSERT_EQ(claimed->size(), ids.size());
    std::vector<Settlement> ends;
    for (const Task& task : *claimed)
      ends.push_back({.key = task.key, .attempt = task.attempt, .handler = task.handler});
    ASSERT_TRUE(tasks->Settle("w.1", ends));
  }
  // Turns until a walk has come to its end, or to none.
  bool Walk() {
    for (int turn = 0; turn < 100; ++turn) {
      now_ += hours(2);  // longer than any rest
      if (pruning_.Go({"tasks"}, config_, now_)) return true;
    }
    return false;
  }
  std::size_t Left() {
    std::size_t left = 0;
    const auto page = store_.OpenOperations()->List("tasks", {}, "", 1000);
    if (page) left = page->records.size();
    return left;
  }

  ManualClock clock_;
  ScratchStore store_;
  Pruning pruning_;
  Config config_;
  BootTime now_ = BootClock::now();
};

TEST_F(PruningTest, WhatCanNotBeExportedStaysAndNothingElseDoes) {
  config_.handlers["kept"].keep = Micros(0);
  config_.handlers["kept"].export_to = "/nowhere/at/all";
  config_.handlers["gone"].keep = Micros(0);
  Finish(Submit({.handler = "kept"}, 3));
  Finish(Submit({.handler = "gone"}, 4));
  clock_.Advance(hours(1));
  EXPECT_FALSE(Walk()) << "not all is pruned";
  EXPECT_EQ(Left(), 3U);
  EXPECT_THAT(pruning_.Troubles(), ElementsAre(HasSubstr("/nowhere/at/all")));
  config_.handlers["kept"].export_to = "";
  EXPECT_TRUE(Walk());
  EXPECT_EQ(Left(), 0U);
  EXPECT_THAT(pruning_.Troubles(), IsEmpty());
}

TEST_F(PruningTest, AnExportOfWhichNothingIsDueAnyMoreIsNoTrouble) {
  config_.handlers["kept"].keep = Micros(0);
  config_.handlers["kept"].export_to = "/nowhere/at/all";
  Finish(Submit({.handler = "kept"}, 3));
  clock_.Advance(hours(1));
  EXPECT_FALSE(Walk());
  config_.handlers["kept"].keep = hours(1'000);
  EXPECT_TRUE(Walk());
  EXPECT_THAT(pruning_.Troubles(), IsEmpty());
}

// A right that is missing, or a table that is damaged, is its own affair.
TEST_F(PruningTest, ATableThatCanNotBePrunedKeepsNoOtherFromIt) {
  config_.handlers["noop"].keep = Micros(0);
  config_.handlers["noop"].held_for = hours(1);
  Finish(Submit({.handler = "noop"}, 3));
  const auto held = Submit({.handler = "noop", .held = true}, 1);
  clock_.Advance(hours(1));
  store_.Run("UPDATE tasks SET updated_at='2000-01-01 00:00:00.000000'");
  for (int turn = 0; turn < 20; ++turn) {
    now_ += hours(2);
    EXPECT_FALSE(pruning_.Go({"gone_table", "tasks"}, config_, now_));
  }
  EXPECT_EQ(Left(), 1U);
  EXPECT_EQ(store_.OpenOperations()->Get({"tasks", held[0]})->task.state, TaskState::Cancelled);
  EXPECT_THAT(pruning_.Troubles(), testing::UnorderedElementsAre(HasSubstr("gone_table can't be pruned"),
                                                                 HasSubstr("held in gone_table")));
  config_.handlers.clear();
  EXPECT_TRUE(Walk());
  EXPECT_THAT(pruning_.Troubles(), IsEmpty());
}

TEST_F(PruningTest, AHeldTaskThatCanNotBeEndedIsTroubleAsLongAsThereIsARuleForIt) {
  config_.handlers["noop"].held_for = hours(1);
  const auto ids = Submit({.handler = "noop", .held = true}, 3);
  store_.Run(
      "UPDATE tasks SET updated_at='2000-01-01 00:00:00.000000'; CREATE TRIGGER refuse BEFORE INSERT ON "
      "tasks_done WHEN NEW.id=" +
      std::to_string(ids[1]) + " BEGIN SELECT RAISE(ABORT,'no'); END");
  for (int look = 0; look < 3; ++look) {
    now_ += hours(2);
    (void)pruning_.Go({"tasks"}, config_, now_);
    EXPECT_THAT(pruning_.Troubles(), ElementsAre(HasSubstr("what is held in tasks can't be pruned")));
  }
  const auto operations = store_.OpenOperations();
  EXPECT_EQ(operations->Get({"tasks", ids[1]})->task.state, TaskState::Held);
  EXPECT_EQ(operations->Get({"tasks", ids[2]})->task.state, TaskState::Cancelled);
  config_.handlers["noop"].held_for = Micros(0);
  EXPECT_TRUE(Walk());
  EXPECT_THAT(pruning_.Troubles(), IsEmpty());
}

TEST_F(PruningTest, WhatIsHeldForTooLongEndsWithinAMinute) {
  config_.handlers["noop"].held_for = hours(1);
  const auto ids = Submit({.handler = "noop", .held = true}, 3);
  EXPECT_TRUE(Walk());
  store_.Run("UPDATE tasks SET updated_at='2000-01-01 00:00:00.000000'");
  const auto operations = store_.OpenOperations();
  EXPECT_EQ(operations->Get({"tasks", ids[0]})->task.state, TaskState::Held);
  now_ += std::chrono::minutes(1) + seconds(1);
  EXPECT_FALSE(pruning_.Go({"tasks"}, config_, now_)) << "the other walk is not due yet";
  for (const auto id : ids) EXPECT_EQ(operations->Get({"tasks", id})->task.state, TaskState::Cancelled);
}

}  // namespace
}  // namespace millrace::engine
