// What people hand in, as tasks of a store.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class SubmitCommandTest : public CommandTest {
 protected:
  // A script in the test's folder, in which $millrace is the program.
  ProcessResult Script(const std::string& text) const {
    Write("script", "millrace=" + Binary() + "\n" + text);
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./script", 60);
  }
};

TEST_F(SubmitCommandTest, CsvComesFromStandardInputWithTextsAsTextsAndKeysOfTheirOwn) {
  const ProcessResult result = Script(
      "printf \"id,zip\\n1,01234\\n2,12345\\n\" | $millrace submit --handler noop --from - --format csv "
      "--key-column id --key-prefix may- --text-columns zip\n");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("2 submitted"));
  EXPECT_THAT(Run("task show --key may-1 --json").output, HasSubstr(R"("zip":"01234")"));
  EXPECT_THAT(Run("task show --key may-2 --json").output, HasSubstr(R"("zip":"12345")"));
}

TEST_F(SubmitCommandTest, RowsWithoutAKeyAloneAreSaidToBeAddedAgain) {
  Write("keyed.jsonl", "{\"params\":{},\"key\":\"a\"}\n");
  Write("mixed.jsonl", "{\"params\":{},\"key\":\"a\"}\n{\"id\":1}\n");
  EXPECT_THAT(Run("submit --handler noop --from keyed.jsonl").output, Not(HasSubstr("added again")));
  EXPECT_THAT(Run("submit --handler noop --from mixed.jsonl").output, HasSubstr("added again"));
}

// The second file's tasks would be lost without a word.
TEST_F(SubmitCommandTest, TwoFilesWithTheSameKeysAreToldApart) {
  Write("may.csv", "id,amount\n1,5\n2,6\n");
  Write("june.csv", "id,amount\n1,7\n2,6\n3,8\n");
  EXPECT_EQ(Run("submit --handler noop --from may.csv --key-column id").exit_code, 0);
  EXPECT_EQ(Run("submit --handler noop --from may.csv --key-column id").exit_code, 0);
  const ProcessResult lost = Run("submit --handler noop --from june.csv --key-column id");
  EXPECT_EQ(lost.exit_code, 1) << lost.output;
  EXPECT_THAT(
      lost.output,
      AllOf(HasSubstr("june.csv:2: the key '1' is that of main/tasks/1, which has other params"),
            HasSubstr("--key-prefix"),
            HasSubstr("1 submitted, 1 there already, 1 with the key of a task that has other params")));
  const std::string json = Run("submit --handler noop --from june.csv --key-column id --json").output;
  EXPECT_THAT(json, HasSubstr(R"("other_params":[{"line":2,"key":"1","task":"main/tasks/1"}])"));
  const ProcessResult none = Run("submit --handler noop --from june.csv --key-column id --all-or-nothing");
  EXPECT_EQ(none.exit_code, 1) << none.output;
  EXPECT_THAT(none.output, HasSubstr("nothing submitted: 1 with the key of a task that has other params"));
  const ProcessResult apart = Run("submit --handler noop --from june.csv --key-column id --key-prefix june-");
  EXPECT_EQ(apart.exit_code, 0) << apart.output;
  EXPECT_THAT(apart.output, HasSubstr("3 submitted, 0 there already"));
}

// By a flag, a line of JSON, a column of a file and of a query; two tasks do not expire.
TEST_F(SubmitCommandTest, WhatHasExpiredIsSkippedHoweverItWasHandedIn) {
  const ProcessResult result = Script(R"(
soon=$(date -u -d '+5 seconds' +%Y-%m-%dT%H:%M:%SZ)
$millrace submit --handler noop --expires-in 1s
printf '{"params":{},"expires_at":"%s"}\n{"params":{},"expires_in":"1s"}\n{}\n' $soon |
  $millrace submit --handler noop --from -
printf 'n,until\n1,%s\n2,\n' $soon |
  $millrace submit --handler noop --from - --format csv --expires-column until
$millrace submit --handler noop --from-query "SELECT 1 AS id, '$soon' AS until" --expires-column until
while [ $(date -u +%Y-%m-%dT%H:%M:%SZ) \< $soon ]; do sleep 0.1; done
$millrace run --until-idle
)");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("2 succeeded, 0 failed, 5 cancelled or skipped"));
  EXPECT_THAT(Run("task list --state cancelled").output, HasSubstr("expired at "));
  const ProcessResult bad = Script(
      "printf 'n,until\n1,tomorrow\n' | $millrace submit --handler noop --from - --format csv "
      "--expires-column until\n");
  EXPECT_EQ(bad.exit_code, 1) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("the expiry column 'until'"));
}

TEST_F(SubmitCommandTest, AKeyThatIsAnotherTasksIsNoDuplicate) {
  Run("submit --handler noop --key k --params \"{\\\"a\\\":1}\"");
  EXPECT_EQ(Run("submit --handler noop --key k --params \"{\\\"a\\\": 1}\"").exit_code, 0);
  const ProcessResult other = Run("submit --handler noop --key k --params \"{\\\"a\\\":2}\"");
  EXPECT_EQ(other.exit_code, 1) << other.output;
  EXPECT_THAT(other.output, HasSubstr("the key 'k' is that of main/tasks/1, which has other params"));
}

TEST_F(SubmitCommandTest, ASignalSaysHowManyWentIn) {
  const ProcessResult result = Script(
      "$millrace submit --handler noop --count 1000000 & pid=$!\n"
      "until $millrace task list --limit 1 2>/dev/null | grep -q main/tasks; do sleep 0.05; done\n"
      "kill -INT $pid; wait $pid; exit $?\n");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr(" of 1,000,000 submitted"));
  EXPECT_THAT(result.output, HasSubstr("stopped: "));
}

// It was killed in the middle: the same command again does the rest.
TEST_F(SubmitCommandTest, AQueryThatWasKilledIsGoneOnWithByTheSameCommand) {
  const std::string query =
      "\"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i FROM n\"";
  const std::string submit = "submit --handler noop --key-column i --from-query " + query;
  const ProcessResult result = Script(
      "$millrace " + submit +
      " & pid=$!\nuntil $millrace task list --limit 1 2>/dev/null | grep -q main/tasks; do sleep 0.02; done\n"
      "kill -KILL $pid; wait $pid; $millrace " +
      submit + "\n");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(" submitted, "));
  EXPECT_THAT(result.output, ::testing::Not(HasSubstr(" 0 there already")));
  const ProcessResult again = Run(submit);
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("0 submitted, 60,000 there already"));
}

TEST_F(SubmitCommandTest, ASignalEndsAQueryBetweenTwoBatches) {
  const ProcessResult result = Script(
      "$millrace submit --handler noop --key-column i --from-query \"WITH RECURSIVE n(i) AS (SELECT 1 UNION "
      "ALL "
      "SELECT i + 1 FROM n WHERE i < 300000) SELECT i FROM n\" & pid=$!\n"
      "until $millrace task list --limit 1 2>/dev/null | grep -q main/tasks; do sleep 0.02; done\n"
      "kill -INT $pid; wait $pid; exit $?\n");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("stopped: "), HasSubstr("the same query may be submitted again")));
}

TEST_F(SubmitCommandTest, RowsOfAQueryWithoutAKeyAreToldAndTheOthersGoIn) {
  const ProcessResult result =
      Run("submit --handler noop --key-column id --from-query \"SELECT 1 AS id UNION ALL SELECT NULL UNION "
          "ALL SELECT "
          "2\"");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("row 1: the key column 'id' is empty in this row"),
                                   HasSubstr("2 submitted, 0 there already, 1 bad row")));
}

TEST_F(SubmitCommandTest, ASignalEndsTheWaitForInput) {
  const ProcessResult result = Script(
      "mkfifo in; { echo {}; sleep 60; } >in & writer=$!\n"
      "$millrace submit --handler noop --from - --json <in 2>noted & pid=$!\n"
      "until [ -e millrace.db ]; do sleep 0.05; done; sleep 0.3; kill -INT $pid; wait $pid; code=$?\n"
      "kill $writer; exit $code\n");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("\"stopped_after_line\":0"));
}

TEST_F(SubmitCommandTest, WhatIsLargeGoesInWithoutAQuestionWhereThatIsWanted) {
  const ProcessResult asked = Run("submit --handler noop --count 1000001 --json </dev/null");
  EXPECT_EQ(asked.exit_code, 4) << asked.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/millrace.db")) << "asked before a store is made";
}

}  // namespace
}  // namespace millrace::engine::testing
