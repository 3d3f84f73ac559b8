#include "framework/worker/suspects.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/memory_store.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// Counts how often the history of a task is asked for.
class CountingDesk final : public TaskDesk {
 public:
  CountingDesk(std::unique_ptr<TaskDesk> desk, int& asked) : desk_(std::move(desk)), asked_(asked) {}
  Result<TaskRecord> Get(const TaskKey& key) override {
    ++asked_;
    return desk_->Get(key);
  }
  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override {
    return desk_->Submit(table, tasks);
  }
  Result<TaskKey> Find(const TableName& t, const std::string& h, const std::string& k) override {
    return desk_->Find(t, h, k);
  }
  Result<TaskPage> List(const TableName& t, const TaskFilter& f, const std::string& a,
                        std::size_t l) override {
    return desk_->List(t, f, a, l);
  }
  Result<std::vector<std::uint64_t>> Apply(TaskAction action, const TableName& t,
                                           std::span<const std::uint64_t> ids,
                                           const std::string& a) override {
    return desk_->Apply(action, t, ids, a);
  }
  Result<std::vector<TaskTotals>> Totals() override { return desk_->Totals(); }
  Result<std::vector<GroupBacklog>> Backlog(const TableName& table) override { return desk_->Backlog(table); }
  Result<bool> SetPause(const std::string& what, const std::string& actor, bool on) override {
    return desk_->SetPause(what, actor, on);
  }
  Result<std::vector<PauseRecord>> Pauses() override { return desk_->Pauses(); }

 private:
  const std::unique_ptr<TaskDesk> desk_;
  int& asked_;
};

class SuspectsTest : public ::testing::Test {
 protected:
  SuspectsTest() {
    EXPECT_TRUE(store_.OpenSchema()->Apply({}));
    NewTask task;
    task.handler = "noop";
    EXPECT_TRUE(store_.OpenDesk()->Submit("tasks", std::span(&task, 1)));
  }
  // The task as claimed for the `attempt`th time, and how many of those ended by a rescue.
  Task Claimed(std::uint32_t attempt, std::uint32_t rescues = 0) {
    const TaskKey key{"tasks", 1};
    store_.Edit([&](MemoryState& rows) {
      for (std::uint32_t i = 1; i <= rescues; ++i) rows.attempts[key][i] = {i, {}, "w.1", "rescued", "", ""};
    });
    Task task;
    task.key = key;
    task.attempt = attempt;
    return task;
  }
  static ScanRow Row(std::uint32_t crashes, std::uint64_t id = 1) {
    return {id, {}, TaskState::Waiting, 2, crashes, ""};
  }
  bool IsSuspect(const ScanRow& row, std::uint32_t slice = 0) {
    return suspects_.IsSuspect({"tasks", slice, "noop", 50, {}}, row);
  }
  // The id of the one that may be claimed now; 0: none.
  std::uint64_t Turn() {
    const auto turn =
        suspects_.Turn("w.1", [this](const DueGroup& group) { return group.slice != moved_slice_; });
    return turn ? turn->ids.at(0) : 0;
  }

  ManualClock clock_;
  MemoryStore store_{clock_};
  const std::string shard_ = "main";
  SoloGate gate_{clock_};
  std::uint32_t moved_slice_ = 9;
  int asked_ = 0;
  Suspects suspects_{shard_, gate_, std::make_unique<CountingDesk>(store_.OpenDesk(), asked_)};
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
  EXPECT_FALSE(suspects_.Objection(Claimed(5, 4)));
  const auto again = suspects_.Objection(Claimed(6, 5));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kind, OutcomeKind::GiveBack);
  EXPECT_TRUE(IsSuspect(Row(0)));
  const auto last = suspects_.Objection(Claimed(7, 6));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->kind, OutcomeKind::Fail);
  EXPECT_THAT(last->text, HasSubstr("6 workers died"));
}

TEST_F(SuspectsTest, ATaskThatSnoozesOftenIsLookedIntoOnceInFiveClaims) {
  for (std::uint32_t attempt = 1; attempt <= 105; ++attempt)
    EXPECT_FALSE(suspects_.Objection(Claimed(attempt)));
  EXPECT_EQ(asked_, 20);
}

}  // namespace
}  // namespace millrace::engine
