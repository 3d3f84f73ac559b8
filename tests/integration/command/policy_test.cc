// What a configuration says of how tasks are treated, in the embedded mode.
#include <chrono>

#include "framework/base/clock.h"
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A time of the day in UTC, so many minutes from now.
std::string InMinutes(int minutes) {
  const auto at = std::chrono::floor<std::chrono::minutes>(SystemClock().WallNow().time_since_epoch());
  const int of_day = static_cast<int>((at.count() + 24 * 60 + minutes) % (24 * 60));
  char text[16];
  std::snprintf(text, sizeof text, "%02d:%02d", of_day / 60, of_day % 60);
  return text;
}

TEST_F(CommandTest, OutsideItsHoursATypeWaitsAndIsExplained) {
  Write("c.json", R"({"handlers":{"night":{"uses":"noop","hours":{"from":")" + InMinutes(60) + R"(","to":")" +
                      InMinutes(120) + R"("}},"day":{"uses":"noop","hours":{"from":")" + InMinutes(-60) +
                      R"(","to":")" + InMinutes(60) + R"("}}}})");
  Run("submit --config c.json --handler night --count 3");
  Run("submit --config c.json --handler day --count 3");
  const std::string until = "outside its hours until " + InMinutes(60) + " UTC";
  const ProcessResult run = Run("run --until-idle --config c.json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("\n3 succeeded, 0 failed"));
  EXPECT_THAT(run.output, HasSubstr("night: " + until));
  const std::string waiting = Run("task list --state waiting --json").output;
  EXPECT_THAT(waiting, HasSubstr("\"handler\":\"night\""));
  EXPECT_THAT(waiting, Not(HasSubstr("\"handler\":\"day\"")));
  EXPECT_THAT(waiting, Not(HasSubstr("\"attempt\":1"))) << "nothing of it was claimed";
  const std::string why = Run("task why 1 --config c.json --json").output;
  EXPECT_THAT(why, HasSubstr("\"outside_hours\""));
  EXPECT_THAT(why, HasSubstr(until));
  EXPECT_THAT(Run("status --config c.json").output, HasSubstr("3 tasks of night: " + until));
}

TEST_F(CommandTest, WhoWorksUntilIdleSaysOnceWhatItWaitsForAndAtItsEndWhatItLeaves) {
  Write("c.json",
        R"({"handlers":{"slow":{"uses":"noop","limit":{"rate":"8/m","burst":1}},"off":{"uses":"noop"}}})");
  Run("submit --config c.json --handler slow --count 2");
  Run("submit --config c.json --handler off --count 2");
  EXPECT_EQ(Run("cluster pause handler:off --force").exit_code, 0);
  const ProcessResult run = Run("run --until-idle --config c.json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const std::string told = "due tasks are held back, and are waited for held=";
  const std::size_t first = run.output.find(told);
  ASSERT_NE(first, std::string::npos) << run.output;
  EXPECT_EQ(run.output.find(told, first + 1), std::string::npos) << "once";
  EXPECT_THAT(run.output, HasSubstr(told + "\"slow: its limit\""));
  EXPECT_THAT(run.output, HasSubstr("due tasks are left behind that may not run now left=\"off is paused\""));
  EXPECT_THAT(run.output, HasSubstr("\n2 succeeded, 0 failed"));
}

TEST_F(CommandTest, APermitThatAnEndedWorkerLeftIsFreeAndNotShown) {
  Write("c.json", R"({"handlers":{"bank":{"uses":"noop","limit":{"concurrency":1}}}})");
  Run("submit --config c.json --handler bank --count 2");
  EXPECT_THAT(Run("run --until-idle --config c.json").output, HasSubstr("\n2 succeeded, 0 failed"));
  EXPECT_THAT(Run("status --config c.json").output, Not(HasSubstr("permit of")));
}

TEST_F(CommandTest, OfOneShardAmongSeveralTheHomeOfPermitsIsNotCalledAway) {
  Write("two.json", R"({"shards":{"a":{"url":"sqlite:a.db"},"b":{"url":"sqlite:b.db"}},
                        "handlers":{"bank":{"uses":"noop","limit":{"concurrency":1}}}})");
  for (const char* shard : {"a", "b"})
    Run(std::string("submit --config two.json --handler bank --shard ") + shard);
  Write("home.sql", "INSERT INTO millrace_permits (handler,number,task) VALUES ('',0,'a')");
  ASSERT_EQ(RunProcess("cd " + folder_ + " && sqlite3 b.db < home.sql").exit_code, 0);
  for (const char* command : {"status --sample 0s", "task why 1"}) {
    const std::string ask = command + std::string(" --config two.json ");
    EXPECT_THAT(Run(ask + "--store sqlite:b.db").output, HasSubstr("home of permits"));
    EXPECT_THAT(Run(ask + "--shard b").output, Not(HasSubstr("home of permits")));
  }
}

TEST_F(CommandTest, AnErrorClassHasItsLadderOrFailsAtOnce) {
  // Fails as its params say, and the second time no more.
  Write("call.sh", R"(#!/bin/sh
read -r task
case $task in *'"failures":0'*) ;; *) exit 0 ;; esac
case $task in
  *gone*) echo '{"outcome":"retry","class":"http_404","text":"no such page","delay_seconds":1}' ;;
  *late*) echo '{"outcome":"retry","class":"timeout","text":"no answer"}' ;;
  *) echo '{"outcome":"retry","class":"other","text":"who knows"}' ;;
esac
)");
  Write("c.json",
        R"({"handlers":{"call":{"uses":"exec","options":{"program":"/bin/sh","args":[")" + folder_ +
            R"(/call.sh"]},"retry":{"classes":{"http_4*":"fail","timeout":{"delays":["10ms"]}}}}}})");
  for (const char* how : {"gone", "late", "odd"})
    Run("submit --config c.json --handler call --params \"{\\\"how\\\":\\\"" + std::string(how) + "\\\"}\"");
  const ProcessResult run = Run("run --until-idle --config c.json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const std::string gone = Run("task show 1 --json").output;
  EXPECT_THAT(gone, HasSubstr("\"state\":\"failed\""));
  EXPECT_THAT(gone, HasSubstr("\"failures\":1"));
  EXPECT_THAT(Run("task show 2 --json").output, HasSubstr("\"state\":\"succeeded\""));
  EXPECT_THAT(Run("task show 3 --json").output, HasSubstr("\"state\":\"waiting\"")) << "for a minute";
}

TEST_F(CommandTest, ATaskWhoseExceptionIsHeldWaitsForAPerson) {
  const std::string plugins =
      " --plugins " + std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/plugins --config c.json";
  Write("c.json", R"({"handlers":{"throw":{"on_exception":"hold"}}})");
  Run("submit --handler throw --params \"{\\\"what\\\":\\\"no such column\\\"}\"" + plugins);
  const ProcessResult run = Run("run --until-idle" + plugins);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, AllOf(HasSubstr("1 failed and held"), Not(HasSubstr("retried"))));
  const std::string held = Run("task show 1 --json").output;
  EXPECT_THAT(held, HasSubstr("\"state\":\"held\""));
  EXPECT_THAT(held, HasSubstr("no such column"));
  EXPECT_THAT(held, HasSubstr("\"failures\":1"));
  EXPECT_THAT(Run("task why 1" + plugins).output, HasSubstr("held after its last attempt failed"));
  EXPECT_EQ(Run("task release 1").exit_code, 0);
  EXPECT_THAT(Run("task show 1 --json").output, HasSubstr("\"state\":\"waiting\""));
}

TEST_F(CommandTest, ThePoliciesOfAConfigurationAreReadAndTheirFaultsRefusedByTheirKeys) {
  Write("good.json", R"({"noop":{"limit":{"rate":"30/m"},"breaker":true,
      "retry":{"classes":{"timeout":{"delays":["5s"]}}},"bands":[{"priority":"5-9","most":10}]}})");
  const ProcessResult good = Run("config validate handlers @good.json");
  EXPECT_EQ(good.exit_code, 0) << good.output;
  const std::pair<const char*, const char*> faults[] = {
      {R"("limit":{"concurrency":-1})", "handlers.noop.limit.concurrency: "},
      {R"("limit":{"rate":"0/s"})", "handlers.noop.limit.rate: "},
      {R"("hours":{"from":"01:00","to":"01:00"})", "handlers.noop.hours.to: "},
      {R"("hours":{"from":"01:00","to":"02:00","zone":"Mars/Base"})", "handlers.noop.hours.zone: "},
      {R"("bands":[{"most":1},{"most":2}])", "handlers.noop.bands.1: it overlaps with bands.0"},
      {R"("weight":1000000)", "handlers.noop.weight: "}};
  for (const auto& [keys, told] : faults) {
    const std::string part = R"({"noop":{)" + std::string(keys) + "}}";
    Write("bad.json", "{\"handlers\":" + part + "}");
    Write("part.json", part);
    for (const char* command :
         {"run --until-idle --config bad.json", "config validate handlers @part.json"}) {
      const ProcessResult refused = Run(command);
      EXPECT_EQ(refused.exit_code, 2) << command << keys;
      EXPECT_THAT(refused.output, HasSubstr(told));
    }
  }
}

}  // namespace
}  // namespace millrace::engine::testing
