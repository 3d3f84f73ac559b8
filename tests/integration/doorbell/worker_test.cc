// A worker with a doorbell on a real server: a plain INSERT starts at once, and whatever is wrong with the
// doorbell changes nothing but time.
#include <thread>

#include "logging_server.h"
#include "tests/support/tcp_proxy.h"
#include "tests/unit/worker/worker_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DoorbellOnAServer : public WorkerFixture {
 protected:
  static LoggingServer& Logging() {
    static LoggingServer logging;
    return logging;
  }
  DoorbellOnAServer() : sql_(Logging().Connect()) {
    for (const char* table : {"tasks", "tasks_done"}) sql_->Ask(std::string("DELETE FROM ") + table);
    plugins_.behaviours["quick"] = [this](auto tasks, auto&) {
      runs_ += static_cast<int>(tasks.size());
      return std::vector<Outcome>(tasks.size());
    };
  }

  void StartWith(std::optional<DoorbellAccount> account, Micros poll, std::uint16_t port = 0) {
    config_.engine.poll = poll;
    store_ = Logging().Open(port == 0 ? Logging().server().port() : port, std::move(account));
    control_.shards.Set({{"main", store_}});
    worker_ = Start(false);
    ASSERT_TRUE(Eventually(*worker_, [&] {
      const WorkerStatus status = worker_->Status();
      return !status.shards.empty() && status.shards[0].reachable;
    }));
  }
  std::string Bell() { return worker_->Status().shards[0].doorbell; }
  bool Says(const std::string& what) {
    return Eventually(*worker_, [&] { return Bell().find(what) != std::string::npos; });
  }
  void ExpectRuns(int tasks) {
    const int before = runs_;
    for (int i = 0; i < tasks; ++i) sql_->Ask("INSERT INTO tasks (handler) VALUES ('quick')");
    EXPECT_TRUE(Eventually(*worker_, [&] { return runs_ >= before + tasks; })) << Bell();
    EXPECT_TRUE(Eventually(*worker_, [&] { return sql_->Ask("SELECT COUNT(*) FROM tasks") == "0"; }));
    EXPECT_EQ(runs_, before + tasks);
  }
  // The connection by which the doorbell follows the log.
  static std::string Follower() {
    return Logging().server().AsRoot(
        "SELECT id FROM information_schema.processlist WHERE command='Binlog Dump' LIMIT 1");
  }

  std::unique_ptr<SqlConnection> sql_;
  std::atomic<int> runs_{0};
  std::shared_ptr<Store> store_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(DoorbellOnAServer, APlainInsertIsHeardOf) {
  StartWith(Logging().Bell(), minutes(10));
  ASSERT_TRUE(Says("on"));
  for (int i = 0; i < 3; ++i) ExpectRuns(1);
}

TEST_F(DoorbellOnAServer, ATransactionThatCommitsLateIsHeardOf) {
  StartWith(Logging().Bell(), minutes(10));
  ASSERT_TRUE(Says("on"));
  sql_->Ask("BEGIN");
  sql_->Ask("INSERT INTO tasks (handler) VALUES ('quick')");
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_EQ(runs_, 0);
  sql_->Ask("COMMIT");
  EXPECT_TRUE(Eventually(*worker_, [&] { return runs_ == 1; }));
}

// By the connections that it has: the first task that comes waits for no other.
TEST_F(DoorbellOnAServer, WhileNothingIsWrittenTheShardIsAskedEveryFourSeconds) {
  StartWith(Logging().Bell(), milliseconds(200));
  ASSERT_TRUE(Says("on"));
  std::this_thread::sleep_for(seconds(5));
  PrivateMariadb& server = Logging().server();
  const auto counted = [&](const std::string& what) {
    return std::stoi(server.AsRoot("SELECT COUNT(*) FROM mysql.general_log WHERE " + what));
  };
  for (int i = 0; i < 3; ++i) {  // again where the server was so slow that it counted as silent
    const std::string follower = Follower();
    server.AsRoot("SET GLOBAL log_output='TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log=ON");
    std::this_thread::sleep_for(milliseconds(13'500));
    server.AsRoot("SET GLOBAL general_log=OFF");
    if (Follower() == follower) break;
  }
  const int maps = counted("argument LIKE 'SELECT %FORCE INDEX (due)%'");
  EXPECT_GE(maps, 3);
  EXPECT_LE(maps, 4);
  EXPECT_EQ(counted("command_type='Connect' AND argument NOT LIKE 'root@%' AND argument NOT LIKE 'bell@%'"),
            0);

  server.AsRoot("SET SESSION sql_log_bin=0; INSERT INTO " + Logging().database() +
                ".tasks (handler) VALUES ('quick')");
  EXPECT_TRUE(Eventually(*worker_, [&] { return runs_ == 1; }));
}

TEST_F(DoorbellOnAServer, OneThatIsCutComesBackAndNothingIsLost) {
  StartWith(Logging().Bell(), milliseconds(200));
  std::string killed;
  for (int i = 0; i < 3; ++i) {
    std::string follower;
    ASSERT_TRUE(Eventually(*worker_, [&] {
      follower = Follower();
      return !follower.empty() && follower != killed;
    })) << Bell();
    Logging().server().AsRoot("KILL " + follower);
    killed = follower;
    ExpectRuns(5);
  }
  EXPECT_TRUE(Says("on"));
}

TEST_F(DoorbellOnAServer, ASilentServerIsPolledAgainAndHeardAgain) {
  StartWith(Logging().Bell(), milliseconds(200));
  ASSERT_TRUE(Says("on"));
  Logging().server().Pause();
  EXPECT_TRUE(Says("silent")) << Bell();
  Logging().server().Resume();
  ExpectRuns(5);
  EXPECT_TRUE(Says("on")) << Bell();
}

TEST_F(DoorbellOnAServer, AFloodIsPolledThrough) {
  StartWith(Logging().Bell(), milliseconds(200));
  ASSERT_TRUE(Says("on"));
  Logging().server().AsRoot(
      "CREATE DATABASE IF NOT EXISTS other; DROP TABLE IF EXISTS other.flood; CREATE TABLE other.flood (t "
      "MEDIUMTEXT); "
      "INSERT INTO other.flood VALUES (CONCAT(UUID(), REPEAT('x', 5000000))); "
      "INSERT INTO other.flood VALUES (CONCAT(UUID(), REPEAT('x', 5000000)))");
  EXPECT_TRUE(Says("MB a second")) << Bell();
  ExpectRuns(5);
}

TEST_F(DoorbellOnAServer, OneThatIsSlowIsPolledThrough) {
  TcpProxy proxy(Logging().server().port());
  proxy.Spoil(TcpProxy::Log::Late);
  StartWith(Logging().Bell(), milliseconds(200), proxy.port());
  EXPECT_TRUE(Says("silent")) << Bell();
  for (int i = 0; i < 3; ++i) ExpectRuns(5);
}

TEST_F(DoorbellOnAServer, OneThatLiesIsPolledThrough) {
  TcpProxy proxy(Logging().server().port());
  proxy.Spoil(TcpProxy::Log::Lie);
  StartWith(Logging().Bell(), milliseconds(200), proxy.port());
  for (int i = 0; i < 10; ++i) ExpectRuns(5);
  EXPECT_GT(proxy.done(), 0);
}

TEST_F(DoorbellOnAServer, OneThatMayNotOrCanNotListenSaysSo) {
  StartWith(DoorbellAccount{"bell", ""}, milliseconds(200));
  EXPECT_TRUE(Says("user or password are wrong")) << Bell();
  ExpectRuns(5);
  worker_.reset();
  StartWith(DoorbellAccount{}, milliseconds(200));
  EXPECT_TRUE(Says("GRANT it REPLICATION SLAVE")) << Bell();
  ExpectRuns(5);
}

TEST_F(DoorbellOnAServer, OneThatNobodyAskedForIsOff) {
  StartWith(std::nullopt, milliseconds(200));
  EXPECT_EQ(Bell(), "off");
  ExpectRuns(5);
}

}  // namespace
}  // namespace millrace::engine
