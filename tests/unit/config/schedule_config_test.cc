#include "framework/config/schedule_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"
#include "framework/config/parts.h"
#include "framework/config/position_map.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct SchedulesRead {
  std::map<std::string, ScheduleConfig> schedules;
  std::string problems;
};

// Reads `{"schedules":…}` as the file m.json.
SchedulesRead ReadPart(const std::string& part) {
  const std::string text = "{\"schedules\":\n" + part + "}";
  const PositionMap positions = PositionMap::Read(text);
  Problems problems(positions, "m.json");
  SchedulesRead read;
  read.schedules = ReadSchedules(json::parse(text)["schedules"], problems);
  read.problems = problems.Text();
  return read;
}

ScheduleConfig Schedule(const std::string& object) {
  SchedulesRead read = ReadPart("{\"nightly\":" + object + "}");
  EXPECT_EQ(read.problems, "");
  return read.schedules["nightly"];
}

std::string ScheduleRefusal(const std::string& object) {
  const std::string problems = ReadPart("{\"nightly\":" + object + "}").problems;
  EXPECT_THAT(problems, StartsWith("m.json:2: schedules.nightly"));
  EXPECT_EQ(problems.find('\n'), std::string::npos) << problems;
  return problems;
}

std::string Written(const ScheduleConfig& schedule) {
  KeyLister keys;
  ListSchedule(schedule, keys);
  return keys.values().dump();
}

TEST(ScheduleConfigTest, ReadsTheContractsExample) {
  const ScheduleConfig schedule =
      Schedule(R"({"cron":"0 2 * * *","zone":"Europe/Berlin","handler":"noop","params":{},
      "catch_up":"none","paused":false})");
  EXPECT_EQ(RhythmText(schedule.rule.timing), "cron 0 2 * * * Europe/Berlin");
  EXPECT_EQ(schedule.handler, "noop");
  EXPECT_EQ(schedule.params, "{}");
  EXPECT_EQ(schedule.rule.catch_up, CatchUp::None);
  EXPECT_EQ(schedule.rule.overlap, Overlap::Allow);
  EXPECT_FALSE(schedule.rule.paused);
}

TEST(ScheduleConfigTest, HasDefaults) {
  const ScheduleConfig schedule = Schedule(R"({"cron":"@daily","handler":"noop"})");
  EXPECT_EQ(RhythmText(schedule.rule.timing), "cron @daily UTC");
  EXPECT_EQ(schedule.rule.catch_up, CatchUp::One);
  EXPECT_EQ(schedule.shard, "");
  EXPECT_EQ(schedule.table, std::nullopt);
}

TEST(ScheduleConfigTest, ReadsTheOtherRhythms) {
  const ScheduleConfig rate =
      Schedule(R"({"every":"30s","initial_delay":"2m","overlap":"skip","handler":"noop",
      "params":{"a":1},"shard":"eu-1","table":"tasks_007","paused":true})");
  EXPECT_EQ(RhythmText(rate.rule.timing), "every 30s");
  EXPECT_EQ(rate.rule.timing.initial_delay, 2min);
  EXPECT_EQ(rate.rule.overlap, Overlap::Skip);
  EXPECT_EQ(rate.params, R"({"a":1})");
  EXPECT_EQ(rate.shard, "eu-1");
  EXPECT_TRUE(rate.table && *rate.table == "tasks_007");
  EXPECT_TRUE(rate.rule.paused);
  EXPECT_EQ(RhythmText(Schedule(R"({"after":"30s","handler":"noop"})").rule.timing), "after 30s");
  EXPECT_EQ(RhythmText(Schedule(R"({"at":"2026-12-01T02:00:00+01:00","handler":"noop"})").rule.timing),
            "at 2026-12-01T01:00:00Z");
}

TEST(ScheduleConfigTest, ReadsAFanOut) {
  const ScheduleConfig bill = Schedule(R"({"cron":"0 2 1 * *","zone":"Europe/Berlin","handler":"statement",
      "from_query":"SELECT customer_id FROM customers","key":"{customer_id}-{month}"})");
  EXPECT_EQ(bill.from_query, "SELECT customer_id FROM customers");
  ASSERT_TRUE(bill.key);
  EXPECT_EQ(bill.key->columns(), std::vector<std::string>{"customer_id"});
}

TEST(ScheduleConfigTest, IsReadBackAsItIsWritten) {
  for (
      const char* object : {
          R"({"cron":"0 2 * * *","handler":"noop"})",
          R"({"cron":"0 2 1 * *","zone":"Asia/Kathmandu","handler":"x","from_query":"SELECT id FROM c","key":"{id}"})",
          R"({"every":"90s","handler":"noop","catch_up":"all","overlap":"skip","initial_delay":"1m"})",
          R"({"after":"1h30m","handler":"noop","paused":true,"shard":"s","table":"t"})",
          R"({"at":"2026-12-01T02:00:00.5Z","handler":"noop","params":{"b":[1,null]},"catch_up":"none"})",
          R"({"every":"1d","zone":"Pacific/Apia","handler":"x","from_query":"SELECT id FROM c","key":"{id}/{day}"})",
      }) {
    const ScheduleConfig schedule = Schedule(object);
    EXPECT_EQ(Schedule(Written(schedule)), schedule) << Written(schedule);
    EXPECT_EQ(Written(Schedule(Written(schedule))), Written(schedule));
  }
  EXPECT_EQ(Written(Schedule(R"({"after":"5m","handler":"noop"})")),
            R"({"after":"5m","handler":"noop","paused":false,"params":{},"initial_delay":"0s"})");
}

struct RefusedSchedule {
  const char* object;
  const char* says;
};

TEST(ScheduleConfigTest, RefusesWithTheKeyAndWhatToWrite) {
  const RefusedSchedule kRefused[] = {
      {R"({"handler":"noop"})", "nightly: it never fires: write \"cron\""},
      {R"({"cron":"@daily","every":"5m","handler":"noop"})",
       "it has \"cron\" and \"every\": leave one of them"},
      {R"({"cron":"@daily"})", "nightly: it has no handler"},
      {R"({"cron":"0 0 30 2 *","handler":"noop"})",
       "nightly.cron: this is no cron expression: it never fires"},
      {R"({"cron":"61 * * * *","handler":"noop"})",
       "nightly.cron: this is no cron expression: field 1 (minute)"},
      {R"({"cron":5,"handler":"noop","zone":"UTC"})", "nightly.cron: this must be a text in quotes, not 5"},
      {R"({"cron":"@daily","zone":"Europe/Berln","handler":"noop"})", "zone: 'Europe/Berln' is no time zone"},
      {R"({"every":"0s","handler":"noop"})", "nightly.every: \"0s\" is out of range"},
      {R"({"every":"5m","zone":"UTC","handler":"noop"})", "nightly.zone: this says nothing of an interval"},
      {R"({"at":"tomorrow","handler":"noop"})", "nightly.at: 'tomorrow' is not a time"},
      {R"({"at":"2026-12-01T02:00:00Z","initial_delay":"5m","handler":"noop"})", "nightly.initial_delay: "},
      {R"({"at":"2026-12-01T02:00:00Z","overlap":"skip","handler":"noop"})", "nightly.overlap: "},
      {R"({"after":"5m","catch_up":"one","handler":"noop"})", "nightly.catch_up: a schedule with \"after\""},
      {R"({"after":"5m","overlap":"skip","handler":"noop"})", "nightly.overlap: this schedule has one task"},
      {R"({"cron":"@daily","catch_up":"some","handler":"noop"})", "write \"none\" or \"one\" or \"all\""},
      {R"({"cron":"@daily","paused":"no","handler":"noop"})", "nightly.paused: this must be true or false"},
      {R"({"cron":"@daily","handler":"No Op"})", "nightly.handler: this is no task type"},
      {R"({"cron":"@daily","handler":"millrace.mail"})", "nightly.handler: the types millrace.… are"},
      {R"({"cron":"@daily","handler":"noop","params":[1]})", "nightly.params: this must be an object"},
      {R"({"cron":"@daily","handler":"noop","table":"T"})", "nightly.table: this is not a table name"},
      {R"({"cron":"@daily","handler":"noop","shard":"A B"})", "nightly.shard: a shard's name"},
      {R"({"cron":"@daily","handler":"noop","from_query":"SELECT 1"})",
       "nightly.from_query: its tasks need a key"},
      {R"({"cron":"@daily","handler":"noop","from_query":"DELETE FROM c","key":"{id}"})",
       "nightly.from_query: the statement must begin with SELECT, WITH or VALUES"},
      {R"({"cron":"@daily","handler":"noop","from_query":"SELECT id FROM c; COMMIT","key":"{id}"})",
       "nightly.from_query: "},
      {R"({"cron":"@daily","handler":"noop","from_query":"SELECT id INTO OUTFILE '/x' FROM c","key":"{id}"})",
       "nightly.from_query: the statement holds INTO"},
      {R"({"cron":"@daily","handler":"noop","key":"{id}"})", "nightly.key: this goes with \"from_query\""},
      {R"({"cron":"@daily","handler":"noop","from_query":"SELECT 1","key":"{month}"})",
       "nightly.key: the key '{month}' names no column"},
      {R"({"cron":"@daily","handler":"noop","from_query":"SELECT 1 id","key":"{id}","params":{}})",
       "nightly.params: a row of from_query brings its columns"},
      {R"({"cron":"@daily","handler":"noop","catchup":"one"})", "unknown key (did you mean 'catch_up'?)"},
      {R"(["@daily"])", "nightly: this must be an object"},
  };
  for (const RefusedSchedule& refused : kRefused)
    EXPECT_THAT(ScheduleRefusal(refused.object), HasSubstr(refused.says)) << refused.object;
}

TEST(ScheduleConfigTest, RefusesANameThatCouldNotStandInAKey) {
  EXPECT_THAT(ReadPart(R"({"Nightly run":{"cron":"@daily","handler":"noop"}})").problems,
              HasSubstr("a schedule's name is made of"));
  EXPECT_THAT(ReadPart("[]").problems, HasSubstr("schedules: this must be an object"));
}

TEST(ScheduleConfigTest, AZoneThatThisMachineLacksIsItsSchedulesFaultAloneWhereTheDocumentIsInForceAlready) {
  const char* text = R"({"schedules": {"a": {"cron": "0 2 * * *", "zone": "Mars/Base", "handler": "noop"},
      "b": {"cron": "0 2 * * *", "zone": "Europe/Berlin", "handler": "noop"}}})";
  const auto refused = ParseConfig(text, "m.json");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("schedules.a.zone"));
  const auto contained = ParseConfig(text, "m.json", UnknownZones::Contained);
  ASSERT_TRUE(contained) << contained.error().message;
  EXPECT_THAT(contained->schedules.at("a").fault, HasSubstr("Mars/Base"));
  EXPECT_EQ(contained->schedules.at("b").fault, "");
}

}  // namespace
}  // namespace millrace::engine
