#include "tests/integration/command/command_fixture.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CommandTest, SubmitsAndRunsOnAStoreThatItMakesItself) {
  EXPECT_THAT(Run("submit --handler noop --count 1500").output, HasSubstr("1,500 submitted"));
  const ProcessResult run = Run("run --until-idle");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1500 succeeded, 0 failed"));
  EXPECT_THAT(Run("task list --state succeeded --limit 2").output, HasSubstr("main/tasks/1"));
  EXPECT_EQ(Run("schema check").exit_code, 0);
}

TEST_F(CommandTest, TheSameFileAgainAddsNothing) {
  Write("f.csv", "id,name\n1,a\n2,b\n");
  EXPECT_THAT(Run("submit --handler noop --from f.csv --key-column id").output, HasSubstr("2 submitted"));
  const ProcessResult again = Run("submit --handler noop --from f.csv --key-column id");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("0 submitted, 2 there already"));
}

TEST_F(CommandTest, ABadRowIsReportedAndTheOthersGoInUnlessAllOrNothing) {
  Write("f.csv", "id,name\n1,a\n2\n3,c\n");
  const ProcessResult none = Run("submit --handler noop --from f.csv --key-column id --all-or-nothing");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr("nothing submitted"));
  const ProcessResult some = Run("submit --handler noop --from f.csv --key-column id");
  EXPECT_EQ(some.exit_code, 1);
  EXPECT_THAT(some.output, HasSubstr("f.csv:3: the row has 1 field where the header has 2"));
  EXPECT_THAT(some.output, HasSubstr("2 submitted, 0 there already, 1 bad row"));
}

TEST_F(CommandTest, HoldsReleasesAndCancels) {
  Run("submit --handler noop --key k");
  EXPECT_THAT(Run("task hold 1").output, HasSubstr("1 task held"));
  EXPECT_THAT(Run("task why --key k").output, HasSubstr("It is held"));
  EXPECT_THAT(Run("task release 1").output, HasSubstr("1 task released"));
  EXPECT_THAT(Run("task cancel 1").output, HasSubstr("1 task cancelled"));
  EXPECT_EQ(Run("task cancel 1").exit_code, 1);
}

TEST_F(CommandTest, ABulkChangeAsksAndWithoutATerminalRefuses) {
  Run("submit --handler noop --count 3");
  const ProcessResult refused = Run("task cancel --handler noop --all-matching </dev/null");
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.output, HasSubstr("3 tasks match"));
  EXPECT_THAT(Run("task cancel --handler noop --all-matching --yes").output, HasSubstr("3 tasks cancelled"));
}

}  // namespace
}  // namespace millrace::testing
