// How the tasks of the shards stand, as it is told: read from a store, and by whom it is told at all.
#include "coordinator/upkeep/standings.h"

#include <gmock/gmock.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// One line for each gauge.
std::vector<std::string> Told(const Standings& standings, BootTime now) {
  Registry registry;
  const auto reading = registry.OnText([&](Gauges& gauges) { standings.Measure(gauges, now); });
  std::vector<std::string> lines;
  std::istringstream text(registry.Text());
  for (std::string line; std::getline(text, line);) {
    if (line[0] != '#') lines.push_back(line.substr(9));
  }
  return lines;
}

TEST(StandingsTest, WhatStandsInSeveralTablesIsOneNumberForEachType) {
  WaitingOverview waiting;
  waiting.now = WallTime(hours(100));
  waiting.handlers = {
      {.table = "a",
       .handler = "pay",
       .waiting = {5, false},
       .running = {1, false},
       .oldest_due = WallTime(hours(99))},
      {.table = "b", .handler = "pay", .waiting = {7, true}, .oldest_due = WallTime(hours(98))},
      {.table = "b", .handler = "mail", .waiting = {1, false}, .next_due = WallTime(hours(101))}};
  const TaskTotals totals[] = {
      {"a", "pay", "", 10, 0, 2, 9}, {"a", "pay", "x", 10, 0, 1, 9}, {"a", "old", "", 1, 0, 0, 0}};
  FailedOverview failed;
  failed.classes = {{.table = "a", .handler = "pay", .error_class = "crash", .count = 2},
                    {.table = "a", .handler = "pay", .error_class = "sql", .count = 1}};
  EXPECT_THAT(StandingOf(waiting, totals, failed),
              ElementsAre(Pair("mail", TypeStanding{1, {}, 0, 0}), Pair("old", TypeStanding{}),
                          Pair("pay", TypeStanding{13, hours(2), 3, 2})));
}

TEST(StandingsTest, OfAStoreTheyAreWhatItsTablesHold) {
  const SystemClock clock{};
  ScratchStore store(clock);
  NewTask task;
  task.handler = "noop";
  task.run_at = clock.WallNow() - seconds(90);
  ASSERT_TRUE(store.OpenOperations()->Submit("tasks", std::vector<NewTask>(3, task)));
  const TableName tables[] = {"tasks"};
  const auto read = StandingReader(store).Read(tables, {});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->types.size(), 1U);
  EXPECT_EQ(read->types.at("noop").waiting, 3U);
  EXPECT_GE(read->types.at("noop").overdue, seconds(90));
  EXPECT_LT(read->types.at("noop").overdue, seconds(150));
  EXPECT_EQ(read->late_schedule, Micros(0));
}

TEST(StandingsTest, TheLatestScheduleIsTold) {
  ManualClock clock;
  ScratchStore store(clock);
  const auto schedules = store.OpenSchedules();
  for (const int due : {100, 200, 300}) {
    ScheduleRow row{.name = "due_" + std::to_string(due)};
    row.state.rhythm = "every 1h";
    row.state.next = clock.WallNow() + seconds(due);
    row.state.paused = due == 100;
    ASSERT_TRUE(*schedules->Make(row));
  }
  clock.Advance(seconds(290));
  Config config;
  for (const char* name : {"due_100", "due_200", "due_300"}) config.schedules[name];
  EXPECT_EQ(StandingReader(store).Read({}, config)->late_schedule, seconds(90));
  config.schedules.erase("due_200");
  EXPECT_EQ(StandingReader(store).Read({}, config)->late_schedule, Micros(0)) << "nobody is to fire it";
}

TEST(StandingsTest, TheyAreToldUntilTheyAreOthersToTell) {
  Standings standings;
  const BootTime read(seconds(1000));
  EXPECT_FALSE(standings.Wanted(read));
  standings.Keep("main", {{{"noop", {7, seconds(30), 2, 1}}, {"quiet", {}}}, seconds(90)}, read);
  standings.NotePruned("main", read - hours(1));
  EXPECT_THAT(
      Told(standings, read + seconds(5)),
      ElementsAre("oldest_due_seconds{handler=\"noop\",shard=\"main\"} 35",
                  "oldest_due_seconds{handler=\"quiet\",shard=\"main\"} 0",
                  "purge_lag_seconds{shard=\"main\"} 3605", "schedule_late_seconds{shard=\"main\"} 90",
                  "tasks_failed{handler=\"noop\",shard=\"main\"} 2",
                  "tasks_failed{handler=\"quiet\",shard=\"main\"} 0",
                  "tasks_quarantined{handler=\"noop\",shard=\"main\"} 1",
                  "tasks_waiting{handler=\"noop\",shard=\"main\"} 7",
                  "tasks_waiting{handler=\"quiet\",shard=\"main\"} 0"));
  EXPECT_TRUE(standings.Wanted(read + seconds(60)));
  EXPECT_FALSE(standings.Wanted(read + hours(1)));
  standings.Forget("main");
  EXPECT_THAT(Told(standings, read), IsEmpty());
}

TEST(StandingsTest, AfterAPauseInAskingAnOldBacklogIsNotToldAsIfItStillWaited) {
  Standings standings;
  const BootTime read(seconds(1000));
  standings.Keep("main", {{{"noop", {7, seconds(30), 0, 0}}}, seconds(0)}, read);
  standings.NotePruned("main", read);
  EXPECT_THAT(Told(standings, read + seconds(5)),
              Contains("oldest_due_seconds{handler=\"noop\",shard=\"main\"} 35"));
  const BootTime later = read + hours(1);
  EXPECT_THAT(Told(standings, later), ElementsAre("purge_lag_seconds{shard=\"main\"} 3600"));
  EXPECT_TRUE(standings.Wanted(later));
  standings.Keep("main", {{{"noop", {1, seconds(2), 0, 0}}}, seconds(0)}, later + seconds(10));
  EXPECT_THAT(Told(standings, later + seconds(15)),
              Contains("oldest_due_seconds{handler=\"noop\",shard=\"main\"} 7"));
}

// The upkeep reads on for a while after each request.
TEST(StandingsTest, WhoAsksSeldomIsToldWhatWasReadLately) {
  Standings standings;
  const BootTime read(seconds(1000));
  Told(standings, read);
  standings.Keep("main", {{{"noop", {7, seconds(30), 0, 0}}}, seconds(0)}, read + minutes(5));
  EXPECT_THAT(Told(standings, read + minutes(6)),
              Contains("oldest_due_seconds{handler=\"noop\",shard=\"main\"} 90"));
}

TEST(StandingsTest, AScraperThatIsLateKeepsWhatWasSeen) {
  Standings standings;
  const BootTime read(seconds(1000));
  standings.Keep("main", {{{"noop", {7, seconds(30), 0, 0}}}, seconds(0)}, read);
  Told(standings, read);
  EXPECT_THAT(Told(standings, read + minutes(4)),
              Contains("oldest_due_seconds{handler=\"noop\",shard=\"main\"} 270"));
}

}  // namespace
}  // namespace millrace::engine
