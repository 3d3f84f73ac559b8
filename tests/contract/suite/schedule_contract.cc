#include <gmock/gmock.h>

#include <thread>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using To = Settlement::To;

constexpr WallTime kFirst = std::chrono::sys_days(std::chrono::year(2026) / 11 / 23) + hours(2);

ScheduleRow NightlyRow() {
  ScheduleRow row;
  row.name = "nightly";
  row.state = {.rhythm = "cron 0 2 * * * UTC", .anchor = kFirst - hours(10), .next = kFirst};
  row.config = 3;
  return row;
}

// The step that fires `row` at its next time.
ScheduleStep Firing(const ScheduleRow& row, const TableName& table = "tasks") {
  ScheduleStep step{.to = row.state, .config = row.config};
  step.to.last = row.state.next;
  step.to.next = *row.state.next + hours(24);
  NewTask task;
  task.handler = "noop";
  task.params = R"({"a":1})";
  task.biz_key = FiringKey(row.name, *row.state.next);
  step.firing = ScheduledFiring{*row.state.next, table, task};
  return step;
}

ScheduleRow OnlyRow(ScheduleStore& schedules) {
  const auto rows = schedules.Rows();
  EXPECT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->rows.size(), 1U);
  return rows->rows.empty() ? ScheduleRow() : rows->rows.front();
}

TEST_P(StoreContract, TheClockIsToldWithTheRowsOfSchedulesAndWhereThereAreNone) {
  const auto schedules = store().OpenSchedules();
  const auto rows = schedules->Rows();
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_TRUE(rows->rows.empty());
  EXPECT_LT(rows->now - Now(), seconds(10));
  EXPECT_LT(Now() - rows->now, seconds(10));
}

TEST_P(StoreContract, AScheduleIsMadeOnceAndReadAsItWasMade) {
  const auto schedules = store().OpenSchedules();
  ScheduleRow row = NightlyRow();
  row.state.last = kFirst - hours(24) + Micros(7);
  row.state.paused = true;
  row.task = TaskKey{"tasks", 17};
  row.fired = 4;
  row.lapsed = 2;
  ASSERT_TRUE(*schedules->Make(row));
  EXPECT_EQ(OnlyRow(*schedules), row);
  ScheduleRow other = row;
  other.state.next.reset();
  EXPECT_FALSE(*schedules->Make(other));
  EXPECT_EQ(OnlyRow(*schedules), row);
}

TEST_P(StoreContract, AFiringMovesItsRowOnAndInsertsItsTaskDueAtOnce) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  const WallTime before = Now();
  const auto stepped = schedules->Step(seen, Firing(seen));
  ASSERT_TRUE(stepped) << stepped.error().message;
  EXPECT_TRUE(stepped->moved);
  EXPECT_FALSE(stepped->taken);
  ASSERT_TRUE(stepped->task);
  const Task task = Get(stepped->task->id).task;
  EXPECT_EQ(task.handler, "noop");
  EXPECT_EQ(task.params, R"({"a":1})");
  EXPECT_EQ(task.biz_key, "schedule/nightly/2026-11-23T02:00:00Z");
  EXPECT_GE(task.run_at, before - seconds(1));
  EXPECT_LE(task.run_at, Now());
  const ScheduleRow row = OnlyRow(*schedules);
  EXPECT_EQ(row.state.last, kFirst);
  EXPECT_EQ(row.state.next, kFirst + hours(24));
  EXPECT_EQ(row.task, stepped->task);
  EXPECT_EQ(row.fired, 1U);
}

TEST_P(StoreContract, OfTwoWhoFireByTheSameRowOneFires) {
  const auto mine = store().OpenSchedules();
  const auto others = store().OpenSchedules();
  ASSERT_TRUE(*mine->Make(NightlyRow()));
  for (int day = 0; day < 20; ++day) {
    const ScheduleRow seen = OnlyRow(*mine);
    ScheduleStep step = Firing(seen);
    std::get<NewTask>(step.firing->work).biz_key.clear();  // the row alone is the guard
    int moved = 0;
    bool other_moved = false;
    std::thread other([&] {
      const auto stepped = others->Step(seen, step);
      other_moved = stepped && stepped->moved;
    });
    const auto stepped = mine->Step(seen, step);
    moved += stepped && stepped->moved ? 1 : 0;
    other.join();
    moved += other_moved ? 1 : 0;
    // A lock may cost one of them its turn; it looks again.
    ASSERT_LE(moved, 1);
    if (moved == 0) --day;
  }
  EXPECT_EQ(OnlyRow(*mine).fired, 20U);
  EXPECT_EQ(operations().List("tasks", {}, "", 100)->records.size(), 20U);
}

TEST_P(StoreContract, ARowThatIsNotAsItWasSeenIsLeftAloneWithWhateverHasChanged) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  std::vector<ScheduleRow> stale(6, seen);
  stale[0].state.next.reset();
  stale[1].state.last = kFirst;
  stale[2].state.rhythm = "every 5m";
  stale[3].state.paused = true;
  stale[4].config = 2;  // a newer document was applied since
  stale[5].moved_to = "eu";
  for (const ScheduleRow& row : stale) {
    const auto stepped = schedules->Step(row, Firing(seen));
    ASSERT_TRUE(stepped) << stepped.error().message;
    EXPECT_FALSE(stepped->moved);
    EXPECT_FALSE(*schedules->Move(row, "us", 3));
    EXPECT_FALSE(*schedules->Remove(row));
  }
  EXPECT_EQ(OnlyRow(*schedules), seen);
  EXPECT_TRUE(operations().List("tasks", {}, "", 10)->records.empty());
}

TEST_P(StoreContract, AFiringWhoseKeyIsTakenMovesTheRowOnAndInsertsNothing) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  const auto first = schedules->Step(seen, Firing(seen));
  ASSERT_TRUE(first);
  // Restored from a backup of before it fired; the tasks are those of now.
  ASSERT_TRUE(*schedules->Remove(OnlyRow(*schedules)));
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const auto again = schedules->Step(seen, Firing(seen));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->moved);
  EXPECT_TRUE(again->taken);
  EXPECT_EQ(again->task, first->task);
  EXPECT_EQ(OnlyRow(*schedules).state.last, kFirst);
  EXPECT_EQ(OnlyRow(*schedules).task, first->task);
  EXPECT_EQ(operations().List("tasks", {}, "", 10)->records.size(), 1U);
}

TEST_P(StoreContract, AFiringIntoATableThatIsNotThereLeavesItsRowAsItWas) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  EXPECT_FALSE(schedules->Step(seen, Firing(seen, "tasks_999")));
  EXPECT_EQ(OnlyRow(*schedules), seen);
}

TEST_P(StoreContract, TheLastTaskIsInWorkUntilItIsInAPool) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  EXPECT_FALSE(schedules->Last(OnlyRow(*schedules))->in_work);
  for (const To to : {To::Succeeded, To::Failed}) {
    const ScheduleRow seen = OnlyRow(*schedules);
    ASSERT_TRUE(schedules->Step(seen, Firing(seen))->moved);
    const ScheduleRow row = OnlyRow(*schedules);
    EXPECT_TRUE(schedules->Last(row)->in_work);
    const WallTime before = Now();
    Settle({End(ClaimOne(row.task->id), to, "over")});
    const LastTask last = *schedules->Last(row);
    EXPECT_FALSE(last.in_work);
    ASSERT_TRUE(last.ended);
    EXPECT_GE(*last.ended, before - seconds(1));
    EXPECT_LE(*last.ended, Now());
    ASSERT_TRUE(fixture().Remove("tasks", row.task->id));
    EXPECT_FALSE(schedules->Last(row)->in_work);
    EXPECT_FALSE(schedules->Last(row)->ended);
  }
}

TEST_P(StoreContract, LapsedFiringsAreCountedAndStandInTheAudit) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  ScheduleStep step = Firing(seen);
  step.firing.reset();
  step.lapsed = 12;
  step.told = {{12, "the schedule was paused"}};
  ASSERT_TRUE(schedules->Step(seen, step)->moved);
  EXPECT_EQ(OnlyRow(*schedules).lapsed, 12U);
  EXPECT_EQ(OnlyRow(*schedules).fired, 0U);
}

TEST_P(StoreContract, ARowThatIsSentElsewhereFiresNoMoreUntilItIsTakenBack) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  ASSERT_TRUE(*schedules->Move(seen, "eu", 4));
  EXPECT_FALSE(schedules->Step(seen, Firing(seen))->moved);
  const ScheduleRow sent = OnlyRow(*schedules);
  EXPECT_EQ(sent.moved_to, "eu");
  EXPECT_EQ(sent.config, 4U);
  EXPECT_EQ(sent.state, seen.state);
  ASSERT_TRUE(*schedules->Move(sent, "", 5));
  EXPECT_TRUE(schedules->Step(OnlyRow(*schedules), Firing(seen))->moved);
  EXPECT_TRUE(*schedules->Remove(OnlyRow(*schedules)));
  EXPECT_TRUE(schedules->Rows()->rows.empty());
}

TEST_P(StoreContract, ALastTaskWhoseTableWasDroppedIsNone) {
  const auto schedules = store().OpenSchedules();
  ScheduleRow row = NightlyRow();
  row.task = TaskKey{"tasks_999", 5};
  ASSERT_TRUE(*schedules->Make(row));
  const auto last = schedules->Last(OnlyRow(*schedules));
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_FALSE(last->in_work);
  EXPECT_FALSE(last->ended);
}

TEST_P(StoreContract, ARunNowLeavesTheRhythmAsItIs) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  NewTask task;
  task.handler = "noop";
  const auto run = schedules->RunNow("nightly", {Now(), "tasks", task}, "ann");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(StateOf(run->id), TaskState::Waiting);
  ScheduleRow expected = NightlyRow();
  expected.task = *run;
  EXPECT_EQ(OnlyRow(*schedules), expected);
  EXPECT_TRUE(schedules->RunNow("unknown", {Now(), "tasks", task}, "ann"));
}

TEST_P(SqlStoreContract, WhatLapsedAndWhatWasRunByHandStandsInTheAudit) {
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(*schedules->Make(NightlyRow()));
  const ScheduleRow seen = OnlyRow(*schedules);
  ScheduleStep step = Firing(seen);
  step.lapsed = 12;
  step.told = {{3, "the last firing's task was in work"}, {12, "nobody was there in time"}};
  ASSERT_TRUE(schedules->Step(seen, step)->moved);
  ASSERT_TRUE(schedules->NoteLapsed("nightly", {{4, "the last firing's task was in work"}}));
  const auto lapsed = [&](const std::string& why) {
    return *sql().Ask(
        "SELECT detail FROM millrace_audit WHERE action='schedule_lapsed' AND subject='nightly' AND detail "
        "LIKE '" +
        why + "'");
  };
  EXPECT_EQ(lapsed("%nobody%"), "12: nobody was there in time");
  EXPECT_EQ(lapsed("3%"), "3: the last firing's task was in work");
  EXPECT_EQ(lapsed("4%"), "4: the last firing's task was in work");
  NewTask task;
  task.handler = "noop";
  const auto run = schedules->RunNow("nightly", {Now(), "tasks", task}, "ann");
  ASSERT_TRUE(run);
  EXPECT_EQ(*sql().Ask("SELECT actor FROM millrace_audit WHERE action='schedule_run' AND subject='nightly'"),
            "ann");
}

TEST_P(SqlStoreContract, ASchemaWithoutSchedulesSaysSo) {
  const auto client = sql().NewClient();
  ASSERT_TRUE(client->Run("DROP TABLE millrace_schedules"));
  const auto rows = store().OpenSchedules()->Rows();
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::NotFound);
  EXPECT_THAT(rows.error().message, testing::HasSubstr("millrace schema upgrade"));
}

}  // namespace
}  // namespace millrace::engine
