// What becomes of a command whose standard output can't be written, or whose reader goes away.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFull = "standard output can't be written: No space left on device";

TEST_F(CommandTest, WhatAFullDiskDoesNotTakeIsAnError) {
  for (const char* command : {"submit --handler noop --json", "task list", "task list --json",
                              "completion bash", "--help", "task list --help", "--version"}) {
    const ProcessResult full = Run(std::string(command) + " >/dev/full");
    EXPECT_EQ(full.exit_code, 1) << command;
    EXPECT_THAT(full.output, HasSubstr(kFull)) << command;
  }
  EXPECT_EQ(Run("task show 7 >/dev/full").exit_code, 1);
  EXPECT_EQ(Run("task list --state nonsense >/dev/full").exit_code, 2);
}

TEST_F(CommandTest, AWorkerWorksOnWithoutAnOutputAndSaysSoAtItsEnd) {
  Run("submit --handler noop --count 3");
  const ProcessResult run = Run("run --until-idle --json >/dev/full");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr(kFull));
  EXPECT_THAT(Run("task count --state succeeded").output, HasSubstr("3"));
}

// Each waits for its reader; RunProcess ends one that does not see that it has gone.
TEST_F(CommandTest, AWatchEndsWithItsReaderAndSaysNothing) {
  Run("submit --handler noop --in 1h");
  for (const char* pipe : {"| head -n 3", "--json | head -c 50"}) {
    const ProcessResult watch = Run("status --watch --sample 0s " + std::string(pipe));
    EXPECT_EQ(watch.exit_code, 0) << pipe << watch.output;
    EXPECT_THAT(watch.output, AllOf(Not(HasSubstr("can't be written")), Not(HasSubstr("Broken pipe"))));
  }
  Write("watch", "(" + Binary() + " status --watch --sample 0s; echo $? >code) | head -n 1; cat code\n");
  EXPECT_THAT(RunProcess("cd " + folder_ + " && sh ./watch").output, ::testing::EndsWith("\n1\n"));
}

}  // namespace
}  // namespace millrace::engine::testing
