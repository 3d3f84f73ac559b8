// What a person gets wrong, with the exit status and a part of what is said.
#include "tests/integration/command/command_fixture.h"

namespace millrace::engine::testing {
namespace {

struct BadInput {
  const char* arguments;
  int exit_code;
  const char* says;
};

const BadInput kTable[] = {
    {"", 2, "--help"},
    {"sumbit --handler noop", 2,
     "there is no command 'sumbit' (did you mean 'submit'?); see millrace --help"},
    {"task shwo 1", 2, "there is no command 'shwo' (did you mean 'show'?); see millrace task --help"},
    {"task", 2, "see millrace task --help"},
    {"submit", 2, "--handler NAME"},
    {"submit --handler awrd_points", 2, "did you mean 'award_points'?"},
    {"submit --handler noop --params \"{a\"", 2, "not JSON"},
    {"submit --handler noop --params \"[]\"", 2, "--params: params are a JSON object"},
    {"submit --handler noop --params \"{\\\"a\\\":1,\\\"a\\\":2}\"", 2, "the member 'a' twice in one object"},
    {"submit --handler noop --priority 10", 2, "--priority"},
    {"submit --handler noop --count 0", 2, "--count must be 1 or more"},
    {"submit --handler noop --count -1", 2, "--count must be 1 or more"},
    {"submit --handler noop --count 010", 2,
     "--count: '010' begins with a zero; write the number without zeros in front of it; see millrace submit"},
    {"submit --handler noop --count 0x10", 2, "--count: '0x10' is no whole number; write it in decimal"},
    {"submit --handler noop --count +5", 2, "--count: '+5' is no whole number"},
    {"submit --handler noop --count -", 2, "--count: '-' is no whole number"},
    {"task list --slice 017", 2, "--slice: '017' begins with a zero"},
    {"task list --priority 07", 2, "--priority: '07' begins with a zero"},
    {"config rollback handlers 0000000010", 2, "version: '0000000010' begins with a zero"},
    {"submit --handler noop --count 1000000000000", 2, "--count is beyond the limit of 1,000,000,000"},
    {"submit --handler noop --count 99999999999999999999", 2, "--count is beyond the limit of 1,000,000,000"},
    {"submit --handler noop --count 1000001 </dev/null", 4,
     "there is no terminal to ask on (submit 1,000,001 tasks of noop to"},
    {"submit --handler flakey --config flaky.json", 2, "'flakey' (did you mean 'flaky'?)"},
    {"submit --handler noop --key-prefix x", 2, "--key-prefix goes with --from"},
    {"submit --handler noop --text-columns a", 2, "--text-columns goes with --from"},
    {"submit --handler noop --format csv", 2, "--format goes with --from"},
    {"submit --handler noop --format xml --from rows.csv", 2, "--format"},
    {"submit --handler noop --from rows.txt", 2, "--format csv or --format jsonl"},
    {"submit --handler noop --from rows.csv --text-columns nmae", 2, "did you mean 'name'?"},
    {"submit --handler noop --at yesterday", 2, "is not a time"},
    {"submit --handler noop --in soon", 2, "is not a duration"},
    {"submit --handler noop --from missing.csv", 2, "No such file"},
    {"submit --handler noop --from rows.csv --key-column nme", 2, "did you mean 'name'?"},
    {"submit --handler noop --store postgres://x", 2, "is not a kind of store"},
    {"submit --handler noop --store mysql://u:secret@h/d", 2, "MILLRACE_PASSWORD_FILE"},
    {"submit --handler noop --store mysql://u@127.0.0.1:1/d", 3, "127.0.0.1:1"},
    {"worker --store mysql://u@127.0.0.1:1/d --wait 1s", 3, "gave up after 1 s"},
    {"worker", 2, "MILLRACE_STORE"},
    {"run --store mysql://u@127.0.0.1:1/d", 2,
     "run millrace worker --store 'mysql://u@127.0.0.1:1/d' instead"},
    {"run --zk 127.0.0.1:1", 2, "--zk: millrace run is one process without a cluster"},
    {"worker --zk 127.0.0.1:1 --store sqlite:made.db", 2, "leave ZooKeeper out (--zk, MILLRACE_ZK)"},
    {"coordinator --zk 127.0.0.1:1 --store sqlite:made.db", 2,
     "sqlite:made.db: a cluster's shard is on a server"},
    {"worker --zk 127.0.0.1:1 --store mysql://u@h/d --wait 1s --id \"a b\"", 2, "'a b' is not a worker id"},
    {"worker --zk 127.0.0.1:1 --store mysql://u@h/d --wait 1s --load-balance 5-2", 2,
     "--load-balance: '5-2'"},
    {"worker --zk 127.0.0.1:1 --wait 1s", 3, "can't reach ZooKeeper at 127.0.0.1:1"},
    {"cluster status --zk 127.0.0.1:1", 3, "does not answer yet; trying for 17s more"},
    {"worker --store sqlite:x.db --weight 3", 2, "--weight is for a worker of a cluster"},
    {"worker --store sqlite:made.db --session-timeout 30s --until-idle", 2,
     "--session-timeout is for a worker of a cluster: give --zk, too"},
    {"worker --store sqlite:made.db --handlers nop --until-idle", 2, "'nop' (did you mean 'noop'?)"},
    {"worker --store sqlite:made.db --load-balance 64-70 --until-idle", 2, "the tables have 0 to 63"},
    {"worker --store sqlite:made.db --load-balance \"\" --until-idle", 2,
     "--load-balance has an empty value; give it one, or leave it out; see millrace worker --help"},
    {"worker --store sqlite:made.db --load-balance= --until-idle", 2, "--load-balance"},
    {"worker --store sqlite:made.db --load-balance , --until-idle", 2, "--load-balance"},
    {"worker --store sqlite:made.db --handlers \"\" --until-idle", 2, "--handlers has an empty value"},
    {"submit --handler noop --store \"\"", 2, "--store has an empty value"},
    {"handler list --config missing.json", 2, "missing.json"},
    {"handler list --config wrong.json", 2, "wrong.json:2: engine.bach: unknown key (did you mean 'batch'?)"},
    {"handler list --json --config wrong.json", 2, "wrong.json:2: engine.bach"},
    {"cluster status", 2, "MILLRACE_ZK"},
    {"cluster pause nonsense", 2, "nonsense"},
    {"config get bogus --zk 127.0.0.1:1", 2, "there is no part 'bogus'"},
    {"run --config wrong.json", 2, "wrong.json:2: engine.bach: unknown key (did you mean 'batch'?)"},
    {"run --load-balance 1", 2, "run --help"},
    {"cluster plan", 2, "--simulate"},
    {"cluster plan --simulate cluster.json --without w1", 2, "--without is for the live cluster"},
    {"cluster plan --simulate missing.json", 2, "missing.json can't be read: No such file"},
    {"task show 1", 2, "does not exist"},
    {"task list --since soon --store sqlite:made.db", 2, "--since: 'soon' is neither a duration"},
    {"task retry --all-matching", 2, "needs a filter"},
    {"handler run noop --config secret.json", 2,
     "the environment variable MILLRACE_NO_SUCH_SECRET is not set"},
    {"handler run", 2, "name a task type: millrace handler run NAME"},
    {"task list --limit -3", 2, "--limit: Value -3 not in range"},
    {"task list --limit 0", 2, "--limit: Value 0 not in range"},
    {"task list --limit abc", 2, "--limit: 'abc' is no whole number"},
    {"task list --state wating", 2, "is no task state"},
    {"run --store sqlite:loop/x.db", 3, "loop/x.db.lock can't be opened: Too many levels"},
    {"task list --store sqlite:loop/x.db", 2, "'loop/x.db' can't be examined: Too many levels"},
    {"task list --store sqlite:$long", 2, "nnn' can't be examined: File name too long"},
    {"run --plugins loop", 2, "the plugin folder 'loop' can't be opened: Too many levels"},
    {"submit --handler noop --plugins $long", 2, "nnn' can't be examined: File name too long"},
    {"run --state-dir loop/x", 2,
     "the state folder 'loop/x' can't be made: Too many levels of symbolic links; mend that, or name "
     "another"},
    {"run --state-dir open", 2, "the state folder 'open' can be written by others"},
    {"run --config loop", 2, "loop"},
    {"run --config .", 2,
     "the configuration file . can't be read: Is a directory; give another with --config"},
    {"submit --handler noop --from loop.csv", 2, "loop.csv can't be read: Too many levels"},
    {"cluster plan --simulate $long", 2, "nnn can't be read: File name too long"},
};

TEST_F(CommandTest, BadInputSaysWhatWhereAndWhatToDo) {
  Write("rows.csv", "id,name\n1,a\n");
  Write("wrong.json", "{\"engine\": {\n\"bach\": 1}}\n");
  Write("cluster.json", R"({"workers":[{"id":"w1"},{"id":"w2"}],"slices":[{"id":"a"}]})");
  Write("flaky.json", R"({"handlers":{"flaky":{"uses":"exec"}}})");
  Write("secret.json",
        R"({"handlers":{"noop":{"secrets":{"token":{"variable":"MILLRACE_NO_SUCH_SECRET"}}}}})");
  Run("schema apply --store sqlite:made.db");
  std::filesystem::create_symlink("loop", folder_ + "/loop");
  std::filesystem::create_symlink("loop.csv", folder_ + "/loop.csv");
  std::filesystem::create_directory(folder_ + "/open");
  std::filesystem::permissions(folder_ + "/open", std::filesystem::perms::all);
  for (const BadInput& bad : kTable) {
    std::string arguments = bad.arguments;
    if (const auto at = arguments.find("$long"); at != std::string::npos)
      arguments.replace(at, 5, std::string(300, 'n'));
    const ProcessResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, bad.exit_code) << bad.arguments << "\n" << result.output;
    EXPECT_THAT(result.output, ::testing::HasSubstr(bad.says)) << bad.arguments;
  }
}

// Root may do without rights what nobody else may, until it gives that up.
TEST_F(CommandTest, APathWithoutRightsIsNamed) {
  std::filesystem::create_directory(folder_ + "/shut");
  std::filesystem::permissions(folder_ + "/shut", std::filesystem::perms::none);
  const std::string runner = geteuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all" : "";
  const BadInput table[] = {
      {"run --store sqlite:shut/x.db", 3, "shut/x.db.lock can't be opened: Permission denied"},
      {"task list --store sqlite:shut/x.db", 2, "'shut/x.db' can't be examined: Permission denied"},
      {"run --plugins shut", 2, "/shut' can't be read: Permission denied"},
      {"run --state-dir shut/x", 2, "the state folder 'shut/x' can't be made: Permission denied"},
      {"run --config shut/c.json", 2, "the configuration file shut/c.json can't be read: Permission denied"},
      {"submit --handler noop --from shut/rows.csv", 2, "shut/rows.csv can't be read: Permission denied"},
      {"cluster plan --simulate shut/c.json", 2, "shut/c.json can't be read: Permission denied"},
  };
  for (const BadInput& bad : table) {
    const ProcessResult result = Run(bad.arguments, runner);
    EXPECT_EQ(result.exit_code, bad.exit_code) << bad.arguments << "\n" << result.output;
    EXPECT_THAT(result.output, ::testing::HasSubstr(bad.says)) << bad.arguments;
  }
  std::filesystem::permissions(folder_ + "/shut", std::filesystem::perms::owner_all);  // to be removed
}

}  // namespace
}  // namespace millrace::engine::testing
