// millrace status and task count on a SQLite file.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusTest : public CommandTest {
 protected:
  // `script` is for the shell; it begins beside a `run`, whose process is $pid.
  ProcessResult BesideARun(const std::string& script) const {
    Write("both",
          "m=" + Binary() + "; $m run >out 2>noted & pid=$!\n" +
              "until $m status --sample 0s 2>/dev/null | grep -q \"last sign\"; do sleep 0.02; done\n" +
              script);
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./both", 60);
  }
};

TEST_F(StatusTest, WithoutAWorkerWhatWaitsCannotRunAndItEndsWithOne) {
  Run("submit --handler noop --count 3");
  const ProcessResult before = Run("status");
  EXPECT_EQ(before.exit_code, 1) << before.output;
  EXPECT_THAT(before.output,
              AllOf(HasSubstr("no worker is registered"),
                    HasSubstr("! no worker is alive, and 3 tasks wait\n  start one: millrace run")));
  EXPECT_THAT(Run("status --json").output, HasSubstr(R"("can_run":false)"));
  Run("run --until-idle");
  const ProcessResult after = Run("status");
  EXPECT_EQ(after.exit_code, 0) << after.output;
  EXPECT_THAT(after.output, AllOf(HasSubstr("sqlite:millrace.db, 1 table"), HasSubstr("noop"),
                                  HasSubstr("nothing is wrong"), Not(HasSubstr("!"))));
}

TEST_F(StatusTest, AWorkerThatBeatsIsAliveAndOneThatWasKilledIsGone) {
  Run("submit --handler noop --in 1h");
  const ProcessResult result = BesideARun(
      "$m status; echo first $?\n"
      "kill -KILL $pid; wait $pid 2>/dev/null\n"
      "$m status; echo second $?\n");
  EXPECT_THAT(result.output, AllOf(HasSubstr("alive"), HasSubstr("first 0"), HasSubstr("has died"),
                                   HasSubstr("no worker is alive"), HasSubstr("second 1")));
}

TEST_F(StatusTest, WatchShowsItAgainUntilItIsInterruptedAndEndsWithNothingWrong) {
  Run("submit --handler noop --in 1h");
  Write("watch", Binary() +
                     " status --watch --sample 0s >shown 2>&1 & pid=$!\n"
                     "until [ $(grep -c handler shown) -ge 2 ]; do sleep 0.05; done; kill -INT $pid\n"
                     "wait $pid; echo ended $?\n");
  const ProcessResult result = RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./watch", 60);
  EXPECT_THAT(result.output, HasSubstr("ended 0"));
}

TEST_F(StatusTest, AHandlerThatDoesNotOpenIsToldWithItsOwnWordsWhereverOneAsks) {
  const std::string why =
      "the handler 'exec' can't be opened for tasks of type 'exec': 'program' is missing (see "
      "handlers.exec.options in the configuration)";
  const ProcessResult submitted = Run("submit --handler exec");
  EXPECT_EQ(submitted.exit_code, 0);
  EXPECT_THAT(submitted.output, HasSubstr(why));
  const ProcessResult beside = BesideARun(
      "until $m status --sample 0s | grep \"can't be opened\"; do sleep 0.1; done\n"
      "$m task why 1; $m task why 1 --json\n"
      "kill $pid; wait $pid; cat noted\n");
  EXPECT_THAT(beside.output, AllOf(HasSubstr("! nothing claims 1 task of exec"), HasSubstr(": " + why),
                                   HasSubstr("1 is waiting. It can't be run without a configuration: " + why),
                                   HasSubstr(R"("code":"cannot_open","why")")));
  EXPECT_THAT(
      Run("run --until-idle").output,
      AllOf(HasSubstr("tasks of exec are due and can't be run here: " + why), Not(HasSubstr("no plugin"))));
  Write("exec.json", R"({"handlers":{"exec":{"options":{"program":"/bin/true"}}}})");
  EXPECT_THAT(Run("submit --handler exec --config exec.json").output, Not(HasSubstr("opened")));
  EXPECT_THAT(Run("run --until-idle --config exec.json").output, HasSubstr("2 succeeded"));
}

TEST_F(StatusTest, FailuresAreToldByClassAndPausesWithWhoAndWhen) {
  Write("t.jsonl", "{\"params\":{}}\n{\"params\":{}}\n");
  Run("submit --handler award_points --from t.jsonl");
  Run("run --until-idle");
  Run("submit --handler noop --in 1h");
  Run("cluster pause handler:noop");
  const ProcessResult status = Run("status");
  EXPECT_EQ(status.exit_code, 1) << status.output;
  EXPECT_THAT(status.output, AllOf(HasSubstr("failures by class"), HasSubstr("award_points"),
                                   HasSubstr("! 2 tasks have failed and wait for a person"),
                                   HasSubstr("! paused: handler:noop, by "),
                                   HasSubstr("millrace cluster resume handler:noop")));
}

TEST_F(StatusTest, AStoreThatIsNotThereIsNoEmptyOne) {
  const ProcessResult missing = Run("status");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.output, HasSubstr("does not exist: make it with millrace schema apply"));
  EXPECT_EQ(Run("status --sample 2m").exit_code, 2);
}

TEST_F(StatusTest, TasksAreCountedByTheFiltersOfAList) {
  Run("submit --handler noop --count 3");
  Run("run --until-idle");
  Run("submit --handler award_points");
  Run("run --until-idle");
  Run("submit --handler noop --count 2 --in 1h --batch later");
  EXPECT_THAT(Run("task count").output, HasSubstr("6 tasks: 2 waiting, 1 failed, 3 succeeded"));
  EXPECT_THAT(Run("task count --state succeeded").output, HasSubstr("3 tasks\n"));
  EXPECT_THAT(Run("task count --state failed").output, HasSubstr("1 task\n"));
  EXPECT_THAT(Run("task count --handler noop").output, HasSubstr("5 tasks: 2 waiting, 3 succeeded"));
  EXPECT_THAT(Run("task count --batch later --state waiting").output, HasSubstr("2 tasks\n"));
  EXPECT_THAT(Run("task count --error-class nonsense").output, HasSubstr("0 tasks"));
  EXPECT_THAT(Run("task count --json --state waiting").output, HasSubstr(R"("count":2,"more":false)"));
  const std::string none = Run("task count --json --error-class nonsense").output;
  for (const char* state : {"waiting", "running", "held", "failed", "succeeded", "cancelled"}) {
    EXPECT_THAT(none, HasSubstr(R"({"state":")" + std::string(state) + R"(","count":0,"more":false})"));
  }
  EXPECT_EQ(Run("task count --state wating").exit_code, 2);
}

TEST_F(StatusTest, TenThousandTasksOrMoreAreCountedNoFurther) {
  Run("submit --handler noop --count 10050");
  EXPECT_THAT(Run("task count").output, HasSubstr("10,000 or more tasks"));
  EXPECT_THAT(Run("status").output, HasSubstr("10,000+"));
  Run("run --until-idle");
  EXPECT_THAT(Run("task count --state succeeded --handler noop").output, HasSubstr("10,000 or more tasks\n"));
  Run("submit --handler noop --in 1h");
  EXPECT_THAT(Run("task count").output,
              HasSubstr("10,000 or more tasks: 1 waiting, 10,000 or more succeeded\n"));
}

}  // namespace
}  // namespace millrace::engine::testing
