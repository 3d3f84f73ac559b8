// The command and a server that refuses it, is away, or returns.
#include <gmock/gmock.h>
#include <poll.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/integration/command/command_fixture.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"

namespace millrace::engine::testing {
namespace {

using ::testing::HasSubstr;

class CommandServerTest : public CommandTest {
 protected:
  std::string Store() const {
    return " --store mysql://millrace@127.0.0.1:" + std::to_string(server_.port()) + "/" +
           database_.url().database;
  }
  // `what` with the server's password, or with the one in `password_file`.
  ProcessResult Ask(const std::string& what, const std::string& password_file) const {
    return RunProcess("cd " + folder_ + " && HOME=" + folder_ + " MILLRACE_PASSWORD_FILE=" + password_file +
                          " " + Binary() + " " + what,
                      90);
  }
  ProcessResult Ask(const std::string& what) const { return Ask(what, server_.password_file()); }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }

  PrivateMariadb server_;
  TestDatabase database_{ServerOf(server_)};
};

TEST_F(CommandServerTest, AWrongPasswordIsWrongInputAndIsNotWaitedFor) {
  Write("wrong", "not-it\n");
  std::filesystem::permissions(folder_ + "/wrong", std::filesystem::perms::owner_read);
  const ProcessResult result = Ask("worker --wait 1m" + Store(), folder_ + "/wrong");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("MILLRACE_PASSWORD_FILE"));
  EXPECT_THAT(result.output, ::testing::Not(HasSubstr("not-it")));
  EXPECT_THAT(result.output, ::testing::Not(HasSubstr("waiting for")));
}

TEST_F(CommandServerTest, AServerThatStaysAwayEndsTheWait) {
  server_.Stop();
  const ProcessResult result = Ask("worker --wait 1s" + Store());
  server_.Start();
  EXPECT_EQ(result.exit_code, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("waiting for "));
  EXPECT_THAT(result.output, HasSubstr("gave up after 1 s"));
}

TEST_F(CommandServerTest, AStopWhileItWaitsForTheServerIsAnEndInGoodOrder) {
  server_.Stop();
  const ProcessResult result =
      RunProcess("cd " + folder_ + " && HOME=" + folder_ + " timeout --preserve-status 3 " + Binary() +
                 " worker --wait 1m" + Store());
  server_.Start();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("stopped while waiting for mysql://127.0.0.1:"));
}

TEST_F(CommandServerTest, AnAddressWithoutAServerIsToldWithWhatToDo) {
  for (const char* command : {"status", "submit --handler noop", "task why 1"}) {
    const ProcessResult away = Ask(std::string(command) + " --store mysql://millrace@127.0.0.1:1/work");
    EXPECT_EQ(away.exit_code, 3) << away.output;
    EXPECT_THAT(away.output, HasSubstr("start it, or correct host and port in the store URL")) << command;
    const ProcessResult lost =
        Ask(std::string(command) + " --store mysql://millrace@no-such-host.invalid/work");
    EXPECT_EQ(lost.exit_code, 3) << lost.output;
    EXPECT_THAT(lost.output, HasSubstr("correct")) << command;
  }
}

TEST_F(CommandServerTest, AServerThatReturnsWithinTheWaitIsWorkedOn) {
  ASSERT_EQ(Ask("schema apply" + Store()).exit_code, 0);
  ASSERT_EQ(Ask("submit --handler noop --count 3" + Store()).exit_code, 0);
  server_.Stop();
  ProcessResult result;
  std::thread worker([&] { result = Ask("worker --wait 1m --until-idle --id w1" + Store() + " 2>noted"); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Read("noted").find("waiting for ") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline) {
    poll(nullptr, 0, 20);
  }
  server_.Start();
  worker.join();
  EXPECT_EQ(result.exit_code, 0) << Read("noted");
  EXPECT_THAT(Read("noted"), HasSubstr("waiting for "));
  EXPECT_THAT(result.output, HasSubstr("3 succeeded, 0 failed"));
}

TEST_F(CommandServerTest, SubmitWaitsForWhatAWorkerMakesOfItsTasks) {
  ASSERT_EQ(Ask("schema apply" + Store()).exit_code, 0);
  SqlConnection sql(database_.url(), database_.password_file());
  ProcessResult submitted;
  std::thread submit(
      [&] { submitted = Ask("submit --handler noop --key k --wait --json 2>noted" + Store()); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (sql.Ask("SELECT COUNT(*) FROM tasks") != "1" && std::chrono::steady_clock::now() < deadline) {
    poll(nullptr, 0, 20);
  }
  EXPECT_EQ(Ask("worker --until-idle --id w1" + Store()).exit_code, 0);
  submit.join();
  EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
  EXPECT_THAT(submitted.output, HasSubstr("\"submitted\":1"));
  EXPECT_THAT(submitted.output, HasSubstr("\"outcomes\":{\"succeeded\":1"));
  const ProcessResult again = Ask("submit --handler noop --key k --wait" + Store());
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("there already"));
  EXPECT_THAT(again.output, HasSubstr("1 succeeded, 0 failed")) << "the task that has the key";
}

TEST_F(CommandServerTest, AWorkerWhoseLifeSomebodyEndsByHandBeginsANewOne) {
  ASSERT_EQ(Ask("schema apply" + Store()).exit_code, 0);
  SqlConnection sql(database_.url(), database_.password_file());
  for (const char* harm : {"UPDATE millrace_incarnations SET dead=1", "DELETE FROM millrace_incarnations"}) {
    // Due so soon that the worker waits for them, and not before its life has been ended.
    ASSERT_EQ(Ask("submit --handler noop --count 100 --in 2s" + Store()).exit_code, 0);
    ProcessResult result;
    std::thread worker([&] { result = Ask("worker --until-idle --id w1" + Store()); });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (sql.Ask("SELECT COUNT(*) FROM millrace_incarnations WHERE dead=0") != "1" &&
           std::chrono::steady_clock::now() < deadline) {
      poll(nullptr, 0, 20);
    }
    sql.Ask(harm);
    const auto released = std::chrono::steady_clock::now();
    worker.join();
    EXPECT_LT(std::chrono::steady_clock::now() - released, std::chrono::seconds(10)) << harm;
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("this run: 100 tasks")) << harm;
  }
}

TEST_F(CommandServerTest, AQueryWithAKeyColumnHasNoLimitAndMayBeSubmittedAgain) {
  ASSERT_EQ(Ask("schema apply" + Store()).exit_code, 0);
  SqlConnection sql(database_.url(), database_.password_file());
  sql.Ask("CREATE TABLE numbers (seq INT PRIMARY KEY)");
  sql.Ask("INSERT INTO numbers VALUES (1)");
  for (int rows = 1; rows < 100'001; rows *= 2)
    sql.Ask("INSERT INTO numbers SELECT seq+" + std::to_string(rows) + " FROM numbers");
  const auto submit = [&](int rows, const std::string& more) {
    return Ask("submit --handler noop --from-query \"SELECT seq FROM numbers WHERE seq<=" +
               std::to_string(rows) + "\"" + more + Store());
  };
  const ProcessResult without = submit(100'001, "");
  EXPECT_EQ(without.exit_code, 2) << without.output;
  EXPECT_THAT(without.output, HasSubstr("more than 100,000 rows, and nothing was added: give --key-column"));
  EXPECT_EQ(submit(100'001, " --key-column seq --all-or-nothing").exit_code, 2) << "it is one transaction";
  EXPECT_THAT(submit(50'000, " --key-column seq").output, HasSubstr("50,000 submitted, 0 there already"));
  EXPECT_THAT(submit(100'001, " --key-column seq").output,
              HasSubstr("50,001 submitted, 50,000 there already"));
  EXPECT_EQ(sql.Ask("SELECT COUNT(*) FROM tasks"), "100001");
  EXPECT_EQ(sql.Ask("SELECT COUNT(DISTINCT biz_key) FROM tasks"), "100001");
}

TEST_F(CommandServerTest, AQueryThatWouldWriteAFileWritesNone) {
  ASSERT_EQ(Ask("schema apply" + Store()).exit_code, 0);
  const std::string file = folder_ + "/written";
  for (const char* into : {" INTO", ".5INTO"}) {
    const ProcessResult result = Ask("submit --handler noop --from-query \"SELECT 1" + std::string(into) +
                                     " OUTFILE \\\"" + file + "\\\"\"" + Store());
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("INTO"));
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

}  // namespace
}  // namespace millrace::engine::testing
