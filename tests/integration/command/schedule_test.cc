// `millrace schedule` without a cluster, where the file of --config holds the schedules.
#include <nlohmann/json.hpp>

#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ScheduleCommandTest : public CommandTest {
 protected:
  ScheduleCommandTest() {
    Write("m.json", R"({"schedules":{
 "nightly":{"cron":"30 2 * * *","zone":"Europe/Berlin","handler":"noop","params":{"a":1}},
 "held":{"every":"1h","handler":"noop","paused":true}}})");
  }
  ProcessResult Ask(const std::string& what) const {
    return Run("schedule " + what + " --config m.json --store sqlite:s.db");
  }
  json Json(const std::string& what) const {
    const ProcessResult result = Ask(what + " --json 2>/dev/null");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return json::parse(result.output, nullptr, false);
  }
};

struct BadSchedule {
  const char* arguments;
  int exit_code;
  const char* key;  // or flag, that is at fault
  const char* says;
};

const BadSchedule kBadSchedules[] = {
    {"add x --cron \"0 0 30 2 *\" --handler noop", 2, "schedules.x.cron", "never"},
    {"add x --cron \"61 * * * *\" --handler noop", 2, "schedules.x.cron", "minute"},
    {"add x --cron \"0 2 * * *\" --zone Europe/Berln --handler noop", 2, "schedules.x.zone", "Europe/Berlin"},
    {"add x --cron \"0 2 * * *\" --every 5m --handler noop", 2, "schedules.x", "leave one of them"},
    {"add x --handler noop", 2, "schedules.x", "it never fires"},
    {"add x --every soon --handler noop", 2, "schedules.x.every", ""},
    {"add x --every 5m --zone Europe/Berlin --handler noop", 2, "schedules.x.zone", "leave it out"},
    {"add x --after 5m --overlap skip --handler noop", 2, "schedules.x.overlap", "leave the key out"},
    {"add x --every 1d --handler noop --from-query \"SELECT 1 AS id\"", 2, "schedules.x.from_query",
     "need a key"},
    {"add x --every 1d --handler noop --key {id}", 2, "schedules.x.key", "from_query"},
    {"add x --at 2020-01-01T00:00:00Z --handler noop", 2, "--at", "has passed"},
    {"add x --at tomorrow --handler noop", 2, "schedules.x.at", ""},
    {"add X --every 5m --handler noop", 2, "schedules.X", "lower-case"},
    {"add x --every 5m --handler nop", 2, "--handler", "did you mean"},
    {"add x --every 5m --handler noop --shard mian", 2, "--shard", "did you mean 'main'?"},
    {"add x --every 5m --handler noop --params \"[]\"", 2, "--params", "object"},
    {"add x --every 5m", 2, "--handler", "required"},
    {"add x --every 5m --handler noop --catch-up some", 2, "--catch-up", "none"},
    {"add nightly --every 5m --handler noop", 4, "nightly", "--replace"},
    {"show nihgtly", 1, "nihgtly", "did you mean 'nightly'?"},
    {"show nightly --next 20000", 2, "--next", "10000"},
    {"pause nihgtly", 1, "nihgtly", "did you mean 'nightly'?"},
    {"remove nihgtly", 1, "nihgtly", "did you mean 'nightly'?"},
    {"run nihgtly", 1, "nihgtly", "did you mean 'nightly'?"},
    {"resume nightly", 1, "nightly", "is not paused"},
};

TEST_F(ScheduleCommandTest, BadInputNamesItsKey) {
  for (const BadSchedule& bad : kBadSchedules) {
    const ProcessResult result = Ask(bad.arguments);
    EXPECT_EQ(result.exit_code, bad.exit_code) << bad.arguments << "\n" << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr(bad.key), HasSubstr(bad.says))) << bad.arguments;
  }
}

TEST_F(ScheduleCommandTest, ADryRunShowsItsFirings) {
  const ProcessResult good =
      Ask("add bills --cron \"0 2 1 * *\" --zone Asia/Kathmandu --handler noop --dry-run");
  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, AllOf(HasSubstr("it is good"), HasSubstr("Asia/Kathmandu"),
                                 HasSubstr("-01 02:00 +0545"), HasSubstr("T20:15:00Z")));
  const json answer = Json("add bills --cron \"0 2 1 * *\" --handler noop --dry-run");
  EXPECT_EQ(answer["firings"].size(), 3u);
  EXPECT_EQ(answer["document"]["bills"]["cron"], "0 2 1 * *");
  EXPECT_EQ(Ask("add late --every 5m --handler no_such --force --dry-run").exit_code, 0);
}

TEST_F(ScheduleCommandTest, WithoutAClusterItSaysWhatToWriteWhere) {
  const ProcessResult added = Ask("add sync --every 5m --handler noop --params \"{\\\"b\\\":2}\"");
  EXPECT_EQ(added.exit_code, 2) << added.output;
  EXPECT_THAT(added.output, AllOf(HasSubstr("m.json"), HasSubstr("--zk"),
                                  HasSubstr(R"({"sync":{"every":"5m","handler":"noop","params":{"b":2}}})")));
  EXPECT_THAT(Ask("pause nightly").output, HasSubstr("set schedules.nightly.paused to true"));
  EXPECT_THAT(Ask("resume held").output, HasSubstr("take out schedules.held.paused"));
  EXPECT_THAT(Ask("remove nightly").output, HasSubstr("take out schedules.nightly"));
  EXPECT_EQ(Ask("pause held").exit_code, 0);  // it is already
}

TEST_F(ScheduleCommandTest, TheFilesSchedulesAreListedAndShownAndOneIsRunNow) {
  // There is no store yet: what the file says is shown all the same.
  const json before = Json("list");
  ASSERT_EQ(before["schedules"].size(), 2u);
  EXPECT_EQ(before["schedules"][1]["schedule"], "nightly");
  EXPECT_EQ(before["schedules"][1]["row"], "unknown");
  EXPECT_TRUE(before["away"].contains("main"));
  ASSERT_EQ(Run("schema apply --store sqlite:s.db").exit_code, 0);
  EXPECT_EQ(Json("list")["schedules"][1]["row"], "none");

  // A query is tried.
  const std::string fan_out = "add c --every 1h --handler noop --key {id} --dry-run --from-query ";
  const ProcessResult missing = Ask(fan_out + "\"SELECT id FROM customers\"");
  EXPECT_EQ(missing.exit_code, 2) << missing.output;
  EXPECT_THAT(missing.output, AllOf(HasSubstr("--from-query"), HasSubstr("customers")));
  EXPECT_THAT(Ask(fan_out + "\"SELECT 1 AS number\"").output, HasSubstr("no column 'id'"));
  EXPECT_THAT(Ask(fan_out + "\"SELECT id FROM tasks\"").output, HasSubstr("the table that it fills"));
  EXPECT_EQ(Ask(fan_out + "\"SELECT 1 AS id\"").exit_code, 0);
  EXPECT_EQ(Ask(fan_out + "\"SELECT id FROM customers\" --force").exit_code, 0);

  const ProcessResult run = Ask("run nightly");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("main/tasks/1 is submitted"));
  const ProcessResult task = Run("task show main/tasks/1 --store sqlite:s.db");
  EXPECT_THAT(task.output, AllOf(HasSubstr("noop"), HasSubstr("{\"a\":1}"), HasSubstr("schedule/nightly/2")))
      << "by its key its row is kept for whoever asks when it ended";
  EXPECT_THAT(Ask("run nightly").output, HasSubstr("main/tasks/2 is submitted"))
      << "and it is another's next time";

  // A fan-out is begun, and shown to be under way.
  Write("f.json", R"({"schedules":{"bills":{"every":"1d","handler":"noop","from_query":"SELECT 1 AS id",
      "key":"{id}-{day}"}}})");
  const ProcessResult begun = Run("schedule run bills --config f.json --store sqlite:s.db");
  EXPECT_EQ(begun.exit_code, 0) << begun.output;
  EXPECT_THAT(begun.output, HasSubstr("schedule show bills"));
  const std::string stop = "schedule stop bills --config f.json --store sqlite:s.db";
  EXPECT_THAT(Run(stop).output, HasSubstr("1 fan-out of bills stopped"));
  EXPECT_THAT(Run(stop).output, HasSubstr("no fan-out of bills is under way"));
  EXPECT_EQ(Run("schedule stop bill --config f.json --store sqlite:s.db").exit_code, 1);

  const ProcessResult list = Ask("list");
  EXPECT_EQ(list.exit_code, 0) << list.output;
  EXPECT_THAT(list.output, AllOf(HasSubstr("cron 30 2 * * *"), HasSubstr("every 1h"), HasSubstr("paused"),
                                 HasSubstr("not begun yet")));
  const ProcessResult show = Ask("show nightly --next 200");
  EXPECT_THAT(show.output, AllOf(HasSubstr("Europe/Berlin"), HasSubstr("the clock goes from 02:00 to 03:00"),
                                 Not(HasSubstr("it is paused"))));
  EXPECT_THAT(Ask("show held").output, HasSubstr("millrace schedule resume held"));
}

TEST_F(ScheduleCommandTest, WhereNothingIsConfiguredItSaysWhereToWriteIt) {
  ASSERT_EQ(Run("schema apply --store sqlite:s.db").exit_code, 0);
  EXPECT_THAT(Run("schedule list --store sqlite:s.db").output,
              AllOf(HasSubstr("no schedule is configured"), HasSubstr("--config"), HasSubstr("--dry-run")));
}

TEST_F(ScheduleCommandTest, WhoAddsASecondOneOfTheSameKeysIsTold) {
  Write("m.json", R"({"schedules":{"bills":{"cron":"0 2 1 * *","handler":"noop","from_query":"SELECT 1 AS id",
      "key":"{id}-{month}"}}})");
  const std::string add =
      "add more --cron \"0 3 1 * *\" --handler noop --dry-run --from-query \"SELECT 2 AS id\" --key ";
  EXPECT_THAT(Ask(add + "{id}-{month}").output, HasSubstr("schedule bills has the same handler and key"));
  EXPECT_THAT(Ask(add + "more-{id}").output, Not(HasSubstr("the same handler and key")));
}

TEST_F(ScheduleCommandTest, WhatIsAddedPausedIsNotToFireNow) {
  const json answer = Json("add sync --every 5m --handler noop --paused --dry-run");
  EXPECT_EQ(answer["firings"].size(), 3u);
  const ProcessResult added = Ask("add sync --after 5m --handler noop --paused --dry-run");
  EXPECT_THAT(added.output, AllOf(HasSubstr("millrace schedule resume sync"), Not(HasSubstr("now"))));
}

TEST_F(ScheduleCommandTest, AWorkerUntilIdleGoesOnToTheEndOfAFanOutAndTellsWhatCameOfIt) {
  Write("f.json",
        R"({"schedules":{"bills":{"cron":"0 2 1 * *","handler":"noop","key":"{id}-{day}","from_query":
      "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM n WHERE id<7000) SELECT id FROM n"}}})");
  const std::string where = " --config f.json --store sqlite:s.db";
  ASSERT_EQ(Run("schema apply --store sqlite:s.db").exit_code, 0);
  ASSERT_EQ(Run("schedule run bills" + where).exit_code, 0);
  const ProcessResult run = Run("run --until-idle" + where);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("7000 succeeded, 0 failed"));
  EXPECT_THAT(Run("schedule show bills" + where).output, HasSubstr("7,000 tasks submitted, 0 rows refused"));
}

TEST_F(ScheduleCommandTest, OfAShardThatIsAwayTheDocumentsPartIsShown) {
  Write("password", "x\n");
  std::filesystem::permissions(folder_ + "/password", std::filesystem::perms::owner_read);
  const std::string away = " --config m.json --store mysql://u@127.0.0.1:1/d";
  const ProcessResult list =
      RunProcess("cd " + folder_ + " && HOME=" + folder_ + " MILLRACE_PASSWORD_FILE=password " + Binary() +
                 " schedule list" + away);
  EXPECT_EQ(list.exit_code, 3) << list.output;
  EXPECT_THAT(list.output, AllOf(HasSubstr("cron 30 2 * * *"), HasSubstr("unknown"), HasSubstr("is away")));
}

TEST_F(ScheduleCommandTest, AShardThatDoesNotTellIsNotSaidToHaveNothing) {
  ASSERT_EQ(Run("schema apply --store sqlite:s.db").exit_code, 0);
  Write("later.sql", "UPDATE millrace_schema SET version=99,readable_by=99");
  ASSERT_EQ(RunProcess("cd " + folder_ + " && sqlite3 s.db < later.sql").exit_code, 0);
  for (const char* what : {"list", "stop nightly"}) {
    const ProcessResult told = Ask(what);
    EXPECT_EQ(told.exit_code, 4) << told.output;
    EXPECT_THAT(told.output, AllOf(HasSubstr("can't be read, so what stands of its schedules is not known"),
                                   Not(HasSubstr("is under way"))));
  }
}

TEST_F(ScheduleCommandTest, WhatIsInTroubleIsSaidByListStatusAndDoctor) {
  Write("m.json", R"({"schedules":{"lost":{"every":"1h","handler":"nop","table":"taks"}}})");
  ASSERT_EQ(Run("schema apply --store sqlite:s.db").exit_code, 0);
  EXPECT_EQ(Json("list")["schedules"][0]["troubles"].size(), 2u);
  EXPECT_THAT(
      Run("status --sample 0s --config m.json --store sqlite:s.db").output,
      AllOf(HasSubstr("schedule lost: shard main has no task table"), HasSubstr("schedule show lost")));
  const ProcessResult doctor = Run("doctor --json --config m.json --store sqlite:s.db");
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.output, AllOf(HasSubstr("schedule.handler"), HasSubstr("schedule.place")));
}

}  // namespace
}  // namespace millrace::engine::testing
