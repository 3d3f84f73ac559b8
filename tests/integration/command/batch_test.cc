// Batches, from the command that makes one to its callbacks.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kCallback = "\"{\\\"handler\\\":\\\"noop\\\",\\\"params\\\":{\\\"told\\\":1}}\"";

class BatchCommandTest : public CommandTest {
 protected:
  ProcessResult Submit(const std::string& more) { return Run("submit --handler noop --batch june " + more); }
  std::string Show(const std::string& name = "june") { return Run("batch show " + name + " --json").output; }
};

TEST_F(BatchCommandTest, ARunThatDrainsAClosedBatchAlsoRunsItsCallbacks) {
  const ProcessResult submitted =
      Submit(std::string("--count 30 --on-success ") + kCallback + " --on-end " + kCallback);
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"closed")"), HasSubstr(R"("tasks":30)"),
                            HasSubstr(R"("left":30)"), HasSubstr(R"("success_task":null)")));
  const ProcessResult run = Run("run --until-idle");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"ended")"), HasSubstr(R"("outcome":"succeeded")"),
                            HasSubstr(R"("succeeded":30)"), HasSubstr(R"("success_task":"main/tasks/31")"),
                            HasSubstr(R"("end_task":"main/tasks/32")")));
  EXPECT_THAT(Run("task show 31 --json").output,
              AllOf(HasSubstr(R"("state":"succeeded")"), HasSubstr(R"({"told":1})")));
  EXPECT_THAT(Run("task show 32 --json").output, HasSubstr(R"("state":"succeeded")"));
  EXPECT_EQ(Run("batch watch june").exit_code, 0);
}

TEST_F(BatchCommandTest, ABatchThatIsClosedIsRefusedWhateverIsAskedOfItAgain) {
  EXPECT_EQ(Submit("--count 2").exit_code, 0);
  const ProcessResult again = Run("batch close june");
  EXPECT_EQ(again.exit_code, 4) << again.output;
  EXPECT_THAT(again.output,
              AllOf(HasSubstr("is closed already, since"), HasSubstr("millrace batch watch june")));
  const ProcessResult more = Submit("");
  EXPECT_EQ(more.exit_code, 4) << more.output;
  EXPECT_THAT(more.output,
              AllOf(HasSubstr("is closed"), HasSubstr("nothing was added"), HasSubstr("--open")));
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Run("batch close june").output, HasSubstr("has ended, at"));
  EXPECT_EQ(Run("batch close june").exit_code, 4);
  EXPECT_THAT(Submit("").output, HasSubstr("has ended, at"));
  EXPECT_EQ(Run("batch cancel june --yes").exit_code, 4);
  EXPECT_EQ(Run("batch close july").exit_code, 1);
  EXPECT_THAT(Run("batch close july").output, HasSubstr("there is no batch 'july'"));
}

TEST_F(BatchCommandTest, ABatchThatIsClosedWhileRowsAreAddedTakesNoMoreAndSaysSo) {
  EXPECT_EQ(Run("submit --handler noop").exit_code, 0);
  // The first rows, the batch's end once they are in, and more rows.
  Write("rows.sh",
        "yes {} | head -n 4000\nfor i in $(seq 100); do " + Binary() +
            " batch show june --json 2>&1 | grep -q '\"tasks\":[1-9]' && break; sleep 0.1; done\n" +
            Binary() + " batch close june > /dev/null 2>&1\nyes {} | head -n 4000\n");
  const ProcessResult cut = RunProcess("cd " + folder_ + " && sh rows.sh | " + Binary() +
                                           " submit --handler noop --batch june --from - --format jsonl",
                                       60);
  EXPECT_EQ(cut.exit_code, 4) << cut.output;
  EXPECT_THAT(cut.output, AllOf(HasSubstr("no more is added"), HasSubstr("tasks were added before"),
                                Not(HasSubstr("stays open")), Not(HasSubstr("nothing was added"))));
}

TEST_F(BatchCommandTest, AnOpenBatchGrowsUntilItIsClosed) {
  EXPECT_EQ(Submit("--count 2 --open").exit_code, 0);
  EXPECT_EQ(Submit("--count 3").exit_code, 0);
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"open")"), HasSubstr(R"("tasks":5)")));
  EXPECT_THAT(Run("batch list").output, HasSubstr("grows until millrace batch close june"));
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"open")"), HasSubstr(R"("left":0)")));
  EXPECT_EQ(Run("batch close june").exit_code, 0);
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Show(), HasSubstr(R"("outcome":"succeeded")"));
}

TEST_F(BatchCommandTest, ATaskThatFailedKeepsABatchFromSuccessAndNotFromItsEnd) {
  Write("rows.jsonl", "{\"customer_id\":\"nobody\"}\n{\"customer_id\":\"no one\"}\n");
  const ProcessResult submitted =
      Run(std::string("submit --handler award_points --from rows.jsonl --batch june --on-success ") +
          kCallback + " --on-end " + kCallback);
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  Run("run --until-idle");
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("outcome":"failed")"), HasSubstr(R"("success_task":null)"),
                            HasSubstr(R"("end_task":"main/tasks/3")")));
  EXPECT_EQ(Run("batch watch june").exit_code, 1);
  EXPECT_THAT(Run("batch list --state failed").output, AllOf(HasSubstr("june"), Not(HasSubstr("stays"))));
  EXPECT_EQ(Run("task cancel 1").exit_code, 0);
  EXPECT_THAT(Run("batch list --state failed").output,
              HasSubstr("retried or cancelled after its end; its outcome stays"))
      << "one less has failed than its end says";
}

TEST_F(BatchCommandTest, ABatchOfWhichARowWasRefusedTakesTheMendedFile) {
  Write("rows.jsonl", "{\"id\":1}\n{\"id\"\n");
  const std::string submit =
      std::string("submit --handler noop --from rows.jsonl --key-column id --batch june --on-success ") +
      kCallback;
  EXPECT_EQ(Run(submit + " --all-or-nothing").exit_code, 1);
  const ProcessResult refused = Run(submit);
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("stays open"));
  EXPECT_EQ(Run(submit + " --all-or-nothing").exit_code, 1);
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"open")"), HasSubstr(R"("tasks":1)")));
  Write("rows.jsonl", "{\"id\":1}\n{\"id\":2}\n");
  const ProcessResult mended = Run(submit);
  EXPECT_EQ(mended.exit_code, 0) << mended.output;
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"closed")"), HasSubstr(R"("tasks":2)")));
}

// More rows than go in at once, and for longer than a handler's transaction may be open.
TEST_F(BatchCommandTest, AllRowsOfABatchGoInAtOnceHoweverManyAndHoweverSlow) {
  Write("rows.sh", "yes {} | head -n 4000; sleep 6; yes {} | head -n 4000\n");
  const std::string submit = " submit --handler noop --batch june --format jsonl --all-or-nothing --from - ";
  const ProcessResult submitted = RunProcess("cd " + folder_ + " && sh rows.sh | " + Binary() + submit, 60);
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"closed")"), HasSubstr(R"("tasks":8000)")));
}

// For longer than a writer waits for another.
TEST_F(BatchCommandTest, AnAnnouncementThatALockHoldsUpIsTriedAgain) {
  EXPECT_EQ(Run("schema apply").exit_code, 0);
  Write("lock.sql", ".timeout 5000\n.bail on\nBEGIN IMMEDIATE;\n.shell touch locked; sleep 7\nCOMMIT;\n");
  Write("rows.sh", "yes {} | head -n 4000; for i in $(seq 100); do " + Binary() +
                       " batch show june > /dev/null 2>&1 && break; sleep 0.1; done\n"
                       "sqlite3 millrace.db < lock.sql > /dev/null 2>&1 &\n"
                       "while [ ! -e locked ]; do sleep 0.02; done\necho {}\n");
  const std::string submit = " submit --handler noop --batch june --format jsonl --from - ";
  const ProcessResult submitted = RunProcess("cd " + folder_ + " && sh rows.sh | " + Binary() + submit, 60);
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("state":"closed")"), HasSubstr(R"("tasks":4001)")));
}

// The rows are in: whoever is told of an error alone submits them once more.
TEST_F(BatchCommandTest, ABatchThatCanNotBeClosedHasItsRowsAllTheSame) {
  EXPECT_EQ(Run("schema apply").exit_code, 0);
  Write("refuse.sql",
        "CREATE TRIGGER refuse BEFORE UPDATE ON millrace_batches WHEN NEW.state='closed' "
        "BEGIN SELECT RAISE(ABORT,'not now'); END;");
  ASSERT_EQ(RunProcess("cd " + folder_ + " && sqlite3 millrace.db < refuse.sql").exit_code, 0);
  const ProcessResult submitted = Submit("--count 3");
  EXPECT_NE(submitted.exit_code, 0);
  EXPECT_THAT(submitted.output, AllOf(HasSubstr("3 submitted"), HasSubstr("the rows are in"),
                                      HasSubstr("not now"), HasSubstr("millrace batch close june")));
}

// What a submit announced that was killed before it added that: nobody waits for it any more.
TEST_F(BatchCommandTest, ABatchThatHasEndedHasNothingLeft) {
  EXPECT_EQ(Submit("--count 2").exit_code, 0);
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  Write("killed.sql", "UPDATE millrace_batches SET added=added+3996");
  ASSERT_EQ(RunProcess("cd " + folder_ + " && sqlite3 millrace.db < killed.sql").exit_code, 0);
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("outcome":"succeeded")"), HasSubstr(R"("tasks":2)"),
                            HasSubstr(R"("left":0)")));
}

// Where its row stands in another shard than those that are looked at, it is not known what it is.
TEST_F(BatchCommandTest, ABatchWhoseHomeIsNotLookedAtIsNotCalledPlain) {
  Write("two.json", R"({"shards":{"east":{"url":"sqlite:east.db"},"west":{"url":"sqlite:west.db"}}})");
  const std::string two = " --config two.json";
  for (const char* shard : {"west", "east"}) {
    const ProcessResult submitted = Submit(std::string("--open --shard ") + shard + two);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  }
  EXPECT_EQ(Run("run --until-idle" + two).exit_code, 0);
  EXPECT_THAT(Run("batch list" + two).output, HasSubstr("grows until millrace batch close june"));
  const ProcessResult east = Run("batch list --shard east" + two);
  EXPECT_THAT(east.output, AllOf(HasSubstr("unknown"), HasSubstr("in a shard that was not looked at"),
                                 Not(HasSubstr("plain"))));
  EXPECT_THAT(Run("batch list --shard east --json" + two).output, HasSubstr(R"("state":"unknown")"));
}

TEST_F(BatchCommandTest, CancelEndsABatchWithoutSuccess) {
  EXPECT_EQ(Submit(std::string("--count 5 --in 1h --open --on-end ") + kCallback).exit_code, 0);
  EXPECT_EQ(Run("batch cancel june < /dev/null").exit_code, 4) << "nobody is there to be asked";
  const ProcessResult cancelled = Run("batch cancel june --yes --json");
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.output;
  EXPECT_THAT(cancelled.output, AllOf(HasSubstr(R"("cancelled":5)"), HasSubstr(R"("asked_to_stop":0)")));
  Write("audit.sql", "SELECT COUNT(*), MAX(detail) FROM millrace_audit WHERE action='cancel'");
  const ProcessResult audit = RunProcess("cd " + folder_ + " && sqlite3 millrace.db < audit.sql");
  EXPECT_THAT(audit.output,
              AllOf(StartsWith("1|5 tasks; were waiting (5); all of the batch"), HasSubstr("; ids 1-5")))
      << "one row for the step";
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Show(), AllOf(HasSubstr(R"("outcome":"failed")"), HasSubstr(R"("cancelled":5)"),
                            HasSubstr(R"("end_task":"main/tasks/6")")));
}

TEST_F(BatchCommandTest, ABatchWithoutATaskLeftSaysWhoseTurnItIs) {
  EXPECT_EQ(Submit("--in 1h").exit_code, 0);
  EXPECT_EQ(Run("task cancel 1").exit_code, 0);
  EXPECT_THAT(Run("batch list").output, HasSubstr("its end comes from the leader, or any worker"));
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Run("batch list").output, Not(HasSubstr("the leader")));
}

TEST_F(BatchCommandTest, ARunDoesNotWaitForABatchWhoseTasksHaveTheirTimeYet) {
  EXPECT_EQ(Submit(std::string("--in 1h --on-end ") + kCallback).exit_code, 0);
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Show(), HasSubstr(R"("state":"closed")"));
}

TEST_F(BatchCommandTest, WhereNothingWasAddedThereIsNoBatch) {
  EXPECT_EQ(Run("submit --handler noop --key k").exit_code, 0);
  const ProcessResult same = Submit("--key k");
  EXPECT_EQ(same.exit_code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("there is no batch 'june'"));
  EXPECT_EQ(Run("batch show june").exit_code, 1);
}

// Rows that name another batch are counted there: this one would end in success with nothing run.
TEST_F(BatchCommandTest, RowsOfAnotherBatchDoNotMakeThisOne) {
  Write("redo.jsonl", "{\"params\":{},\"batch\":\"may\"}\n{\"params\":{},\"batch\":\"may\"}\n");
  const std::string submit =
      std::string("submit --handler noop --from redo.jsonl --batch redo --on-success ") + kCallback;
  for (const char* how : {"", " --all-or-nothing"}) {
    const ProcessResult submitted = Run(submit + how);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
    EXPECT_THAT(submitted.output, AllOf(HasSubstr("2 submitted"), HasSubstr("there is no batch 'redo'")));
  }
  EXPECT_EQ(Run("batch show redo").exit_code, 1);
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Show("may"), HasSubstr(R"("succeeded":4)"));
}

TEST_F(BatchCommandTest, ABatchOfPlainSqlIsShownToo) {
  Run("submit --handler noop");
  Write("row.jsonl", "{\"params\":{},\"batch\":\"plain\"}\n");
  EXPECT_EQ(Run("submit --handler noop --from row.jsonl").exit_code, 0);
  EXPECT_THAT(Show("plain"), HasSubstr(R"("state":"plain")"));
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  EXPECT_THAT(Show("plain"), AllOf(HasSubstr(R"("state":"plain")"), HasSubstr(R"("succeeded":1)")));
  EXPECT_THAT(Run("batch list").output, AllOf(HasSubstr("plain"), HasSubstr("made by plain SQL")));
  EXPECT_EQ(Run("batch watch plain").exit_code, 0);
  const ProcessResult taken = Run("submit --handler noop --batch plain");
  EXPECT_EQ(taken.exit_code, 4) << taken.output;
  EXPECT_THAT(taken.output, AllOf(HasSubstr("has 1 ended tasks in shard main"), HasSubstr("another name")));
  const ProcessResult closed = Run("batch close plain");
  EXPECT_EQ(closed.exit_code, 4) << closed.output;
  EXPECT_THAT(closed.output, HasSubstr("made by plain SQL"));
}

TEST_F(BatchCommandTest, ParamsOfACallbackAreNestedAsDeeplyAsAConfigurationAtMost) {
  Run("submit --handler noop");  // makes the store
  const auto nested = [](std::size_t levels) {
    return R"(--on-end "{\"handler\":\"noop\",\"params\":{\"x\":)" + std::string(levels - 1, '[') +
           std::string(levels - 1, ']') + "}}\"";
  };
  const ProcessResult refused = Submit(nested(33));
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--on-end: 'params' is nested more than 32 levels deep"));
  EXPECT_EQ(Submit(nested(32)).exit_code, 0);
}

TEST_F(BatchCommandTest, CallbacksAreCheckedBeforeAnythingIsAdded) {
  Run("submit --handler noop");  // makes the store
  const std::pair<const char*, const char*> wrong[] = {
      {"--on-success nonsense", "--on-success: "},
      {"--on-end \"{\\\"handler\\\":\\\"noop\\\",\\\"parms\\\":1}\"", "--on-end: there is no member 'parms'"},
      {"--on-end \"{\\\"handler\\\":\\\"nop\\\"}\"", "noop"}};
  for (const auto& [flags, what] : wrong) {
    const ProcessResult refused = Submit(flags);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr(what));
  }
  EXPECT_EQ(Run(std::string("submit --handler noop --on-end ") + kCallback).exit_code, 2)
      << "without --batch";
  EXPECT_THAT(Run("submit --handler noop --open").output, HasSubstr("--open goes with --batch"));
  EXPECT_EQ(Run("batch show june").exit_code, 1);
  EXPECT_EQ(Submit(std::string("--open --on-end ") + kCallback).exit_code, 0);
  const ProcessResult other = Submit("--on-end \"{\\\"handler\\\":\\\"noop\\\"}\"");
  EXPECT_EQ(other.exit_code, 4) << other.output;
  EXPECT_THAT(other.output, HasSubstr("was made with another --on-end"));
}

TEST_F(BatchCommandTest, ASubmitThatWaitsClosesItsBatchFirst) {
  Write("script",
        "millrace=" + Binary() +
            "\n$millrace submit --handler noop --batch june --count 3 --wait --on-end "
            "'{\"handler\":\"noop\"}' > "
            "waited & pid=$!\nfor i in 1 2 3 4 5 6 7 8 9; do $millrace run --until-idle > /dev/null 2>&1; "
            "kill -0 $pid 2> /dev/null || break; sleep 0.3; done\nwait $pid; echo \"exit $?\"; cat waited\n");
  const ProcessResult script = RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./script", 60);
  EXPECT_THAT(script.output, AllOf(HasSubstr("exit 0"), HasSubstr("3 succeeded")));
  Run("run --until-idle");
  EXPECT_THAT(Show(), HasSubstr(R"("outcome":"succeeded")"));
}

}  // namespace
}  // namespace millrace::engine::testing
