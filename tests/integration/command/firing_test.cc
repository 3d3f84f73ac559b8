// Schedules of the embedded mode: those of the file fire while the program runs.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::HasSubstr;

class FiringTest : public CommandTest {
 protected:
  // The program for some seconds, until it is told to stop.
  ProcessResult RunFor(int seconds, const std::string& options = "") const {
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " timeout -s TERM " +
                      std::to_string(seconds) + " " + Binary() + " run --config c.json " + options);
  }
  std::size_t Fired(const std::string& name) const {
    const std::string all = Run("task list --limit 1000 --json").output;
    std::size_t count = 0;
    const std::string key = "\"key\":\"schedule/" + name + "/";
    for (auto at = all.find(key); at != all.npos; at = all.find(key, at + 1)) ++count;
    return count;
  }
};

TEST_F(FiringTest, SchedulesOfTheFileFireWhileItRunsAndGoOnWithTheNextRun) {
  Write("c.json", R"({"schedules":{"tick":{"every":"1s","handler":"noop","catch_up":"all"},
      "lost":{"every":"1s","handler":"noop","table":"elsewhere"}}})");
  const ProcessResult first = RunFor(3);
  const std::size_t before = Fired("tick");
  EXPECT_GE(before, 2U) << first.output;
  EXPECT_THAT(first.output, HasSubstr("schedule lost can't fire: shard main has no table elsewhere"));
  RunFor(2);
  EXPECT_GT(Fired("tick"), before) << "what was missed meanwhile is made up";
  EXPECT_EQ(Fired("lost"), 0U);
}

TEST_F(FiringTest, AFiringThatIsToComeHoldsUpNoUntilIdle) {
  Write("c.json", R"({"schedules":{"later":{"cron":"0 0 29 2 *","handler":"noop"}}})");
  const ProcessResult run = RunFor(60, "--until-idle");
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST_F(FiringTest, AFileWithAScheduleThatCannotBeIsRefusedByItsKey) {
  const std::pair<const char*, const char*> faults[] = {
      {R"("cron":"0 0 30 2 *")", ":1: schedules.bad.cron: "},
      {R"("cron":"0 2 * * *","zone":"Mars/Base")", ":1: schedules.bad.zone: "},
      {R"("every":"1s","after":"1s")", ":1: schedules.bad: "}};
  for (const auto& [keys, told] : faults) {
    const std::string part = "{\"bad\":{\"handler\":\"noop\"," + std::string(keys) + "}}";
    Write("c.json", "{\"schedules\":" + part + "}");
    Write("part.json", part);
    for (const char* command : {"run --until-idle --config c.json", "config validate schedules @part.json"}) {
      const ProcessResult refused = Run(command);
      EXPECT_EQ(refused.exit_code, 2) << command << refused.output;
      EXPECT_THAT(refused.output, HasSubstr(told));
    }
  }
}

}  // namespace
}  // namespace millrace::engine::testing
