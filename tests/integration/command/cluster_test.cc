// The commands of a cluster, on nodes that the tests write as workers and people would.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/command/cluster_fixture.h"

namespace millrace::engine::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ClusterCommandTest, OnlyWhatIsThereIsPausedUnlessForced) {
  EXPECT_EQ(Ask("cluster pause handler:any").exit_code, 0);  // no worker says what it runs
  EXPECT_EQ(Ask("cluster resume handler:any").exit_code, 0);
  Register("w1", R"(["noop"])");
  for (const char* wrong : {"handler:nop", "shard:mian", "slice:main:taks:1", "slice:main:tasks:64"}) {
    const ProcessResult refused = Ask("cluster pause cluster " + std::string(wrong));
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, AllOf(HasSubstr(wrong), HasSubstr("--force")));
  }
  EXPECT_THAT(Ask("cluster status --json").output, HasSubstr("\"pauses\":[]"));
  EXPECT_EQ(Ask("cluster pause handler:noop slice:main:tasks:63").exit_code, 0);
  EXPECT_EQ(Ask("cluster pause --force handler:nop").exit_code, 0);
  EXPECT_THAT(Ask("cluster status").output, AllOf(HasSubstr("! paused: handler:nop, by "),
                                                  HasSubstr("! paused: slice:main:tasks:63, by ")));
  EXPECT_THAT(Ask("cluster status --json").output, HasSubstr(R"("paused":[{"what":"handler:noop","by":")"));
}

TEST_F(ClusterCommandTest, WhatIsNotPausedIsNotResumed) {
  EXPECT_EQ(Ask("cluster pause cluster").exit_code, 0);
  const ProcessResult wrong = Ask("cluster resume clutser handler:noop");
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;  // the first is no name that a pause can have
  const ProcessResult other = Ask("cluster resume handler:noop");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("'handler:noop' was not paused; paused: cluster"));
  EXPECT_THAT(Ask("cluster resume cluster").output, HasSubstr("resumed: cluster\n"));
  EXPECT_THAT(Ask("cluster resume cluster").output, HasSubstr("nothing is paused"));
}

TEST_F(ClusterCommandTest, AResumeReachesEveryShardThoughZookeeperAnswersLate) {
  const TestDatabase other;
  const std::string east = Store().substr(0, Store().rfind('/') + 1) + other.url().database;
  EXPECT_EQ(Ask("schema apply --store " + east).exit_code, 0);
  Write("shards.json", R"({"main":{"url":")" + Store() + R"("},"east":{"url":")" + east + "\"}}");
  EXPECT_EQ(Ask("config set shards @shards.json").exit_code, 0);
  EXPECT_EQ(Ask("cluster pause cluster").exit_code, 0);
  Ensemble().Pause(0);
  ProcessResult resumed;
  std::thread late([&] { resumed = Ask("cluster resume cluster 2>noted"); });
  EXPECT_EQ(InFolder("until grep -qs 'not answer yet' noted; do sleep 0.1; done").exit_code, 0);
  Ensemble().Resume(0);
  late.join();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(Ask("status --sample 0s").output, Not(HasSubstr("paused: cluster")));
}

TEST_F(ClusterCommandTest, APauseIsMadeThoughItsFolderHasVanished) {
  for (const char* path :
       {"/control/pause", "/control/limits", "/control/expect", "/control/drain", "/control"})
    Type(Remove(path));
  const ProcessResult paused = Ask("cluster pause cluster");
  EXPECT_EQ(paused.exit_code, 0) << paused.output;
  EXPECT_THAT(Ask("cluster status").output, HasSubstr("! paused: cluster, by "));
}

TEST_F(ClusterCommandTest, AnExpectationIsForADayAtMostAndCanBeExtended) {
  Register("w1", R"(["noop"])");
  for (const char* wrong : {"25h", "0s"}) {
    const ProcessResult refused = Ask("cluster expect w1 --for " + std::string(wrong));
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("at most 1d"));
  }
  EXPECT_EQ(Ask("cluster expect w1 --for 30s").exit_code, 0);
  EXPECT_EQ(Ask("cluster expect w1 --for 24h").exit_code, 0);
  const TreeNode node = Look("/control/expect/w1");
  EXPECT_THAT(node.data, HasSubstr("86400"));
  EXPECT_EQ(node.version, 1);  // there was no moment without it
}

TEST_F(ClusterCommandTest, ARollbackGoesFurtherBackEachTimeWhateverAPersonPutIntoTheHistory) {
  EXPECT_EQ(Ask("config set engine.poll 100ms").exit_code, 0);
  EXPECT_EQ(Ask("config set engine.poll 900ms").exit_code, 0);
  Type(Create("/history/engine/notes", "by hand"));
  EXPECT_THAT(Ask("config rollback engine").output,
              AllOf(HasSubstr("now version 3, with the text of version 1 ("),
                    HasSubstr("~ engine.poll  \"900ms\" → \"100ms\"")));
  EXPECT_THAT(Ask("config get engine.poll").output, HasSubstr("100ms"));
  EXPECT_THAT(Ask("config rollback engine").output, HasSubstr("now version 4, with the text of version 0"));
  const ProcessResult none = Ask("config rollback engine");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr("no earlier version"));
  EXPECT_EQ(Ask("config set engine ''").exit_code, 2);
}

// So many task types, in a text of about 120 bytes for each.
std::string TypesInAll(int count, const std::string& timeout) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) {
    text += std::string(i == 0 ? "" : ",") + "\n\"type_" + std::to_string(1000 + i) + R"(": {"timeout": ")" +
            timeout + R"(", "concurrency": 8, "retry": {"max_failures": 4, "jitter": 0.1}, "keep": "7d"})";
  }
  return text + "\n}";
}

TEST_F(ClusterCommandTest, ALargePartIsSetChangedAndRolledBack) {
  const std::string text = TypesInAll(2600, "5m");
  ASSERT_GT(text.size(), 256U * 1024);
  std::ofstream(folder_ + "/large.json") << text;
  std::ofstream(folder_ + "/other.json") << TypesInAll(2600, "6m");
  ProcessResult set = Ask("config set handlers @large.json");
  EXPECT_EQ(set.exit_code, 0) << set.output;
  set = Ask("config set handlers @other.json");
  EXPECT_EQ(set.exit_code, 0) << set.output;
  set = Ask("config rollback handlers");
  EXPECT_EQ(set.exit_code, 0) << set.output;
  EXPECT_EQ(Look("/config/handlers").data, text);
}

TEST_F(ClusterCommandTest, ALargePartThatWasSetByHandIsChangedAndRolledBackTo) {
  const std::string text = TypesInAll(1800, "5m");
  Type(Set("/config/handlers", text));
  std::ofstream(folder_ + "/other.json") << TypesInAll(1800, "6m");
  ProcessResult set = Ask("config set handlers @other.json");
  EXPECT_EQ(set.exit_code, 0) << set.output;
  set = Ask("config rollback handlers");
  EXPECT_EQ(set.exit_code, 0) << set.output;
  EXPECT_EQ(Look("/config/handlers").data, text);
}

TEST_F(ClusterCommandTest, APartThatIsTooLargeIsRefusedWithBothSizes) {
  const std::string text = TypesInAll(3000, "5m");
  std::ofstream(folder_ + "/large.json") << text;
  for (const char* command : {"config set handlers @large.json", "config validate handlers @large.json"}) {
    const ProcessResult refused = Ask(command);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output,
                ContainsRegex("config/handlers: the document has 3[0-9]{2},[0-9]{3} bytes, and a "
                              "part takes at most 307,200:"));
  }
  EXPECT_EQ(Look("/config/handlers").version, 0);
}

TEST_F(ClusterCommandTest, ConfigIsSetOnlyIfItIsAsItWas) {
  EXPECT_THAT(Ask("config get engine").output, HasSubstr("config/engine is version 0"));
  EXPECT_EQ(Ask("config set engine.poll 100ms --if-version 0").exit_code, 0);
  const ProcessResult late = Ask("config set engine.poll 200ms --if-version 0");
  EXPECT_EQ(late.exit_code, 4);
  EXPECT_THAT(late.output, HasSubstr("config/engine is version 1 and not version 0"));
  std::ofstream(folder_ + "/engine.json") << R"({"poll":"300ms"})";
  EXPECT_EQ(Ask("config set engine @" + folder_ + "/engine.json --if-version 0").exit_code, 4);
  EXPECT_THAT(Ask("config get engine.poll").output, HasSubstr("100ms"));
  EXPECT_EQ(Ask("config set engine @" + folder_ + "/engine.json --if-version 1").exit_code, 0);
  EXPECT_THAT(Ask("config get engine.poll").output, HasSubstr("300ms"));
}

// A worker that has told this of a part.
TEST_F(ClusterCommandTest, SetTellsWhatEachWorkerMadeOfIt) {
  Register("w1", R"(["noop"])");
  Register("w2", R"(["noop"])");
  Type(CreateEphemeral("/status/w1", R"({"config":{"engine":{"version":9}}})"));
  Type(CreateEphemeral("/status/w2", R"({"config":{"engine":{"version":9,"refused":"no such poll"}}})"));
  const ProcessResult set = Ask("config set engine.poll 100ms");
  EXPECT_EQ(set.exit_code, 1) << set.output;
  EXPECT_THAT(set.output,
              AllOf(HasSubstr("+ engine.poll  \"100ms\""), HasSubstr("is now version 1"),
                    HasSubstr("in force on 1 of 2 workers"), HasSubstr("w2 refuses it: no such poll")));
  Type({TreeWrite::Kind::Set, "/status/w2", R"({"config":{"engine":{"version":1}}})"});
  const ProcessResult silent = Ask("config set engine.poll 200ms --json 2>/dev/null");
  EXPECT_EQ(silent.exit_code, 1) << silent.output;
  EXPECT_THAT(silent.output, HasSubstr(R"({"worker":"w2","state":"silent"})"));
  Type({TreeWrite::Kind::Set, "/status/w2", R"({"config":{"engine":{"version":9}}})"});
  const ProcessResult good = Ask("config set engine.poll 300ms");
  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, AllOf(HasSubstr("in force on 2 of 2 workers"), Not(HasSubstr("lease"))));
  const ProcessResult lease = Ask("config set engine.lease 20s");
  EXPECT_EQ(lease.exit_code, 0) << lease.output;
  EXPECT_THAT(lease.output, AllOf(HasSubstr("in force on 2 of 2 workers"),
                                  HasSubstr("engine.lease holds in each worker from its next registration")));
}

TEST_F(ClusterCommandTest, WhoChangesAKeyHearsThatCommentsAreNotKept) {
  const std::string lost =
      "the comments of config/engine are not kept; millrace config set engine @FILE keeps them";
  Write("engine.json", "{ // often\n\"poll\": \"100ms\"}\n");
  EXPECT_THAT(Ask("config set engine @engine.json").output, Not(HasSubstr("comments")));
  const ProcessResult edited =
      InFolder("EDITOR=\"sed -i s/100ms/200ms/\" " + Binary() + " config edit engine");
  EXPECT_EQ(edited.exit_code, 0) << edited.output;
  EXPECT_EQ(Look("/config/engine").data, "{ // often\n\"poll\": \"200ms\"}\n");
  EXPECT_THAT(Ask("config set engine.batch 7 --dry-run").output, HasSubstr(lost));
  EXPECT_THAT(Ask("config set engine.batch 7").output, HasSubstr(lost));
  EXPECT_THAT(Ask("config set engine.batch 8").output, Not(HasSubstr("comments"))) << "it has none now";
  EXPECT_THAT(Ask("config rollback engine 1").output, Not(HasSubstr("comments")));
  EXPECT_THAT(Look("/config/engine").data, HasSubstr("// often"));
  EXPECT_THAT(Ask("config unset engine").output, Not(HasSubstr("comments"))) << "nothing is kept of it";
}

TEST_F(ClusterCommandTest, ARealWorkerTellsOfEachVersionWithinTwoSeconds) {
  const std::string script = folder_ + "/script";
  std::ofstream(script) << Binary() << " worker --id w1 2>noted & pid=$!\n"
                        << "until " << Binary() << " cluster status | grep -q w1; do sleep 0.05; done\n"
                        << Binary() << " config set engine.poll 100ms; code=$?\n"
                        << "kill -TERM $pid; wait $pid; exit $code\n";
  const ProcessResult result = InFolder("sh ./script");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("in force on 1 of 1 worker"));
}

// Open to others, it asks for tokens, which this worker has not.
TEST_F(ClusterCommandTest, AnAddressThatAWorkerCannotListenOnIsItsRefusal) {
  const std::string script = folder_ + "/script";
  std::ofstream(script) << Binary() << " worker --id w1 2>noted & pid=$!\n"
                        << "until " << Binary() << " cluster status | grep -q w1; do sleep 0.05; done\n"
                        << Binary() << " config set engine.http 0.0.0.0:0; code=$?\n"
                        << Binary() << " cluster status\n"
                        << Binary() << " config set engine.http 127.0.0.1:0 || code=back\n"
                        << "kill -TERM $pid; wait $pid; echo \"answered $code\"\n";
  const ProcessResult result = InFolder("sh ./script");
  EXPECT_THAT(result.output, AllOf(HasSubstr("w1 refuses it: engine.http: "), HasSubstr("answered 1"),
                                   HasSubstr("w1 refuses config/engine: engine.http: "),
                                   HasSubstr("in force on 1 of 1 worker")));
}

TEST_F(ClusterCommandTest, ADryRunSetsNothingAndUnsetTakesOut) {
  const ProcessResult dry = Ask("config set engine.poll 100ms --dry-run");
  EXPECT_EQ(dry.exit_code, 0) << dry.output;
  EXPECT_THAT(dry.output, AllOf(HasSubstr("+ engine.poll  \"100ms\""), HasSubstr("has set nothing")));
  EXPECT_EQ(Ask("config set engine.pol 100ms --dry-run").exit_code, 2);
  EXPECT_THAT(Ask("config get engine").output, HasSubstr("version 0"));
  EXPECT_EQ(Ask("config unset engine.poll").exit_code, 1);
  EXPECT_EQ(Ask("config set engine.poll 100ms").exit_code, 0);
  EXPECT_THAT(Ask("config unset engine.poll").output, HasSubstr("- engine.poll  \"100ms\""));
  EXPECT_THAT(Ask("config get engine").output, AllOf(HasSubstr("{}"), HasSubstr("version 2")));
}

TEST_F(ClusterCommandTest, DiffShowsWhatAChangeWasOrWouldBe) {
  EXPECT_EQ(Ask("config set engine.poll 100ms").exit_code, 0);
  EXPECT_EQ(Ask("config set engine.poll 200ms").exit_code, 0);
  EXPECT_THAT(Ask("config diff engine").output, HasSubstr("~ engine.poll  \"100ms\" → \"200ms\"\n"));
  EXPECT_THAT(Ask("config diff engine 0").output, HasSubstr("+ engine.poll  \"200ms\"\n"));
  EXPECT_THAT(Ask("config diff engine 2 1").output, HasSubstr("~ engine.poll  \"200ms\" → \"100ms\"\n"));
  EXPECT_THAT(Ask("config diff engine {}").output, HasSubstr("- engine.poll  \"200ms\"\n"));
  EXPECT_THAT(Ask("config diff engine 2 --json").output, HasSubstr(R"("changes":[])"));
  EXPECT_EQ(Ask("config diff engine 7").exit_code, 1);
}

TEST_F(ClusterCommandTest, AHandlerThatNobodyHasIsAskedAbout) {
  Register("w1", R"(["noop","send_mail"])");
  Type(CreateEphemeral("/status/w1", R"({"config":{"handlers":{"version":9}}})"));
  const ProcessResult asked = Ask("config set handlers.send_mial.concurrency 8 </dev/null");
  EXPECT_EQ(asked.exit_code, 4) << asked.output;
  EXPECT_THAT(asked.output,
              AllOf(HasSubstr("no worker has a handler 'send_mial' (did you mean 'send_mail'?)"),
                    HasSubstr("--yes")));
  EXPECT_THAT(Ask("config set handlers.send_mial.concurrency 8 --dry-run").output,
              AllOf(HasSubstr("did you mean 'send_mail'?"), HasSubstr("has set nothing")));
  EXPECT_EQ(Ask("config set handlers.monthly.uses send_mail </dev/null").exit_code, 0);
  EXPECT_EQ(Ask("config set handlers.send_mial.concurrency 8 --yes").exit_code, 0);
  EXPECT_EQ(Ask("config set handlers.send_mial.concurrency 9 </dev/null").exit_code, 0) << "it is there";
}

TEST_F(ClusterCommandTest, ATypeThatUsesAHandlerThatNobodyHasIsAskedAbout) {
  Register("w1", R"(["call","noop","send_mail"])");
  Type(CreateEphemeral("/status/w1", R"({"config":{"handlers":{"version":9}}})"));
  const ProcessResult asked = Ask("config set handlers.call.uses nobody </dev/null");
  EXPECT_EQ(asked.exit_code, 4) << asked.output;
  EXPECT_THAT(
      asked.output,
      HasSubstr("handlers.call.uses: no worker has a handler 'nobody'; there are call, noop, send_mail"));
  EXPECT_EQ(Ask("config set handlers.call.uses noop </dev/null").exit_code, 0);
  const ProcessResult type = Ask("config set handlers.other.uses call </dev/null");
  EXPECT_EQ(type.exit_code, 4) << type.output;
  EXPECT_THAT(type.output, HasSubstr("handlers.other.uses: 'call' is a task type that uses 'noop' itself"));
}

TEST_F(ClusterCommandTest, AWorkerWarnsOfTypesOfItsFileWhoseHandlerItLacks) {
  Write("uses.json", R"({"handlers":{"call":{"uses":"nobody"}}})");
  const ProcessResult worker = Ask("worker --id w1 --until-idle --config uses.json");
  EXPECT_EQ(worker.exit_code, 0) << worker.output;
  EXPECT_THAT(worker.output,
              HasSubstr("uses.json:1: handlers.call.uses: no plugin here has a handler 'nobody'"));
}

TEST_F(ClusterCommandTest, AnErrorTellsLinesOfTheUsersOwnTextAlone) {
  EXPECT_EQ(Ask("config set handlers.noop.timeout 1s").exit_code, 0);
  const ProcessResult key = Ask("config set handlers.noop.timeout soon");
  EXPECT_EQ(key.exit_code, 2) << key.output;
  EXPECT_THAT(key.output, HasSubstr("config/handlers: handlers.noop.timeout: \"soon\" is not a duration"));
  Write("whole.json", "{\"noop\":\n{\"timeout\":\"soon\"}}");
  EXPECT_THAT(Ask("config set handlers @whole.json").output,
              HasSubstr("config/handlers:2: handlers.noop.timeout: "));
}

TEST_F(ClusterCommandTest, AZookeeperThatIsAwayIsToldWithWhatToDo) {
  const ProcessResult away = Ask("worker --id w1 --zk 127.0.0.1:1 --wait 1s");
  EXPECT_EQ(away.exit_code, 3) << away.output;
  EXPECT_THAT(away.output, HasSubstr("start it, or correct host and port in --zk or MILLRACE_ZK"));
}

TEST_F(ClusterCommandTest, AnEditWithoutAChangeMakesNoVersion) {
  EXPECT_EQ(Ask("config set engine.poll 100ms").exit_code, 0);
  const ProcessResult same = InFolder("EDITOR=true " + Binary() + " config edit engine");
  EXPECT_EQ(same.exit_code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("nothing was changed"));
  EXPECT_THAT(Ask("config get engine").output, HasSubstr("version 1"));
  const ProcessResult tried = InFolder("TMPDIR=" + folder_ + " EDITOR=\"sed -i s/100ms/300ms/\" " + Binary() +
                                       " config edit engine --dry-run");
  EXPECT_EQ(tried.exit_code, 0) << tried.output;
  EXPECT_THAT(tried.output, HasSubstr("your text is in " + folder_)) << "it may have been long to write";
  EXPECT_EQ(InFolder("grep -q 300ms millrace-config-*").exit_code, 0);
  const ProcessResult edited =
      InFolder("EDITOR=\"sed -i s/100ms/200ms/\" " + Binary() + " config edit engine");
  EXPECT_EQ(edited.exit_code, 0) << edited.output;
  EXPECT_THAT(Ask("config get engine").output, AllOf(HasSubstr("200ms"), HasSubstr("version 2")));
}

TEST_F(ClusterCommandTest, ATypeWithoutAnEntryIsShownWithTheDefaults) {
  const ProcessResult effective = Ask("config get --effective handlers.noop");
  EXPECT_EQ(effective.exit_code, 0) << effective.output;
  EXPECT_THAT(effective.output, AllOf(HasSubstr("handlers.noop.timeout"), HasSubstr("default")));
}

// As an example copied from a document would: the whole cluster would turn to a database that is not there.
TEST_F(ClusterCommandTest, ShardsThatDoNotAnswerAreNotSetUnlessOffline) {
  std::ofstream(folder_ + "/shards.json") << R"({"main":{"url":"mysql://millrace@127.0.0.1:1/work"}})";
  for (const char* command : {"config set shards @shards.json", "config validate shards @shards.json"}) {
    const ProcessResult refused = Ask(command);
    EXPECT_EQ(refused.exit_code, 3) << refused.output;
    EXPECT_THAT(refused.output, AllOf(HasSubstr("shards.main: "), HasSubstr("--offline")));
    EXPECT_THAT(Ask("config get shards").output, HasSubstr("version 0"));
  }
  EXPECT_EQ(Ask("config validate shards @shards.json --offline").exit_code, 0);
  EXPECT_EQ(Ask("config set shards @shards.json --offline").exit_code, 0);
  EXPECT_EQ(Ask("config set shards.main.slices 32").exit_code, 0) << "it is the same place";
}

TEST_F(ClusterCommandTest, ShardsOfTheClusterGoBeforeAStoreOfTheEnvironment) {
  EXPECT_EQ(Ask("submit --handler noop --params {}").exit_code, 0);
  std::ofstream(folder_ + "/shards.json") << R"({"east":{"url":")" + Store() + "\"}}";
  EXPECT_EQ(Ask("config set shards @shards.json").exit_code, 0);
  const ProcessResult listed = Ask("task list");
  EXPECT_THAT(listed.output, AllOf(HasSubstr("east/tasks/1"), Not(HasSubstr("ignored")))) << "it is the same";
  EXPECT_THAT(Ask("task list --store " + Store()).output, HasSubstr("main/tasks/1"));
  std::ofstream(folder_ + "/shards.json") << R"({"east":{"url":"sqlite:a.db"}})";
  const ProcessResult refused = Ask("config set shards @shards.json");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("SQLite files are for millrace run"));
}

TEST_F(ClusterCommandTest, TaskWhySeesWhatStandsInZookeeperAlone) {
  EXPECT_EQ(Ask("submit --handler noop").exit_code, 0);
  Register("w1", R"(["send_mail"])");
  EXPECT_THAT(Ask("task why 1").output, HasSubstr("No worker of the cluster runs its type"));
  Type(Create("/control/pause/handler:noop"));
  EXPECT_THAT(Ask("task why 1").output, HasSubstr("It is paused (handler:noop)"));
  Type(Remove("/control/pause/handler:noop"));
  EXPECT_THAT(Ask("task why 1").output, Not(HasSubstr("paused")));
}

TEST_F(ClusterCommandTest, OfAHandlerThatDoesNotOpenTheOwnerOfTheTasksSliceTells) {
  EXPECT_EQ(Ask("submit --handler exec").exit_code, 0);
  const std::string script = folder_ + "/script";
  std::ofstream(script) << Binary() << " worker --id w1 2>noted & pid=$!\n"
                        << "until " << Binary() << " task why 1 | grep 'run by'; do sleep 0.1; done\n"
                        << Binary() << " status\n"
                        << "kill -TERM $pid; wait $pid\n";
  const std::string why = "the handler 'exec' can't be opened for tasks of type 'exec': 'program' is missing";
  EXPECT_THAT(InFolder("sh ./script").output,
              AllOf(HasSubstr("main/tasks/1 is waiting. It can't be run by w1: " + why),
                    HasSubstr("! w1 refuses handlers.exec: " + why)));
}

TEST_F(ClusterCommandTest, ConfigReachesTypesWithDots) {
  EXPECT_EQ(Ask("config set handlers.mail.monthly.timeout 5m").exit_code, 0);
  EXPECT_EQ(Ask("config set handlers[mail.monthly].retry.jitter 0.5").exit_code, 0);
  EXPECT_EQ(Ask("config get handlers.mail.monthly.timeout").output, "\"5m\"\n");
  const ProcessResult effective = Ask("config get --effective handlers.mail.monthly");
  EXPECT_THAT(effective.output, AllOf(HasSubstr("handlers.mail.monthly.retry.jitter"), HasSubstr("0.5"),
                                      HasSubstr("on_exception"), Not(HasSubstr("engine"))));
  const ProcessResult misspelt = Ask("config set handlers.noop.concurency 8");
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_THAT(misspelt.output, HasSubstr("did you mean 'concurrency'?"));
}

TEST_F(ClusterCommandTest, ATypeOfTheClustersConfigurationIsSubmittedWithTheStoreNamed) {
  EXPECT_EQ(Ask("submit --handler monthly").exit_code, 2);
  EXPECT_EQ(Ask("config set handlers.monthly.uses noop").exit_code, 0);
  const ProcessResult submitted = Ask("submit --handler monthly");
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
}

TEST_F(ClusterCommandTest, WhoOnlyLooksMakesNoCluster) {
  for (const char* command : {"cluster status", "config get", "cluster pause cluster"}) {
    const ProcessResult refused = Ask(std::string(command) + " --cluster nobody");
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("there is no cluster 'nobody'"));
  }
  EXPECT_EQ(InFolder("EDITOR=true " + Binary() + " config edit engine --cluster nobody").exit_code, 2);
  EXPECT_EQ(Ask("config set engine.poll 100ms --cluster fresh" + Random::FromSystem().Hex(8)).exit_code, 0);
}

TEST_F(ClusterCommandTest, StatusBearsWithRubbishInNodes) {
  Register("w1", "null");
  Type(Create("/plan", R"({"holding":"yes","moves_waiting":[]})"));
  Type(Create("/status/w1", "[1]"));
  for (const char* json : {"", " --json"}) {
    const ProcessResult status = Ask("cluster status" + std::string(json));
    EXPECT_EQ(status.exit_code, 1) << status.output;  // there is a worker, and nobody leads
    EXPECT_THAT(status.output, AllOf(HasSubstr("work stands still, since nobody leads"),
                                     HasSubstr("plan: 'moves_waiting' has a wrong type"),
                                     HasSubstr("status/w1: this is not a JSON object")));
  }
}

TEST_F(ClusterCommandTest, ALimitThatMeansNothingIsRefusedAndOneThatStandsIsShown) {
  Register("w1", R"(["noop","send_mail"])");
  for (const auto& [wrong, nearest] :
       {std::pair("--handlers send_mial", "send_mail"), std::pair("--shards mian", "main"),
        std::pair("--tables main/taks", "tasks"), std::pair("--load-balance 64", "they are 0 to 63")}) {
    const ProcessResult refused = Ask("cluster limit w1 " + std::string(wrong));
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output,
                AllOf(HasSubstr(nearest), HasSubstr("nothing was limited"), HasSubstr("--force")));
    EXPECT_EQ(Look("/control/limits/w1").data, "");
  }
  EXPECT_EQ(Ask("cluster limit w1 --handlers send_mail --load-balance 0-31").exit_code, 0);
  EXPECT_THAT(Ask("cluster status").output,
              HasSubstr("! w1 is limited by an operator to load-balance numbers 0-31; "
                        "task types send_mail; millrace cluster limit w1 --none"));
  EXPECT_THAT(Ask("cluster status --json").output, HasSubstr("\"limits\":{"));
  EXPECT_EQ(Ask("cluster limit w1 --handlers any --force").exit_code, 0);
  EXPECT_EQ(Ask("cluster limit w1 --none").exit_code, 0);
  EXPECT_THAT(Ask("cluster status").output, Not(HasSubstr("limited")));
}

TEST_F(ClusterCommandTest, ALimitKeepsThoseOfOtherKindsAndTellsThemAll) {
  EXPECT_EQ(Ask("config set handlers.noop.scan.every 1m").exit_code, 0);
  Register("w1", R"(["noop","send_mail"])");
  EXPECT_EQ(Ask("cluster limit w1 --handlers noop").exit_code, 0);
  const ProcessResult rows = Ask("cluster limit w1 --max-rows noop=500");
  EXPECT_EQ(rows.exit_code, 0) << rows.output;
  EXPECT_THAT(rows.output, HasSubstr("limited to task types noop; 500 rows of noop in a round; its slices"));
  EXPECT_THAT(Look("/control/limits/w1").data,
              AllOf(HasSubstr(R"("handlers":["noop"])"), HasSubstr(R"("max_rows":{"noop":500})")));
  const ProcessResult other = Ask("cluster limit w1 --handlers send_mail --json");
  EXPECT_THAT(other.output, AllOf(HasSubstr(R"("limited":true,"limits":{"handlers":["send_mail"])"),
                                  HasSubstr(R"("max_rows":{"noop":500})")));
}

TEST_F(ClusterCommandTest, TheLimitsOfAWorkerThatIsGoneCanBeEnded) {
  Type(Create("/control/limits/w9", R"({"handlers":["noop"]})"));
  EXPECT_THAT(Ask("cluster status").output, HasSubstr("w9, which is not there, is limited by an operator"));
  EXPECT_EQ(Ask("cluster limit w9 --handlers noop").exit_code, 1) << "there is no such worker";
  const ProcessResult ended = Ask("cluster limit w9 --none");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("its limits are gone"));
  EXPECT_THAT(Ask("cluster status").output, Not(HasSubstr("limited")));
  const ProcessResult again = Ask("cluster limit w9 --none");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("w9 was not limited"), HasSubstr("nothing was changed")));
}

TEST_F(ClusterCommandTest, LimitsThatCanNotBeReadAreNotWrittenOver) {
  Register("w1", R"(["noop"])");
  Type(Create("/control/limits/w1", "rubbish"));
  const ProcessResult refused = Ask("cluster limit w1 --handlers noop");
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("nothing was limited"), HasSubstr("cluster limit w1 --none")));
  EXPECT_EQ(Look("/control/limits/w1").data, "rubbish");
}

TEST_F(ClusterCommandTest, TheLastWorkersAreDrainedOnlyWithAWord) {
  Register("w1", R"(["noop"])");
  Register("w2", R"(["noop"])");
  EXPECT_EQ(Ask("cluster drain w1").exit_code, 0);
  const ProcessResult refused = Ask("cluster drain w2 </dev/null");
  EXPECT_EQ(refused.exit_code, 4) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--yes"));
  EXPECT_EQ(Ask("cluster undrain w1").exit_code, 0);
  EXPECT_EQ(Ask("cluster drain w1 w2 </dev/null").exit_code, 4) << "nor both at once";
  EXPECT_EQ(Ask("cluster drain w1 w2 --yes").exit_code, 0);
  EXPECT_EQ(Ask("cluster status").exit_code, 0) << "nothing waits";
  EXPECT_EQ(Ask("submit --handler noop").exit_code, 0);
  const ProcessResult status = Ask("cluster status");
  EXPECT_EQ(status.exit_code, 1) << status.output;
  EXPECT_THAT(status.output, HasSubstr("work stands still: 1 task waits, and every worker is drained"));
  EXPECT_EQ(Ask("status").exit_code, 1);
}

TEST_F(ClusterCommandTest, WhatNoOtherWorkerMayHaveStaysWithOneThatIsDrained) {
  Register("w1", R"(["noop","send_mail"])");
  Register("w2", R"(["noop"])");
  Type(Create("/assign/w1", R"({"epoch":1,"generation":1,"groups":{"noop":["noop"],"send_mail":["send_mail"]},
      "slices":["main/tasks/0@noop","main/tasks/0@send_mail","main/tasks/1@send_mail"]})"));
  const ProcessResult drained = Ask("cluster drain w1");
  EXPECT_EQ(drained.exit_code, 0) << drained.output;
  EXPECT_THAT(drained.output,
              AllOf(HasSubstr("1 slice goes to other workers"), HasSubstr("2 slices stay and go on"),
                    HasSubstr("main/tasks/0-1@send_mail; millrace cluster pause cluster")));
  EXPECT_THAT(Ask("cluster drain w1 --json").output,
              HasSubstr(R"("slices":1,"stay":["main/tasks/0@send_mail","main/tasks/1@send_mail"])"));
}

TEST_F(ClusterCommandTest, WhoMayNotReadTheConfigurationMayDrainAWorker) {
  Register("w1", R"(["noop"])");
  Register("w2", R"(["noop"])");
  Hide("/config/alerts");
  const ProcessResult drained = Ask("cluster drain w1");
  EXPECT_EQ(drained.exit_code, 0) << drained.output;
  EXPECT_THAT(drained.output, AllOf(HasSubstr("which stay is not known: "),
                                    HasSubstr("what other workers may have goes to them; what runs")));
  EXPECT_THAT(Look("/control/drain/w1").data, HasSubstr("\"by\""));
  EXPECT_THAT(Ask("cluster drain w2 --yes --json").output, HasSubstr(R"("slices":null,"stay":null)"));
}

TEST_F(ClusterCommandTest, WhereNobodyAsksForADoorbellTheStatusSaysWhatOneWouldGive) {
  const std::string advice = "no doorbell in main: what a plain INSERT adds waits for the next poll";
  EXPECT_THAT(Ask("cluster status").output, Not(HasSubstr(advice))) << "no worker is there";
  Register("w1", R"(["noop"])");
  Type(Create("/control/drain/w1", "{}"));  // else work stands still for want of a leader
  Type(Create("/status/w1", R"({"shards":{"main":{"doorbell":"off"}}})"));
  const ProcessResult status = Ask("cluster status");
  EXPECT_EQ(status.exit_code, 0) << "advice is no trouble: " << status.output;
  EXPECT_THAT(status.output, HasSubstr(advice));
  Type(Set("/status/w1", R"({"shards":{"main":{"doorbell":"off: no log"}}})"));
  EXPECT_THAT(Ask("cluster status").output,
              AllOf(Not(HasSubstr(advice)), HasSubstr("the doorbell of shard main at w1 is off: no log")));
}

TEST_F(ClusterCommandTest, WhatIsNotKnownOfAShardIsAQuestionMark) {
  Type(Set("/config/shards", R"({"main":{"url":"mysql://nobody@127.0.0.1:1/none"}})"));
  const ProcessResult status = Ask("cluster status");
  EXPECT_EQ(status.exit_code, 1) << status.output;
  EXPECT_THAT(status.output, AllOf(HasSubstr("main   away         ?  ?"), Not(HasSubstr("nothing is due")),
                                   HasSubstr("! no shard answers here")));
  EXPECT_THAT(Ask("cluster status --json").output,
              HasSubstr("{\"shard\":\"main\",\"reachable\":false,\"waiting\":null"));
}

TEST_F(ClusterCommandTest, WhereNobodySaysWhichShardsThereAreTheStatusDoes) {
  EXPECT_EQ(InFolder("MILLRACE_STORE= " + Binary() + " cluster status").exit_code, 0) << "nobody works yet";
  Type(Create("/workers/w1", "{}"));
  Type(Create("/control/drain/w1", "{}"));  // else work stands still for want of a leader
  for (const char* json : {"", " --json"}) {
    const ProcessResult status = InFolder("MILLRACE_STORE= " + Binary() + " cluster status" + json);
    EXPECT_EQ(status.exit_code, 1) << status.output;
    EXPECT_THAT(status.output, HasSubstr(*json == '\0' ? "the shards are not shown: no store is named"
                                                       : R"("shards":null,"shards_error":"no store is)"));
  }
}

TEST_F(ClusterCommandTest, AWatchedStatusGoesByTheConfigurationOfNow) {
  Write("shards.json", R"({"east":{"url":")" + Store() + "\"}}");
  Write("alerts.json", R"({"failed":{"kind":"failed","webhook":"http://127.0.0.1:1/"}})");
  Write("watch", Binary() + " status --watch --sample 0s --json >shown & pid=$!\n" +
                     "until [ -s shown ]; do sleep 0.05; done\n" + Binary() +
                     " config set alerts @alerts.json\n" + Binary() + " config set shards @shards.json\n" +
                     "until grep -q '\"shard\":\"east\".*\"alerts\"' shown; do sleep 0.1; done\n" +
                     "kill -INT $pid; wait $pid; echo ended $?\n");
  EXPECT_THAT(InFolder("sh ./watch").output, HasSubstr("ended 0"));
}

// Whoever connects to it waits for its first word until the time is up: 5 s.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, place, size), 0);
    EXPECT_EQ(listen(socket_, 64), 0);
    EXPECT_EQ(getsockname(socket_, place, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { close(socket_); }
  std::string Url() const { return "mysql://nobody@127.0.0.1:" + std::to_string(port_) + "/none"; }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  std::uint16_t port_ = 0;
};

TEST_F(ClusterCommandTest, ShardsThatAreAwayCostTheTimeOfOne) {
  const SilentServer silent;
  nlohmann::json shards;
  for (const char* name : {"a", "b", "c", "d"}) shards[name]["url"] = silent.Url();
  Type(Set("/config/shards", shards.dump()));
  const auto begun = std::chrono::steady_clock::now();
  const ProcessResult all =
      InFolder("(" + Binary() + " cluster status & " + Binary() + " cluster pause cluster & " + Binary() +
               " cluster plan --dry-run & " + Binary() + " doctor & wait) 2>&1");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(14))
      << "four times 5 s, one by one";
  EXPECT_THAT(all.output, AllOf(HasSubstr("no shard answers here"), HasSubstr("shard d: "),
                                HasSubstr("repeat this once the shard is back")));
}

TEST_F(ClusterCommandTest, SlicesOfGroupsAreExplained) {
  Type(Create("/plan", R"({"epoch":1,"groups":{"default":["*"],"mail":["send_mail"]}})"));
  EXPECT_THAT(Ask("cluster status").output,
              AllOf(HasSubstr("once for each of 2 handler groups"), HasSubstr("  mail: send_mail"),
                    HasSubstr("default: every other")));
}

// A real worker, until it has told all that a status shows.
TEST_F(ClusterCommandTest, AStatusShowsWhatAWorkerOfTheClusterTells) {
  EXPECT_EQ(Ask("submit --handler noop --in 1h").exit_code, 0);
  Write("both", Binary() + " worker --id w1 >out 2>noted & pid=$!\n" + "until " + Binary() +
                    " cluster status >seen && grep -q \"^noop \" seen; do sleep 0.1; done\n" + Binary() +
                    " cluster status; echo cluster $?\n" + Binary() + " status; echo status $?\n" +
                    "kill -TERM $pid; wait $pid; exit 0\n");
  const ProcessResult result = InFolder("sh ./both");
  EXPECT_THAT(result.output, AllOf(HasSubstr("leader w1"), HasSubstr("last sign"), HasSubstr("plugin "),
                                   HasSubstr("cluster 0"), HasSubstr("; w1 leads"), HasSubstr("working"),
                                   HasSubstr("nothing is wrong"), HasSubstr("status 0")));
  EXPECT_THAT(Ask("status").output, HasSubstr("1 task waits, and no worker is there"));
}

// Else its unit would be started again and again.
TEST_F(ClusterCommandTest, AWorkerThatStandsByIsReady) {
  Type(Create("/control/drain/w2", "{}"));
  Write("both", Binary() + " worker --id w1 >first 2>&1 & first=$!\n" + Binary() +
                    " worker --id w2 --http :0 >second 2>&1 & second=$!\n" +
                    "until grep -qs '^listening on ' second; do sleep 0.1; done\n" +
                    "port=$(sed -n 's/^listening on .*://p' second)\n" + "for i in $(seq 200); do " +
                    Binary() + " health --ready --http :$port >why 2>&1 && break; sleep 0.1; done\n" +
                    "cat why; " + Binary() + " health --ready --http :$port; echo ready $?\n" +
                    "kill -TERM $first $second; wait; exit 0\n");
  EXPECT_EQ(InFolder("sh ./both").output, "ready 0\n");
}

TEST_F(ClusterCommandTest, SlicesAreRangesForPeopleAndNamesInJson) {
  Type(Create("/assign/w1", R"({"epoch":1,"generation":1,
      "slices":["main/tasks/0","main/tasks/1","main/tasks/2","main/tasks/40"]})"));
  EXPECT_THAT(Ask("cluster slices").output,
              AllOf(HasSubstr("w1      gone        4  main/tasks/0-2,40"), Not(HasSubstr("nobody"))));
  EXPECT_EQ(
      Ask("cluster slices --json").output,
      R"({"workers":[{"id":"w1","state":"gone","slices":["main/tasks/0","main/tasks/1","main/tasks/2","main/tasks/40"]}],"unplaceable":[]})"
      "\n");
}

TEST_F(ClusterCommandTest, SlicesThatNobodyMayHaveAreToldWithTheOthers) {
  Type(
      Create("/plan", R"({"epoch":1,"unplaceable":3,"unplaceable_slices":["main/tasks/7","main/tasks/8"]})"));
  EXPECT_THAT(Ask("cluster slices").output, HasSubstr("nobody  unplaceable       3  main/tasks/7-8 …"));
  EXPECT_EQ(Ask("cluster slices --json").output,
            R"({"workers":[],"unplaceable":["main/tasks/7","main/tasks/8"]})"
            "\n");
}

TEST_F(ClusterCommandTest, WhatIsReadIsAnObjectWithANamedList) {
  EXPECT_EQ(Ask("config set engine.poll 100ms").exit_code, 0);
  Register("w1", "null");
  for (const auto& [command, list] :
       std::map<std::string, const char*>{{"cluster slices", "workers"},
                                          {"cluster status", "workers"},
                                          {"cluster status ", "shards"},
                                          {"cluster slices --why main/tasks/1", "workers"},
                                          {"cluster plan --dry-run", "list"},
                                          {"config get", "parts"},
                                          {"config get engine", "parts"},
                                          {"config get engine.poll", "values"},
                                          {"config get --effective engine", "values"},
                                          {"config history engine", "versions"},
                                          {"schema check", "findings"},
                                          {"handler list", "handlers"},
                                          {"task list", "tasks"}}) {
    const ProcessResult answer = Ask(command + " --json 2>/dev/null");
    const auto json = nlohmann::json::parse(answer.output, nullptr, false);
    ASSERT_TRUE(json.is_object()) << command << answer.output;
    EXPECT_TRUE(json.contains(list) && json[list].is_array()) << command << answer.output;
  }
  for (const auto& [command, code] :
       std::map<std::string, const char*>{{"config get engine.lease", "not_found"},
                                          {"task show 17", "not_found"},
                                          {"cluster slices --why main/tasks/99", "invalid"},
                                          {"task shwo", "invalid"}}) {
    const ProcessResult answer = Ask(command + " --json 2>&1 >/dev/null");
    const auto json = nlohmann::json::parse(answer.output, nullptr, false);
    ASSERT_TRUE(json.is_object() && json.contains("error")) << command << answer.output;
    EXPECT_EQ(json["error"]["code"], code);
    EXPECT_TRUE(json["error"]["message"].is_string());
  }
}

TEST_F(ClusterCommandTest, AWorkerOfATypeThatNobodyConfiguredIsRefused) {
  const ProcessResult refused = Ask("worker --id w1 --handlers noop,monthly --until-idle");
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("no plugin here runs the task type 'monthly'"));
  EXPECT_EQ(Ask("config set handlers.monthly.uses noop").exit_code, 0);
  const ProcessResult run = Ask("worker --id w1 --handlers noop,monthly --load-balance 0-70 --until-idle");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("no table has the numbers 64-70"));
}

TEST_F(ClusterCommandTest, AWorkerOfPlacesThatAreNotThereIsRefusedWhereItWouldNeverEnd) {
  const ProcessResult table = Ask("worker --id w1 --tables taks --until-idle");
  EXPECT_EQ(table.exit_code, 2) << table.output;
  EXPECT_THAT(table.output, HasSubstr("--tables: there is no task table 'taks' (did you mean 'tasks'?)"));
  const ProcessResult shard = Ask("worker --id w1 --shards mian --until-idle");
  EXPECT_EQ(shard.exit_code, 2) << shard.output;
  EXPECT_THAT(shard.output, HasSubstr("--shards: there is no shard 'mian' (did you mean 'main'?)"));
}

TEST_F(ClusterCommandTest, AHandlerIsTriedWithTheClustersConfigurationWhateverStoreIsNamed) {
  Write("exec.json", R"({"exec":{"options":{"program":"/bin/sh","args":["-c","exit 3"]}}})");
  EXPECT_EQ(Ask("config set handlers @exec.json").exit_code, 0);
  for (const std::string& store : {std::string(), " --store " + Store()}) {
    const ProcessResult tried = Ask("handler run exec" + store);
    EXPECT_EQ(tried.exit_code, 1) << tried.output;
    EXPECT_THAT(tried.output, HasSubstr("retry"));
  }
}

// Without the refusal it would wait for slices that go to the other, and end as if all were done.
TEST_F(ClusterCommandTest, AnIdInUseIsRefusedAtOnceByAWorkerThatIsToEnd) {
  Register("w1", "null");
  const ProcessResult refused = Ask("worker --id w1 --until-idle --session-timeout 2m");
  EXPECT_EQ(refused.exit_code, 4) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("the worker id w1 is in use in the cluster"));
}

// The server writes no log that could ring: `submit` does, at the address that the worker's node names.
TEST_F(ClusterCommandTest, WhatIsSubmittedStartsAtOnceThoughTheWorkerPollsOnceAMinute) {
  EXPECT_EQ(Ask("config set engine.poll 1m").exit_code, 0);
  const ProcessResult ran = InFolder(
      "{ " + Binary() + " worker --id w1 --state-dir state >worker.log 2>&1 & worker=$!; i=0; " +
      "until [ $i -gt 100 ] || " + Binary() + " cluster status --json | grep -q '\"slices\":64'; do " +
      "sleep 0.1; i=$((i+1)); done; sleep 2; " + "timeout 15 " + Binary() +
      " submit --handler noop --wait; code=$?; " + "kill $worker; wait $worker; exit $code; }");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("1 succeeded"));
}

}  // namespace
}  // namespace millrace::engine::testing
