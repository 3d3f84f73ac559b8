#include "coordinator/app/schedule/schedule_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/time_of.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const WallTime kEvening = At("2026-11-22T18:00:00Z");

Config Configured(const std::string& schedules) {
  const auto config =
      ParseConfig(R"({"handlers":{"orders":{"uses":"http_call"}},"schedules":)" + schedules + "}", "m.json");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

const char* const kNightly = R"({"nightly":{"cron":"30 2 * * *","zone":"Europe/Berlin","handler":"noop"}})";

ShardScheduleFacts ShardOf(std::vector<ScheduleRow> rows = {}, WallTime now = kEvening) {
  return {.now = now, .rows = std::move(rows), .tables = {"tasks", "tasks_001"}};
}

ScheduleRow RowOf(const Config& config, const std::string& name, WallTime next) {
  ScheduleRow row{.name = name, .fired = 7, .lapsed = 2};
  row.state.rhythm = RhythmText(config.schedules.at(name).rule.timing);
  row.state.anchor = kEvening - minutes(10'000);
  row.state.next = next;
  row.task = TaskKey{"tasks", 17};
  return row;
}

ScheduleFacts FactsAt(const Config& config, const std::map<std::string, ShardScheduleFacts>& shards,
                      const KnownHandlers& handlers = {}) {
  const auto all = FactsOf(config, shards, handlers, kEvening);
  EXPECT_THAT(all, SizeIs(1));
  return all.front();
}

std::vector<std::string> Names(const ScheduleFacts& schedule) {
  std::vector<std::string> names;
  for (const ScheduleTrouble& trouble : schedule.troubles) names.push_back(trouble.name);
  return names;
}

std::vector<std::string> Times(const ScheduleFacts& schedule, std::size_t count) {
  std::vector<std::string> times;
  for (const ComingFiring& firing : ComingFirings(schedule, count)) times.push_back(FormatTime(firing.at));
  return times;
}

TEST(ScheduleReportTest, ANightOnWhichTheClockIsChangedIsMarked) {
  const Config config = Configured(kNightly);
  const ScheduleFacts spring = FactsAt(config, {{"main", ShardOf({}, At("2026-03-27T12:00:00Z"))}});
  const auto firings = ComingFirings(spring, 3);
  EXPECT_EQ(firings[0].clock_change, "");
  EXPECT_EQ(firings[1].clock_change, "the clock goes from 02:00 to 03:00");
  EXPECT_EQ(firings[2].clock_change, "");
  EXPECT_THAT(FiringTable(spring, firings).Text(0), HasSubstr("2026-03-29 03:00 +0200"));
  const ScheduleFacts autumn = FactsAt(config, {{"main", ShardOf({}, At("2026-10-24T12:00:00Z"))}});
  EXPECT_EQ(ComingFirings(autumn, 1)[0].clock_change, "the clock goes from 03:00 back to 02:00");
  EXPECT_EQ(ToJson(autumn, ComingFirings(autumn, 1))[0]["local"], "2026-10-25 02:30 +0200");
}

TEST(ScheduleReportTest, AFiringIsMarkedOnBothSidesOfAChangeThatDay) {
  const Config config =
      Configured(R"({"often":{"cron":"0 */12 * * *","zone":"America/New_York","handler":"noop"}})");
  const ScheduleFacts autumn = FactsAt(config, {{"main", ShardOf({}, At("2026-10-31T20:00:00Z"))}});
  const auto firings = ComingFirings(autumn, 3);
  EXPECT_EQ(firings[0].clock_change, "the clock goes from 02:00 back to 01:00");  // midnight
  EXPECT_EQ(firings[1].clock_change, "the clock goes from 02:00 back to 01:00");  // noon
  EXPECT_EQ(firings[2].clock_change, "");
}

TEST(ScheduleReportTest, ItGoesOnWhereItsRowStands) {
  const Config config = Configured(R"({"sync":{"every":"10m","handler":"noop"}})");
  const ScheduleRow row = RowOf(config, "sync", kEvening + minutes(3));
  ScheduleFacts sync = FactsAt(config, {{"main", ShardOf({row})}});
  ASSERT_TRUE(sync.row);
  EXPECT_EQ(Times(sync, 1), std::vector<std::string>{"2026-11-22T18:03:00Z"});
  EXPECT_EQ(ToJson(sync)["last_task"], "main/tasks/17");
  EXPECT_EQ(ToJson(sync)["fired"], 7);
  // A rule that nobody has looked at yet counts from now.
  sync.row->state.rhythm = "every 1h";
  EXPECT_THAT(Times(sync, 2), ElementsAre("2026-11-22T18:00:00Z", "2026-11-22T18:10:00Z"));
}

TEST(ScheduleReportTest, WhatComesDueInAPauseIsNotShownAsToCome) {
  const Config config = Configured(R"({"sync":{"every":"10m","handler":"noop","paused":true}})");
  ScheduleRow row = RowOf(config, "sync", kEvening - minutes(60));
  row.state.paused = true;
  const ScheduleFacts sync = FactsAt(config, {{"main", ShardOf({row})}});
  EXPECT_THAT(sync.troubles, IsEmpty());
  EXPECT_THAT(Times(sync, 1), ElementsAre("2026-11-22T18:10:00Z"));
}

TEST(ScheduleReportTest, AFixedDelayKnowsItsNextFiringOnly) {
  const Config config = Configured(R"({"poll":{"after":"30s","handler":"noop"}})");
  EXPECT_THAT(Times(FactsAt(config, {{"main", ShardOf()}}), 5), ElementsAre("2026-11-22T18:00:00Z"));
  ScheduleRow row = RowOf(config, "poll", kEvening);
  row.state.next.reset();
  const ScheduleFacts works = FactsAt(config, {{"main", ShardOf({row})}});
  EXPECT_THAT(Times(works, 5), IsEmpty());
  EXPECT_THAT(ListTable({works}).Text(0), HasSubstr("when its task has ended"));
}

TEST(ScheduleReportTest, WhatIsWrongIsSaid) {
  const Config config = Configured(kNightly);
  const ScheduleRow late = RowOf(config, "nightly", kEvening - minutes(1) - seconds(1));
  EXPECT_THAT(Names(FactsAt(config, {{"main", ShardOf({late})}})), ElementsAre("late"));
  const ScheduleRow punctual = RowOf(config, "nightly", kEvening - minutes(1));
  EXPECT_THAT(FactsAt(config, {{"main", ShardOf({punctual})}}).troubles, IsEmpty());

  const KnownHandlers others = std::set<std::string>{"noops", "exec"};
  const ScheduleFacts nobody = FactsAt(config, {{"main", ShardOf()}}, others);
  ASSERT_THAT(Names(nobody), ElementsAre("handler"));
  EXPECT_THAT(nobody.troubles[0].what, HasSubstr("did you mean 'noops'?"));

  const Config used = Configured(R"({"o":{"every":"1m","handler":"orders"}})");
  EXPECT_THAT(FactsAt(used, {{"main", ShardOf()}}, std::set<std::string>{"http_call"}).troubles, IsEmpty());

  const Config placed = Configured(R"({"p":{"every":"1m","handler":"noop","shard":"eu","table":"taks"}})");
  EXPECT_THAT(FactsAt(placed, {{"main", ShardOf()}}).troubles[0].what, HasSubstr("no shard 'eu'"));
  EXPECT_THAT(FactsAt(placed, {{"eu", ShardOf()}}).troubles[0].what,
              HasSubstr("no task table 'taks' (did you mean 'tasks'?)"));
}

TEST(ScheduleReportTest, WhatIsConfiguredIsInJsonToo) {
  const Config config = Configured(
      R"({"s":{"every":"1m","handler":"noop","params":{"a":1},"catch_up":"all","overlap":"skip"}})");
  const auto one = ToJson(FactsAt(config, {{"main", ShardOf()}}));
  EXPECT_EQ(one["params"].dump(), R"({"a":1})");
  EXPECT_TRUE(one["from_query"].is_null());
  EXPECT_TRUE(one["key"].is_null());
  EXPECT_EQ(one["catch_up"], "all");
  EXPECT_EQ(one["overlap"], "skip");
  const Config bills = Configured(
      R"({"b":{"cron":"0 2 1 * *","handler":"noop","from_query":"SELECT id FROM c","key":"{id}-{month}"}})");
  const auto rows = ToJson(FactsAt(bills, {{"main", ShardOf()}}));
  EXPECT_TRUE(rows["params"].is_null()) << "each row has its own";
  EXPECT_EQ(rows["from_query"], "SELECT id FROM c");
  EXPECT_EQ(rows["key"], "{id}-{month}");
  EXPECT_EQ(rows["catch_up"], "one");
  const Config sync = Configured(R"({"sync":{"after":"5m","handler":"noop"}})");
  const auto after = ToJson(FactsAt(sync, {{"main", ShardOf()}}));
  EXPECT_TRUE(after["catch_up"].is_null()) << "nothing can be missed";
  EXPECT_TRUE(after["overlap"].is_null());
}

TEST(ScheduleReportTest, AFanOutThatIsUnderWayTellsHowFarItHasCome) {
  const Config config = Configured(
      R"({"bills":{"cron":"0 2 1 * *","handler":"noop","from_query":"SELECT id FROM c","key":"{id}-{month}"}})");
  ScheduleRow row = RowOf(config, "bills", At("2026-12-01T02:00:00Z"));
  row.task = TaskKey{"tasks", 0};
  ShardScheduleFacts shard = ShardOf({row});
  shard.fan_outs = {{.schedule = "other", .table = "tasks"},
                    {.schedule = "bills", .firing = At("2026-11-01T02:00:00Z"), .table = "tasks"}};
  shard.fan_outs[1].submitted = 3'996;
  shard.fan_outs[1].refused = 1;
  const ScheduleFacts bills = FactsAt(config, {{"main", shard}});
  EXPECT_THAT(DetailText(bills),
              HasSubstr("the fan-out of 2026-11-01 02:00 +0000: 3,996 tasks so far, 1 row refused"));
  EXPECT_EQ(ToJson(bills)["under_way"]["submitted"], 3'996);
  EXPECT_TRUE(ToJson(bills)["last_task"].is_null());
}

TEST(ScheduleReportTest, AFanOutThatHasSubmittedNothingForMinutesIsATrouble) {
  const Config config = Configured(
      R"({"bills":{"cron":"0 2 1 * *","handler":"noop","from_query":"SELECT id FROM c","key":"{id}-{month}"}})");
  ShardScheduleFacts shard = ShardOf({RowOf(config, "bills", At("2026-12-01T02:00:00Z"))});
  shard.fan_outs = {
      {.schedule = "bills", .firing = kEvening, .table = "tasks", .begun = kEvening - minutes(2)}};
  EXPECT_THAT(Names(FactsAt(config, {{"main", shard}})), IsEmpty());
  shard.fan_outs[0].begun = kEvening - minutes(4);
  EXPECT_THAT(Names(FactsAt(config, {{"main", shard}})), ElementsAre("fan_out"));
  EXPECT_THAT(ListTable({FactsAt(config, {{"main", shard}})}).Text(0), HasSubstr("has submitted nothing"));
  shard.fan_outs[0].submitted = 1;
  EXPECT_THAT(Names(FactsAt(config, {{"main", shard}})), IsEmpty());
}

TEST(ScheduleReportTest, AFanOutThatHasEndedTellsWhatCameOfIt) {
  const Config config = Configured(
      R"({"bills":{"cron":"0 2 1 * *","handler":"noop","from_query":"SELECT id FROM c","key":"{id}-{month}"}})");
  ShardScheduleFacts shard = ShardOf({RowOf(config, "bills", At("2026-12-01T02:00:00Z"))});
  shard.ended["bills"] = {At("2026-11-01T02:00:00Z"), 3'996, 2, 1};
  const ScheduleFacts bills = FactsAt(config, {{"main", shard}});
  EXPECT_THAT(
      DetailText(bills),
      HasSubstr("that of 2026-11-01 02:00 +0000: 3,996 tasks submitted, 2 rows refused, 1 key taken"));
  EXPECT_EQ(ToJson(bills)["last_fan_out"]["submitted"], 3'996);
  EXPECT_EQ(ToJson(bills)["last_fan_out"]["taken"], 1);
}

TEST(ScheduleReportTest, OfTwoSchedulesWithTheSameKeysTheOneThatSubmitsNothingSaysWhy) {
  const Config config = Configured(
      R"({"a":{"cron":"0 2 1 * *","handler":"noop","from_query":"SELECT id FROM c","key":"{id}-{month}"},
          "b":{"cron":"0 3 1 * *","handler":"noop","from_query":"SELECT id FROM d","key":"{id}-{month}"},
          "c":{"cron":"0 3 1 * *","handler":"noop","from_query":"SELECT id FROM d","key":"{id}-{day}"}})");
  EXPECT_EQ(SharesKeysWith("a", config), "b");
  EXPECT_EQ(SharesKeysWith("b", config), "a");
  EXPECT_EQ(SharesKeysWith("c", config), "");
  ShardScheduleFacts shard = ShardOf();
  shard.ended = {{"a", {kEvening, 17, 0, 0}}, {"b", {kEvening, 0, 0, 17}}, {"c", {kEvening, 0, 0, 17}}};
  const auto all = FactsOf(config, {{"main", shard}}, {}, kEvening);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_THAT(Names(all[0]), IsEmpty());
  EXPECT_THAT(Names(all[1]), ElementsAre("key"));
  EXPECT_THAT(all[1].troubles[0].what, HasSubstr("schedule a has the same handler and key"));
  EXPECT_THAT(Names(all[2]), IsEmpty()) << "it was run twice in a day";
}

TEST(ScheduleReportTest, AOneShotWhoseTimeHasPassedIsNotGood) {
  const Config config = Configured(R"({"once":{"at":"2026-11-22T17:00:00Z","handler":"noop"}})");
  ScheduleRow row = RowOf(config, "once", kEvening);
  row.state.next.reset();
  const ScheduleFacts never = FactsAt(config, {{"main", ShardOf({row})}});
  EXPECT_THAT(ListTable({never}).Text(0), HasSubstr("its time has passed: it never fires"));
  row.state.last = At("2026-11-22T17:00:00Z");
  const ScheduleFacts over = FactsAt(config, {{"main", ShardOf({row})}});
  EXPECT_THAT(ListTable({over}).Text(0), HasSubstr("over"));
  EXPECT_EQ(ToJson(over)["over"], true);
  const Config later = Configured(R"({"once":{"at":"2026-11-22T19:00:00Z","handler":"noop"}})");
  EXPECT_EQ(
      ToJson(FactsAt(later, {{"main", ShardOf({RowOf(later, "once", At("2026-11-22T19:00:00Z"))})}}))["over"],
      false);
}

TEST(ScheduleReportTest, WhatIsAddedPausedDoesNotFireNow) {
  const Config rate = Configured(R"({"sync":{"every":"10m","handler":"noop","paused":true}})");
  EXPECT_THAT(Times(FactsAt(rate, {{"main", ShardOf()}}), 1), ElementsAre("2026-11-22T18:10:00Z"));
  const Config delay = Configured(R"({"poll":{"after":"30s","handler":"noop","paused":true}})");
  const ScheduleFacts poll = FactsAt(delay, {{"main", ShardOf()}});
  EXPECT_THAT(Times(poll, 5), IsEmpty());
  EXPECT_THAT(ListTable({poll}).Text(0), HasSubstr("once it is resumed"));
}

TEST(ScheduleReportTest, OfAShardThatIsAwayTheDocumentsPartIsShown) {
  const Config config = Configured(kNightly);
  const ScheduleFacts nightly =
      FactsAt(config, {{"main", {.away = Error{ErrorCode::Unavailable, "it does not answer"}}}});
  EXPECT_THAT(ListTable({nightly}).Text(0), HasSubstr("cron 30 2 * * *"));
  EXPECT_THAT(ListTable({nightly}).Text(0), HasSubstr("unknown"));
  const auto json = ToJson(nightly);
  EXPECT_EQ(json["row"], "unknown");
  EXPECT_TRUE(json["next"].is_null());
  EXPECT_TRUE(json["fired"].is_null());
}

TEST(ScheduleReportTest, TheRowOfTheShardBeforeIsItsRowUntilItHasMoved) {
  const Config config = Configured(R"({"p":{"every":"10m","handler":"noop","shard":"eu"}})");
  ScheduleRow row = RowOf(config, "p", kEvening + minutes(3));
  const ScheduleFacts before = FactsAt(config, {{"eu", ShardOf()}, {"main", ShardOf({row})}});
  EXPECT_EQ(before.row_shard, "main");
  EXPECT_EQ(ToJson(before)["last_task"], "main/tasks/17");
  ScheduleRow moved = row;
  moved.moved_to = "eu";
  EXPECT_EQ(FactsAt(config, {{"eu", ShardOf({row})}, {"main", ShardOf({moved})}}).row_shard, "eu");
  EXPECT_FALSE(FactsAt(config, {{"eu", ShardOf()}, {"main", ShardOf({moved})}}).row);
}

}  // namespace
}  // namespace millrace::engine
