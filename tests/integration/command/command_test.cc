#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandTest, SubmitsAndRunsOnAStoreThatItMakesItself) {
  EXPECT_THAT(Run("submit --handler noop --count 1500").output, HasSubstr("1,500 submitted"));
  const ProcessResult run = Run("run --until-idle");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1500 succeeded, 0 failed"));
  EXPECT_THAT(Run("task list --state succeeded --limit 2").output, HasSubstr("main/tasks/1"));
  EXPECT_EQ(Run("schema check").exit_code, 0);
}

TEST_F(CommandTest, AHandlerIsRunByWhatItsCodeBrings) {
  const std::string plugins =
      " --plugins " + std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/plugins";
  EXPECT_THAT(Run("handler list" + plugins).output,
              HasSubstr("timeout 5s, retry after 1s 2m, retry by NextRetry, 9 failures, concurrency 2"));
  EXPECT_THAT(Run("handler list --json" + plugins).output,
              HasSubstr(R"("defaults":{"concurrency":2,"timeout":"5s",)"));
  Run("submit --handler decide" + plugins);
  EXPECT_THAT(Run("run --until-idle" + plugins).output, HasSubstr("0 succeeded, 1 failed"));
  EXPECT_THAT(Run("task why 1" + plugins).output, HasSubstr("2 failures count towards the limit of 9"));
}

class WaitTest : public CommandTest {
 protected:
  // A process of its own runs the tasks meanwhile.
  ProcessResult WhileItRuns(const std::string& submit, const std::string& run = " run") {
    Write("both", Binary() + run + " >out 2>noted & pid=$!\n" + Binary() + " " + submit +
                      "; code=$?\nkill -TERM $pid; wait $pid; exit $code\n");
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./both", 60);
  }
};

TEST_F(WaitTest, WaitEndsAsItsTasksDo) {
  Run("submit --handler noop --in 1h");
  const ProcessResult good = WhileItRuns("submit --handler noop --count 1200 --wait");
  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("1,200 submitted"));
  EXPECT_THAT(good.output, HasSubstr("1,200 succeeded, 0 failed"));
  Write("t.jsonl", "{\"params\":{},\"key\":\"a\"}\n{\"params\":{},\"key\":\"b\"}\n");
  const ProcessResult bad = WhileItRuns("submit --handler award_points --from t.jsonl --wait");
  EXPECT_EQ(bad.exit_code, 1) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("0 succeeded, 2 failed"));
  EXPECT_THAT(bad.output, HasSubstr("main/tasks/1203  failed"));
  const ProcessResult again =
      WhileItRuns("submit --handler award_points --from t.jsonl --all-or-nothing --wait --json");
  EXPECT_EQ(again.exit_code, 1) << again.output;
  EXPECT_THAT(again.output, HasSubstr("\"submitted\":0,\"duplicates\":2"));
  EXPECT_THAT(again.output,
              HasSubstr("\"outcomes\":{\"succeeded\":0,\"failed\":2,\"cancelled\":0,\"gone\":0,\"open\":0}"));
  EXPECT_THAT(again.output, HasSubstr("{\"name\":\"main/tasks/1202\",\"state\":\"failed\",\"why\":"));
}

TEST_F(WaitTest, OfATypeThatKeepsNothingOnlyWhatHasAKeyLeavesARow) {
  Write("keep.json", R"({"handlers":{"noop":{"keep":"0s"}}})");
  Run("submit --handler noop --count 3");
  Run("submit --handler noop --key a");
  EXPECT_THAT(Run("run --until-idle --config keep.json").output, HasSubstr("\n4 succeeded, 0 failed\n"));
  const ProcessResult gone = Run("task show 3");
  EXPECT_EQ(gone.exit_code, 1) << gone.output;
  EXPECT_THAT(gone.output, HasSubstr("there is no task"));
  EXPECT_THAT(Run("task show 4 --json").output, HasSubstr(R"("state":"succeeded")"));
  EXPECT_THAT(Run("submit --handler noop --key a").output, HasSubstr("there already"));
  const ProcessResult waited = WhileItRuns("submit --handler noop --wait", " run --config keep.json");
  EXPECT_EQ(waited.exit_code, 1) << waited.output;
  EXPECT_THAT(waited.output, HasSubstr("nothing is kept of it: see its type's `keep`"));
}

TEST_F(CommandTest, WaitSaysThatNobodyRunsTheTaskAndASignalLeavesIt) {
  Run("submit --handler noop");
  Write("wait", Binary() +
                    " submit --handler noop --wait 2>noted & pid=$!\n"
                    "until grep -q \"No worker is running\" noted; do sleep 0.02; done; kill -INT $pid\n"
                    "wait $pid; code=$?; cat noted; exit $code\n");
  const ProcessResult result = RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./wait", 60);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("0 succeeded, 0 failed, 1 not ended yet"));
  EXPECT_THAT(result.output, HasSubstr("1 task stays as it is: millrace task why main/tasks/2"));
  EXPECT_THAT(Run("task list --state waiting").output, HasSubstr("main/tasks/2"));
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
  EXPECT_THAT(Run("task list").output, HasSubstr("no task matches"));
  const ProcessResult some = Run("submit --handler noop --from f.csv --key-column id");
  EXPECT_EQ(some.exit_code, 1);
  EXPECT_THAT(some.output, HasSubstr("f.csv:3: the row has 1 field where the header has 2"));
  EXPECT_THAT(some.output, HasSubstr("2 submitted, 0 there already, 1 bad row"));
}

TEST_F(CommandTest, AShardThatIsAwayHidesNoOther) {
  Write("two.json",
        R"({"shards": {"east": {"url": "mysql://u@127.0.0.1:1/d"}, "main": {"url": "sqlite:m.db"}}})");
  EXPECT_EQ(Run("submit --handler noop --key k --config two.json --shard main").exit_code, 0);
  const ProcessResult list = Run("task list --config two.json");
  EXPECT_EQ(list.exit_code, 3) << list.output;
  EXPECT_THAT(list.output, HasSubstr("main/tasks/1"));
  EXPECT_THAT(list.output, HasSubstr("the tasks of shard east are not listed"));
  EXPECT_THAT(Run("task list --config two.json --json").output, HasSubstr("\"away\":{\"east\":"));
  EXPECT_EQ(Run("task show main/tasks/1 --config two.json").exit_code, 0);
  EXPECT_EQ(Run("task show --key k --config two.json").exit_code, 0);
  EXPECT_EQ(Run("task show --key none --config two.json").exit_code, 3);
  EXPECT_THAT(Run("task show 1 --config two.json").output, HasSubstr("there are several shards"));
  EXPECT_EQ(Run("task cancel --handler noop --all-matching --yes --config two.json").exit_code, 3);
  EXPECT_THAT(Run("task cancel main/tasks/1 --config two.json").output, HasSubstr("1 task cancelled"));
}

TEST_F(CommandTest, AKeyOfSeveralShardsIsRefusedWithItsTasks) {
  Write("two.json", R"({"shards": {"east": {"url": "sqlite:e.db"}, "west": {"url": "sqlite:w.db"}}})");
  for (const std::string shard : {"east", "west"})
    EXPECT_EQ(Run("submit --handler noop --key k --config two.json --shard " + shard).exit_code, 0);
  const ProcessResult both = Run("task cancel --key k --config two.json");
  EXPECT_EQ(both.exit_code, 2) << both.output;
  EXPECT_THAT(both.output, HasSubstr("two are east/tasks/1 and west/tasks/1"));
  EXPECT_THAT(Run("task cancel --key k --shard west --config two.json").output,
              HasSubstr("1 task cancelled"));
}

TEST_F(CommandTest, ATypeWhoseHandlerNoPluginHasIsAnErrorOfTheFile) {
  Write("uses.json", R"({"handlers":{"call":{"uses":"noo"},"other":{"uses":"nobody"}}})");
  const ProcessResult run = Run("run --until-idle --config uses.json");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(
      run.output,
      AllOf(
          HasSubstr(
              "uses.json:1: handlers.call.uses: no plugin here has a handler 'noo' (did you mean 'noop'?)"),
          HasSubstr("uses.json:1: handlers.other.uses: no plugin here has a handler 'nobody'; there are ")));
}

TEST_F(CommandTest, ATaskThatFailsIsNoFailureOfRun) {
  Run("submit --handler award_points --params \"{\\\"x\\\":1}\"");
  const ProcessResult run = Run("run --until-idle --json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("\"this_run\":{\"claimed\":1,\"succeeded\":0,\"failed\":1,"));
}

// C2 9B begins a command of the terminal, E2 80 AE writes from right to left.
TEST_F(CommandTest, NothingOfAKeyOrOfAProgramsOutputSteersTheTerminal) {
  Write("evil.json", R"({"handlers":{"exec":{"options":{"program":"/bin/sh",
      "args":["-c","printf 'lines\\nof \\302\\2332J \\342\\200\\256 \\377' >&2; exit 3"]}}}})");
  Write("t.jsonl",
        "{\"params\":{},\"key\":\"k\xC2\x9B"
        "2J\xE2\x80\xAE\\\\\"}");
  Run("submit --handler exec --from t.jsonl");
  std::string all = Run("run --until-idle --config evil.json --verbose").output;
  for (const char* command :
       {"task list", "task show 1", "task why 1", "task list --json", "task show 1 --json"}) {
    const ProcessResult result = Run(command);
    EXPECT_EQ(result.exit_code, 0) << command << result.output;
    all += result.output;
  }
  for (const char* unsafe : {"\xC2\x9B", "\xE2\x80\xAE", "\xFF", "\x1b"})
    EXPECT_EQ(all.find(unsafe), all.npos);
  EXPECT_THAT(Run("task list").output, HasSubstr(R"(k\u{9b}2J\u{202e}\\)"));
  EXPECT_THAT(Run("task list --json").output, HasSubstr(R"("key":"k\u009b2J\u202e\\")"));
  const std::string shown = Run("task show 1").output;
  EXPECT_THAT(shown, AllOf(HasSubstr("lines\n"), HasSubstr(R"(of \u{9b}2J \u{202e} \\xff)")));
}

TEST_F(CommandTest, FailedTasksAreFoundByTimeAndClassTheNewestFirstAndShownTogether) {
  Run("submit --handler award_points --params \"{\\\"x\\\":1}\" --count 3");
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  Run("task retry 1");
  EXPECT_EQ(Run("run --until-idle").exit_code, 0);
  const std::string list = Run("task list --state failed --since 1h --class bad_params").output;
  EXPECT_LT(list.find("main/tasks/1 "), list.find("main/tasks/3 ")) << list;
  EXPECT_LT(list.find("main/tasks/3 "), list.find("main/tasks/2 ")) << list;
  EXPECT_THAT(Run("task list --since 2099-01-01T00:00:00Z").output, HasSubstr("no task matches"));
  EXPECT_THAT(Run("task list --class timeout").output, HasSubstr("no task matches"));
  const ProcessResult both = Run("task show 2 17 3");
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.output, AllOf(HasSubstr("main/tasks/2\n"), HasSubstr("main/tasks/3\n"),
                                 HasSubstr("there is no task main/tasks/17")));
}

TEST_F(CommandTest, WithLogJsonEachLineOnStandardErrorIsAnObject) {
  Run("submit --handler noop --count 3");
  const std::string log = Run("run --until-idle --log json 2>&1 >/dev/null").output;
  std::istringstream lines(log);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    for (const char* key : {"time", "level", "message"}) EXPECT_TRUE(json.contains(key)) << line;
  }
  EXPECT_GE(count, 3U) << log;
  EXPECT_THAT(log, HasSubstr(R"("level":"info","message":"this run: 3 tasks)"));
}

TEST_F(CommandTest, WhatASchemaHasStaysWhereItIsAppliedAgain) {
  EXPECT_THAT(Run("schema apply --tables 3").output, HasSubstr("3 task tables of 64 slices ready"));
  EXPECT_EQ(Run("schema resize --table tasks_001 --slices 96").exit_code, 0);
  for (int i = 0; i < 2; ++i) {
    const ProcessResult again = Run("schema apply");
    EXPECT_EQ(again.exit_code, 0) << again.output;
    EXPECT_THAT(again.output, HasSubstr("3 task tables of 64 to 96 slices ready"));
  }
  EXPECT_THAT(Run("status --sample 0s --json").output, HasSubstr(R"("tables":3)")) << "none was added";
  const ProcessResult given = Run("schema apply --slices 64");
  EXPECT_EQ(given.exit_code, 4) << given.output;
  EXPECT_THAT(given.output, AllOf(HasSubstr("main/tasks_001 has 96 slices, not 64"), HasSubstr("resize")));
  EXPECT_EQ(Run("schema resize --table tasks_000 --slices 32").exit_code, 0);
  EXPECT_THAT(Run("schema apply --tables 4").output, HasSubstr("4 task tables of 32 to 96 slices ready"));
  EXPECT_THAT(Run("schema resize --table tasks_003 --slices 16").output, HasSubstr("tasks_003: 32 → 16"))
      << "a new one is as the first is";
}

TEST_F(CommandTest, ATriedHandlerIsNotSaidToBeRolledBackWhereItSentNoSql) {
  Run("schema apply");
  const ProcessResult tried = Run("handler run noop --store sqlite:millrace.db");
  EXPECT_EQ(tried.exit_code, 0) << tried.output;
  EXPECT_THAT(tried.output, Not(HasSubstr("rolled back")));
}

TEST_F(CommandTest, AHandlerIsTriedInOneShardWhateverBecameOfTheOthers) {
  Write("two.json", R"({"shards":{"a":{"url":"sqlite:a.db"},"b":{"url":"sqlite:b.db"}}})");
  Run("schema apply --store sqlite:b.db");
  const ProcessResult tried = Run("handler run noop --config two.json --shard b");
  EXPECT_EQ(tried.exit_code, 0) << tried.output;
  EXPECT_THAT(Run("handler run noop --config two.json").output, HasSubstr("say which with --shard"));
  EXPECT_EQ(Run("handler run noop --config two.json --shard a").exit_code, 2) << "it is not there";
}

TEST_F(CommandTest, AProgramsEndIsKnownWhereSigchldWasIgnoredBefore) {
  Write("config.json", R"({"handlers":{"exec":{"options":{"program":"/bin/false"}}}})");
  const ProcessResult tried = RunProcess("cd " + folder_ + "; trap '' CHLD; HOME=" + folder_ + " " +
                                         Binary() + " handler run exec --config config.json");
  EXPECT_THAT(tried.output, HasSubstr("[exit_1]"));
}

TEST_F(CommandTest, ATriedHandlerThatSubmitsIsSaidToBeRolledBackUnlessItIsCommitted) {
  Run("schema apply");
  const std::string submit = "handler run submit --store sqlite:millrace.db --plugins " +
                             std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/plugins";
  EXPECT_THAT(Run(submit).output, HasSubstr("what it submits was rolled back; --commit keeps it"));
  EXPECT_THAT(Run(submit + " --json").output, HasSubstr(R"("submitted":[{"handler":"noop","params":"{}")"));
  EXPECT_THAT(Run(submit + " --commit").output, HasSubstr("what it submits was committed"));
}

// Its author has to see that before a worker does.
TEST_F(CommandTest, ATriedHandlerWhoseTransactionFailedIsNotDoneWhateverItSays) {
  Run("schema apply");
  const std::string swallow =
      "handler run swallow --store sqlite:millrace.db "
      "--params \"{\\\"sql\\\":[\\\"INSERT INTO nowhere VALUES (1)\\\"]}\" "
      "--plugins " +
      std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/tests/plugins";
  for (const char* commit : {"", " --commit"}) {
    const ProcessResult tried = Run(swallow + commit);
    EXPECT_EQ(tried.exit_code, 1) << tried.output;
    EXPECT_THAT(tried.output, AllOf(HasSubstr("a worker does not take it as done: its transaction failed"),
                                    Not(HasSubstr("--commit keeps it"))));
  }
  EXPECT_THAT(Run(swallow + " --json").output, HasSubstr(R"("refused":"its transaction failed)"));
}

TEST_F(CommandTest, ABrokenPluginIsNamedAndTheOthersWork) {
  const std::string built = std::string(std::getenv("MILLRACE_BINARY_DIR"));
  std::filesystem::create_directory(folder_ + "/plugins");
  std::filesystem::copy(built + "/plugins/noop.so", folder_ + "/plugins/noop.so");
  Write("plugins/award_points.so", "#!/bin/sh\n");
  Run("submit --handler noop --plugins plugins");
  for (const char* json : {"", " --json"}) {
    const ProcessResult list = Run("handler list --plugins plugins" + std::string(json));
    EXPECT_EQ(list.exit_code, 1) << list.output;
    EXPECT_THAT(list.output,
                AllOf(HasSubstr("noop"), HasSubstr("plugins/award_points.so' is not a shared library")));
  }
  const ProcessResult run = Run("run --until-idle --plugins plugins");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("award_points.so"), HasSubstr("1 succeeded, 0 failed")));
  const ProcessResult asked =
      Run("worker --until-idle --store sqlite:millrace.db --plugins plugins --handlers award_points");
  EXPECT_EQ(asked.exit_code, 2) << asked.output;
  EXPECT_THAT(asked.output, HasSubstr("; not loaded: the plugin '"));
  std::filesystem::remove(folder_ + "/plugins/noop.so");
  EXPECT_EQ(Run("run --until-idle --plugins plugins").exit_code, 2);
}

TEST_F(CommandTest, HoldsReleasesAndCancels) {
  Run("submit --handler noop --key k");
  EXPECT_THAT(Run("task hold 1").output, HasSubstr("1 task held"));
  EXPECT_THAT(Run("task why --key k").output, HasSubstr("It is held"));
  EXPECT_THAT(Run("task release 1").output, HasSubstr("1 task released"));
  EXPECT_THAT(Run("task cancel 1").output, HasSubstr("1 task cancelled"));
  EXPECT_EQ(Run("task cancel 1").exit_code, 1);
}

// Somebody has the row while the command looks at it, and commits before its turn comes.
TEST_F(CommandTest, AnEditThatAClaimForestallsSaysSo) {
  ASSERT_EQ(Run("submit --store sqlite:a.db --handler noop").exit_code, 0);
  Write("claim.sql",
        "BEGIN IMMEDIATE;\nUPDATE tasks SET state=2,claimed_by=7,attempt=1 WHERE id=1;\n"
        ".shell touch claimed; sleep 0.7\nCOMMIT;\n");
  Write("claim.sh",
        "rm -f claimed; sqlite3 a.db \"UPDATE tasks SET state=0,claimed_by=0\"\n"
        "sqlite3 a.db < claim.sql > /dev/null 2>&1 &\n"
        "while [ ! -e claimed ]; do sleep 0.02; done\n");
  for (const std::string edit : {"--priority 1", R"(--params "{\"a\":1}")", "--in 1h"}) {
    const ProcessResult claimed = RunProcess("cd " + folder_ + " && sh claim.sh");
    ASSERT_EQ(claimed.exit_code, 0) << claimed.output;
    const ProcessResult edited = Run("task edit 1 --store sqlite:a.db " + edit);
    EXPECT_EQ(edited.exit_code, 1) << edited.output;
    EXPECT_THAT(edited.output, AllOf(HasSubstr("0 tasks edited"), HasSubstr("main/tasks/1 is running")));
  }
}

TEST_F(CommandTest, ABulkEditSaysHowManyItLeftAlone) {
  Run("submit --handler noop --count 2");
  Run("submit --handler noop --expires-in 1h");
  const ProcessResult edited = Run("task edit --handler noop --all-matching --yes --in 2h");
  EXPECT_EQ(edited.exit_code, 0) << edited.output;
  EXPECT_THAT(edited.output, HasSubstr("2 tasks edited; 1 left alone: "));
  EXPECT_THAT(Run("task edit --handler noop --all-matching --yes --in 30m").output,
              AllOf(HasSubstr("3 tasks edited"), Not(HasSubstr("left alone"))));
}

TEST_F(CommandTest, ABulkChangeAsksAndWithoutATerminalRefuses) {
  Run("submit --handler noop --count 3");
  const ProcessResult refused = Run("task cancel --handler noop --all-matching </dev/null");
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.output, HasSubstr("3 tasks match"));
  EXPECT_THAT(Run("task cancel --handler noop --all-matching --yes").output, HasSubstr("3 tasks cancelled"));
}

TEST_F(CommandTest, AQueryReadsAndIsBounded) {
  Run("submit --handler noop --count 3");
  EXPECT_THAT(
      Run("submit --handler noop --key-column id --from-query \"SELECT id, handler FROM tasks\"").output,
      HasSubstr("3 submitted, 0 there already"));
  const ProcessResult changes = Run("submit --handler noop --from-query \"DELETE FROM tasks\"");
  EXPECT_EQ(changes.exit_code, 2);
  EXPECT_THAT(changes.output, HasSubstr("must begin with SELECT, WITH or VALUES"));
  const ProcessResult many =
      Run("submit --handler noop --from-query \"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
          "n WHERE i "
          "<= 100000) SELECT i FROM n\"");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.output, HasSubstr("more than 100,000 rows, and nothing was added: give --key-column"));
}

class StopTest : public CommandTest {
 protected:
  // Runs a task that takes ten minutes, and this script of the shell once it has begun, with the process as
  // $pid and its remarks in `noted`. The waits end with the limit that RunProcess sets.
  ProcessResult RunAndDo(const std::string& script) {
    Write("config.json",
          R"({"engine": {"stop_timeout": "10m"}, "handlers": {"nap": {"uses": "exec", "timeout": "10m",
        "options": {"program": ")" +
              folder_ + R"(/nap"}}}})");
    Write("nap", "#!/bin/sh\ntouch " + folder_ + "/started\nexec sleep 600\n");
    std::filesystem::permissions(folder_ + "/nap", std::filesystem::perms::owner_all);
    Run("submit --handler nap --config config.json");
    Write("script", Binary() +
                        " run --json --config config.json >out 2>noted & pid=$!\n"
                        "until [ -e started ]; do sleep 0.02; done\n" +
                        script + "wait $pid; code=$?; cat out noted; exit $code\n");
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./script", 60);
  }
};

TEST_F(StopTest, ASecondSignalGivesBackAtOnce) {
  const ProcessResult result =
      RunAndDo("kill -TERM $pid; until grep -q \"once more\" noted; do sleep 0.02; done; kill -TERM $pid\n");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("giving everything back now"));
  EXPECT_THAT(result.output, HasSubstr("\"returned\":1"));
  EXPECT_THAT(Run("task list --state waiting").output, HasSubstr("main/tasks/1"));
}

TEST_F(StopTest, TwoSignalsOfOneEventAreNoSecondWish) {
  const ProcessResult result = RunAndDo(
      "kill -TERM $pid; kill -HUP $pid; until grep -q \"once more\" noted; do sleep 0.02; done; sleep 0.2\n"
      "echo \"after one event: $(cat noted)\"; kill -TERM $pid\n");
  const auto first = result.output.find("giving everything back now");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  ASSERT_NE(first, result.output.npos) << result.output;
  EXPECT_EQ(result.output.find("giving everything back now", first + 1), result.output.npos)
      << "it stands in the last words alone: " << result.output;
}

TEST_F(CommandTest, LoadBalanceNumbersThatNoTableHasAreNamed) {
  Run("submit --handler noop");
  const ProcessResult result = Run("worker --store sqlite:millrace.db --load-balance 0-65,70 --until-idle");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no table has the numbers 64-65,70; the tables have 0 to 63"));
}

TEST_F(CommandTest, TheEndTellsWhatIsLeftAndHowToLookAtIt) {
  Run("submit --handler noop --count 2");
  Run("submit --handler noop --in 1h");
  Run("submit --handler noop --held");
  Run("submit --handler award_points");
  const ProcessResult run = Run("run --until-idle");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("2 succeeded, 1 failed\n"));
  EXPECT_THAT(run.output, HasSubstr("1 task waits, the first until "));
  EXPECT_THAT(run.output, HasSubstr("1 task is held: millrace task list --state held"));
  EXPECT_THAT(run.output, HasSubstr("1 task failed and needs a person: millrace task list --state failed"));
  const std::string json = Run("run --until-idle --json 2>/dev/null").output;
  EXPECT_THAT(json, HasSubstr("\"waiting\":1,\"waiting_or_more\":false,\"next_due\":\"20"));
  EXPECT_THAT(json, HasSubstr("\"held\":1"));
}

TEST_F(CommandTest, TheEndTellsThisRunFromThoseBefore) {
  Run("submit --handler noop --count 3");
  EXPECT_THAT(Run("run --until-idle").output, HasSubstr("\n3 succeeded, 0 failed\n"));
  Run("submit --handler noop");
  EXPECT_THAT(Run("run --until-idle").output,
              HasSubstr("this run: 1 succeeded, 0 failed; in all: 4 succeeded, 0 failed\n"));
}

TEST_F(CommandTest, WhoNamesAStoreIsNotToldOfTheEnvironmentsCluster) {
  Run("submit --handler noop --in 1h --store sqlite:other.db");
  const ProcessResult why = RunProcess("cd " + folder_ + " && HOME=" + folder_ + " MILLRACE_ZK=127.0.0.1:1 " +
                                       Binary() + " task why 1 --store sqlite:other.db");
  EXPECT_EQ(why.exit_code, 0) << why.output;
  EXPECT_THAT(why.output, ::testing::Not(HasSubstr("cluster")));
}

TEST_F(CommandTest, WhoRunsBesideAClusterAndNamesNoFileIsToldSo) {
  const auto run = [this](const std::string& store) {
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " MILLRACE_ZK=127.0.0.1:1 " + Binary() +
                      " run --until-idle" + store);
  };
  const ProcessResult nowhere = run("");
  EXPECT_EQ(nowhere.exit_code, 2) << nowhere.output;
  EXPECT_THAT(nowhere.output, HasSubstr("start millrace worker, or name a file with --store sqlite:PATH"));
  EXPECT_EQ(run(" --store sqlite:named.db").exit_code, 0);
}

TEST_F(CommandTest, AnAlertIsNotTriedWhereNobodyIsThereToSendIt) {
  Write("a.json", R"({"alerts":{"failed":{"kind":"failed","mail":["ops@example.com"]}}})");
  Run("submit --handler noop");
  const auto begun = std::chrono::steady_clock::now();
  const ProcessResult test = Run("alerts test failed --config a.json");
  EXPECT_EQ(test.exit_code, 1) << test.output;
  EXPECT_THAT(test.output, AllOf(HasSubstr("no worker is there"), HasSubstr("millrace run")));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  Write("two.json",
        R"({"shards":{"a":{"url":"sqlite:a.db"},"b":{"url":"sqlite:b.db"}},
            "alerts":{"failed":{"kind":"failed","mail":["ops@example.com"]}}})");
  for (const char* shard : {"a", "b"})
    Run(std::string("submit --handler noop --config two.json --shard ") + shard);
  EXPECT_THAT(Run("alerts test failed --config two.json").output, HasSubstr("registered in shard a, b"))
      << "another's may be there";
  const ProcessResult left = Run("alerts test failed --config a.json --wait 0s");
  EXPECT_EQ(left.exit_code, 0) << left.output;
  EXPECT_THAT(left.output, HasSubstr("waits: millrace task why"));
  EXPECT_EQ(Run("alerts test faild --config a.json").exit_code, 1);
  EXPECT_THAT(Run("alerts list --config a.json").output,
              HasSubstr("alerts.failed.mail: no mail can be sent"));
}

TEST_F(CommandTest, HowLongAgoAnAlertFiredIsSaidAsEverywhere) {
  Write("a.json", R"({"alerts":{"failed":{"kind":"failed","webhook":"http://127.0.0.1:1/"}}})");
  Write("t.jsonl", R"({"params":{"state":"firing","count":1},"key":"alert/failed/0000000001/webhook"})");
  Run("submit --handler millrace.webhook --from t.jsonl");
  EXPECT_THAT(Run("alerts list --config a.json").output, ::testing::ContainsRegex(" [0-9.]+ m?s ago"));
}

TEST_F(CommandTest, AnAlertOfWhichAShardThatIsAwayMayTellIsNotCalledQuiet) {
  Write("two.json",
        R"({"shards":{"east":{"url":"mysql://u@127.0.0.1:1/d"},"main":{"url":"sqlite:a.db"}},
            "alerts":{"failed":{"kind":"failed","webhook":"http://127.0.0.1:1/"}}})");
  Run("schema apply --store sqlite:a.db");
  const ProcessResult list = Run("alerts list --config two.json");
  EXPECT_EQ(list.exit_code, 3) << list.output;
  EXPECT_THAT(list.output, AllOf(HasSubstr("what shard east has said of alerts is not known: "),
                                 ::testing::ContainsRegex("failed +failed +\\? +\\? +http"),
                                 Not(HasSubstr("quiet")), Not(HasSubstr("never"))));
  EXPECT_THAT(Run("alerts list --config two.json --json").output,
              AllOf(HasSubstr("\"firing\":null"), HasSubstr("\"away\":{\"east\":")));
  for (const char* shard : {"", " --shard main"})
    EXPECT_THAT(Run("status --config two.json --sample 0s" + std::string(shard)).output,
                HasSubstr("1 alert configured, ? fire"));
  Write("one.json", R"({"alerts":{"failed":{"kind":"failed","webhook":"http://127.0.0.1:1/"}}})");
  const ProcessResult there = Run("alerts list --config one.json --store sqlite:a.db");
  EXPECT_EQ(there.exit_code, 0) << there.output;
  EXPECT_THAT(there.output, ::testing::ContainsRegex("failed +failed +quiet +never +http"));
}

TEST_F(CommandTest, TheEndInJsonHasWhatAnOperatorAsksFor) {
  Run("submit --handler noop --count 3");
  const std::string json = Run("run --until-idle --json 2>/dev/null").output;
  for (const char* key : {"returned", "refused", "adopted", "rescued"}) {
    EXPECT_THAT(json, HasSubstr("\"" + std::string(key) + "\":0"));
  }
}

// Whoever copies them has a worker that starts.
TEST_F(CommandTest, TheExamplesOfAConfigurationRunAsTheyAre) {
  const std::string source = std::getenv("MILLRACE_SOURCE_DIR");
  std::vector<std::string> examples{source + "/conf/samples/millrace.json"};
  std::ifstream document(source + "/conf/README.md");
  for (std::string line; std::getline(document, line);) {
    constexpr std::string_view kExample = "Example: `";
    if (!line.starts_with(kExample)) continue;
    std::string example = line.substr(kExample.size());
    while (example.find('`') == example.npos && std::getline(document, line)) example += "\n" + line;
    const std::string name = "example" + std::to_string(examples.size());
    Write(name, "{" + example.substr(0, example.find('`')) + "}");
    examples.push_back(folder_ + "/" + name);
  }
  EXPECT_GE(examples.size(), 4u) << "the sample, and those of engine, handlers and alerts";
  for (const std::string& example : examples) {
    std::filesystem::remove(folder_ + "/millrace.db");
    EXPECT_EQ(Run("submit --handler noop --config " + example).exit_code, 0) << example;
    const ProcessResult run = Run("run --until-idle --config " + example);
    EXPECT_EQ(run.exit_code, 0) << example << "\n" << run.output;
    EXPECT_THAT(run.output, ::testing::ContainsRegex("\n[12] succeeded, 0 failed")) << example << "\n"
                                                                                    << run.output;
  }
}

TEST_F(CommandTest, WhereNothingEndedItDoesNotSayThatNothingWasDue) {
  Run("submit --handler noop");
  Run("cluster pause handler:noop");
  const ProcessResult run = Run("run --until-idle");
  EXPECT_THAT(run.output, AllOf(HasSubstr("this run: no task ended"), Not(HasSubstr("nothing was due"))));
}

TEST_F(CommandTest, TheHelpOffersNothingThatIsRefusedOrNeededTwice) {
  const std::string run = Run("run --help").output;
  for (const char* flag : {"--zk", "--cluster", "--doorbell"}) EXPECT_THAT(run, Not(HasSubstr(flag)));
  EXPECT_THAT(Run("worker --help").output, AllOf(HasSubstr("--zk"), HasSubstr("--doorbell ")));
  EXPECT_THAT(Run("handler run --help").output, AllOf(HasSubstr("--handler"), Not(HasSubstr("REQUIRED"))));
}

TEST_F(CommandTest, WithoutACommandItShowsThemInGroups) {
  const ProcessResult help = Run("");
  EXPECT_EQ(help.exit_code, 2);
  for (const char* group : {"Run tasks:", "Add tasks:", "Look after them:"}) {
    EXPECT_THAT(help.output, HasSubstr(group));
  }
  EXPECT_THAT(Run("--version").output, ::testing::MatchesRegex("millrace [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// As an operator changes it, twice: what can't be used changes nothing. And then the terminal is closed.
TEST_F(CommandTest, AChangedConfigurationFileHoldsWhileItRunsAndAHangUpEndsItInGoodOrder) {
  Write("slow", R"({"handlers": {"noop": {"limit": {"rate": "1/h"}}}})");
  Write("broken", R"({"handlers": {"noop": {"limt": 7}}})");
  Write("fast", R"({"handlers": {"noop": {"limit": {"rate": "1000/s"}}}})");
  Write("script",
        "m=" + Binary() +
            "\ncp slow c.json; $m submit --handler noop --count 20 >/dev/null\n"
            "$m run --config c.json 2>log >out & pid=$!\n"
            "until grep -q registered log; do sleep 0.1; done\n"
            "cp broken c.json; until grep -q 'in force stays in force' log; do sleep 0.1; done\n"
            "kill -0 $pid && cp fast c.json\n"
            "until $m task count --json | grep -q '\"succeeded\",\"count\":20'; do sleep 0.2; done\n"
            "kill -HUP $pid; wait $pid; echo \"ended $?\"; grep -o 'unknown key .*' log | head -n 1\n");
  const ProcessResult script = RunProcess("cd " + folder_ + " && HOME=" + folder_ + " sh ./script 2>&1", 60);
  EXPECT_THAT(script.output, HasSubstr("ended 0"));
  EXPECT_THAT(script.output, HasSubstr("did you mean 'limit'?"));
}

}  // namespace
}  // namespace millrace::engine::testing
