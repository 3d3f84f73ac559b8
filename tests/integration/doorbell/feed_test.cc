// What a server's binary log says to a doorbell, and what the doorbell says when there is something wrong
// with it.
#include <gmock/gmock.h>

#include <cctype>
#include <chrono>
#include <thread>

#include "logging_server.h"
#include "tests/support/tcp_proxy.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class BinlogFeed : public ::testing::Test {
 protected:
  static LoggingServer& Logging() {
    static LoggingServer logging;
    return logging;
  }
  BinlogFeed() : sql_(Logging().Connect()) { OpenFeed(Logging().Bell()); }

  void OpenFeed(std::optional<DoorbellAccount> account, std::uint16_t port = Logging().server().port()) {
    store_ = Logging().Open(port, std::move(account));
    feed_ = store_->OpenChanges([](const TableName& table) { return table == "tasks"; });
  }
  // The next ring, or the error that ends the feed; nullopt: none within some seconds.
  std::optional<Result<Ring>> Next(seconds limit = seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < deadline) {
      auto rings = feed_->Next();
      if (!rings) return Result<Ring>(Fail(rings.error()));
      if (!rings->empty()) return Result<Ring>(rings->front());
    }
    return std::nullopt;
  }
  // Whoever tells the slices tells so many rows.
  void ExpectRing(const Ring& ring, std::size_t rows = 1) {
    const auto next = Next();
    ASSERT_TRUE(next);
    ASSERT_TRUE(*next) << next->error().message;
    EXPECT_EQ((*next)->table, ring.table);
    EXPECT_EQ((*next)->slices, ring.slices);
    EXPECT_EQ((*next)->rows.size(), ring.slices.empty() ? 0 : rows);
  }
  void ExpectRefused(ErrorCode code, const std::string& why) {
    const Status opened = feed_->Open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code);
    EXPECT_THAT(opened.error().message, HasSubstr(why));
  }
  void ExpectEnds(ErrorCode code, const std::string& why) {
    const auto next = Next();
    ASSERT_TRUE(next) << "it goes on";
    ASSERT_FALSE(*next);
    EXPECT_EQ(next->error().code, code);
    EXPECT_THAT(next->error().message, HasSubstr(why));
  }
  void Insert(int slice) {
    sql_->Ask("INSERT INTO tasks (handler, slice) VALUES ('noop', " + std::to_string(slice) + ")");
  }

  std::unique_ptr<SqlConnection> sql_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ChangeFeed> feed_;
};

TEST_F(BinlogFeed, IsThereOnlyWhereItIsAskedFor) {
  OpenFeed(std::nullopt);
  EXPECT_EQ(feed_, nullptr);
}

TEST_F(BinlogFeed, AnInsertRingsWithTheSliceThatItIsIn) {
  ASSERT_TRUE(feed_->Open());
  Insert(5);
  const std::uint64_t id = std::stoull(sql_->Ask("SELECT MAX(id) FROM tasks"));
  const auto next = Next();
  ASSERT_TRUE(next && *next);
  EXPECT_EQ(**next, (Ring{kDefaultTable, {5}, {id}}));
  sql_->Ask("INSERT INTO tasks (handler, slice) VALUES ('noop',15), ('noop',0), ('noop',15)");
  ExpectRing({kDefaultTable, {0, 15}}, 3);
}

TEST_F(BinlogFeed, AnInsertThatDrawsItsSliceIsLoggedAsARow) {
  ASSERT_TRUE(feed_->Open());
  sql_->Ask("INSERT INTO tasks (handler) VALUES ('noop')");
  const auto next = Next();
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->table, kDefaultTable);
  EXPECT_EQ((*next)->slices.size(), 1u);
}

TEST_F(BinlogFeed, AnInsertThatIsLoggedAsAStatementRings) {
  ASSERT_TRUE(feed_->Open());
  Logging().server().AsRoot("USE " + Logging().database() +
                            "; SET SESSION binlog_format='STATEMENT'; "
                            "INSERT INTO tasks (handler, slice) VALUES ('noop', 5)");
  ExpectRing({});
}

TEST_F(BinlogFeed, OtherTablesAndOtherDatabasesDoNot) {
  sql_->Ask("CREATE TABLE IF NOT EXISTS orders (id INT AUTO_INCREMENT PRIMARY KEY)");
  ASSERT_TRUE(feed_->Open());
  sql_->Ask("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");  // whose rows are logged
  sql_->Ask("INSERT INTO orders VALUES ()");
  Logging().server().AsRoot(
      "CREATE DATABASE IF NOT EXISTS other; CREATE TABLE IF NOT EXISTS other.tasks (id INT, slice INT, state "
      "INT); "
      "INSERT INTO other.tasks VALUES (1,1,0)");
  Insert(3);
  ExpectRing({kDefaultTable, {3}});
}

TEST_F(BinlogFeed, TellsWhetherAnythingButBeatsWasWritten) {
  const auto lives = store_->OpenIncarnations();
  ASSERT_TRUE(lives->Register({"w1.1", "w1", "h", 1, seconds(10)}));
  const auto in_a_while = [] { return BootClock::now() + HeardWrites::kSeenAfter; };
  const auto unchanged_since = [&](BootTime read) {
    return store_->Heard().UnchangedSince(read, in_a_while());
  };
  const auto hear_an_insert = [&] {
    Insert(1);
    ExpectRing({kDefaultTable, {1}});
  };
  EXPECT_FALSE(unchanged_since(in_a_while())) << "nobody listens";
  ASSERT_TRUE(feed_->Open());
  hear_an_insert();
  EXPECT_FALSE(unchanged_since(in_a_while())) << "no beat was heard: the log may leave the database out";
  ASSERT_TRUE(lives->Renew("w1.1"));
  hear_an_insert();
  const BootTime read = in_a_while();
  EXPECT_TRUE(unchanged_since(read));
  ASSERT_TRUE(lives->Renew("w1.1"));
  EXPECT_FALSE(Next(seconds(1))) << "a beat rings nobody";
  EXPECT_TRUE(unchanged_since(read));
  sql_->Ask("CREATE TABLE new_table (id INT)");
  ASSERT_TRUE(Next());
  EXPECT_FALSE(unchanged_since(read));
  EXPECT_TRUE(unchanged_since(in_a_while()));
  sql_->Ask("DROP TABLE new_table");
  feed_.reset();
  EXPECT_FALSE(unchanged_since(in_a_while())) << "nobody listens any more";
}

TEST_F(BinlogFeed, ClaimsDoNotRingAndReleasesDo) {
  sql_->Ask("INSERT INTO tasks (handler, slice, state) VALUES ('noop', 4, 3)");
  const std::string id = sql_->Ask("SELECT MAX(id) FROM tasks");
  ASSERT_TRUE(feed_->Open());
  sql_->Ask("UPDATE tasks SET priority=1 WHERE id=" + id);  // still held
  sql_->Ask("UPDATE tasks SET state=0 WHERE id=" + id);
  ExpectRing({kDefaultTable, {4}});
}

// MariaDB compresses the rows of an event; MySQL whole transactions, in which nothing can be found.
TEST_F(BinlogFeed, ACompressedLogRingsForTheTableOrIsRefused) {
  PrivateMariadb& server = Logging().server();
  if (!server.IsMariadb()) {
    server.AsRoot("SET GLOBAL binlog_transaction_compression=ON");
    ExpectRefused(ErrorCode::Invalid, "set binlog_transaction_compression=OFF");
    server.AsRoot("SET GLOBAL binlog_transaction_compression=OFF");
    return;
  }
  server.AsRoot("SET GLOBAL log_bin_compress=ON; SET GLOBAL log_bin_compress_min_len=10");
  ASSERT_TRUE(feed_->Open());
  Insert(5);
  ExpectRing({kDefaultTable, {}});
  Logging().server().AsRoot("SET GLOBAL log_bin_compress=OFF");
}

TEST_F(BinlogFeed, ARotatedLogIsFollowed) {
  ASSERT_TRUE(feed_->Open());
  for (int i = 0; i < 3; ++i) {
    Logging().server().AsRoot("FLUSH BINARY LOGS");
    ExpectRing({});  // for what may have happened meanwhile
    Insert(6);
    ExpectRing({kDefaultTable, {6}});
  }
}

TEST_F(BinlogFeed, WhatAPersonHasToMendIsDeniedAndSaysWhat) {
  OpenFeed(DoorbellAccount{"bell", ""});
  ExpectRefused(ErrorCode::Denied, "user or password are wrong");
  OpenFeed(DoorbellAccount{});
  ExpectRefused(ErrorCode::Denied, "GRANT it REPLICATION SLAVE");
}

TEST_F(BinlogFeed, AnAccountThatMayOnlySeeWhereTheLogEndsIsRefused) {
  Logging().server().AsRoot("GRANT REPLICATION CLIENT ON *.* TO millrace@'127.0.0.1'");
  OpenFeed(DoorbellAccount{});
  if (const Status opened = feed_->Open(); opened) {
    ExpectEnds(ErrorCode::Denied, "GRANT it REPLICATION SLAVE");
  } else {
    EXPECT_EQ(opened.error().code, ErrorCode::Denied) << opened.error().message;
  }
  Logging().server().AsRoot("REVOKE REPLICATION CLIENT ON *.* FROM millrace@'127.0.0.1'");
}

TEST_F(BinlogFeed, AServerThatIsAwayMayBeBackInAMoment) {
  TcpProxy proxy(Logging().server().port());
  OpenFeed(Logging().Bell(), proxy.port());
  proxy.Close();
  ExpectRefused(ErrorCode::Unavailable, "");
  proxy.Reopen();
  ASSERT_TRUE(feed_->Open());
  proxy.CutAll();
  ExpectEnds(ErrorCode::Unavailable, "");
  ASSERT_TRUE(feed_->Open()) << "anew";
  Insert(1);
  ExpectRing({kDefaultTable, {1}});
}

// The former one is alive, and logs nothing of what is added in its place.
TEST_F(BinlogFeed, AfterASwitchOverTheServerThatTakesTheBeatsIsHeard) {
  PrivateMariadb next({"--log-bin=bin", "--server-id=2"});
  next.AsRoot("ALTER USER millrace@'127.0.0.1' IDENTIFIED BY '" +
              ReadPasswordFile(Logging().password_file()).value() + "'; CREATE DATABASE " +
              Logging().database() +
              "; CREATE USER bell@'127.0.0.1' IDENTIFIED BY 'ring-ring'; "
              "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO bell@'127.0.0.1'");
  const auto there = Logging().Open(next.port(), std::nullopt);
  ASSERT_TRUE(there->OpenSchema()->Apply({.tables = 1, .slices = 16}));
  TcpProxy address(Logging().server().port());
  OpenFeed(Logging().Bell(), address.port());
  const auto beats = store_->OpenIncarnations();
  for (const auto& lives : {there->OpenIncarnations(), store_->OpenIncarnations()})
    ASSERT_TRUE(lives->Register({.id = "w.1", .worker = "w", .host = "here"}));
  ASSERT_TRUE(beats->Renew("w.1"));
  ASSERT_TRUE(feed_->Open());

  Logging().server().AsRoot("SET GLOBAL read_only=1");
  EXPECT_FALSE(beats->Renew("w.1"));
  address.LeadTo(next.port());
  ASSERT_TRUE(beats->Renew("w.1"));
  Logging().server().AsRoot("SET GLOBAL read_only=0");
  ExpectRing({});  // look: something may have been added meanwhile
  StoreUrl url = Logging().url();
  url.port = next.port();
  SqlConnection(url, Logging().password_file()).Ask("INSERT INTO tasks (handler, slice) VALUES ('noop', 3)");
  ExpectRing({kDefaultTable, {3}});
}

TEST_F(BinlogFeed, ASilentServerIsGivenUpWithinTwoSeconds) {
  ASSERT_TRUE(feed_->Open());
  ASSERT_TRUE(feed_->Next());
  Logging().server().Pause();
  const auto begun = std::chrono::steady_clock::now();
  ExpectEnds(ErrorCode::Unavailable, "silent");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(2));
  Logging().server().Resume();
}

TEST_F(BinlogFeed, AnIdleServerIsNotSilent) {
  ASSERT_TRUE(feed_->Open());
  EXPECT_EQ(Next(seconds(3)), std::nullopt);
}

TEST_F(BinlogFeed, AFloodOfOtherTablesIsLeft) {
  Logging().server().AsRoot("CREATE DATABASE IF NOT EXISTS other; CREATE TABLE other.flood (t MEDIUMTEXT)");
  ASSERT_TRUE(feed_->Open());
  std::thread flood([] {
    Logging().server().AsRoot(
        "INSERT INTO other.flood VALUES (CONCAT(UUID(), REPEAT('x', 5000000))); "
        "INSERT INTO other.flood VALUES (CONCAT(UUID(), REPEAT('x', 5000000)))");
  });
  ExpectEnds(ErrorCode::Conflict, "MB a second");
  flood.join();
}

TEST_F(BinlogFeed, AnInterruptEndsAWait) {
  ASSERT_TRUE(feed_->Open());
  std::thread later([this] { feed_->Interrupt(); });
  const auto next = Next();
  later.join();
  ASSERT_TRUE(next);
  EXPECT_FALSE(*next);
  EXPECT_FALSE(feed_->Open()) << "for good";
}

TEST(BinlogFeedOfLowerCaseNames, HearsADatabaseHoweverTheUrlSpellsIt) {
  const LoggingServer logging({"--lower-case-table-names=1"});
  StoreUrl url = logging.url();
  for (char& letter : url.database) letter = static_cast<char>(std::toupper(letter));
  ASSERT_NE(url.database, logging.url().database);
  const auto store = logging.Open(url, logging.Bell());
  const auto feed = store->OpenChanges([](const TableName& table) { return table == "tasks"; });
  const Status opened = feed->Open();
  ASSERT_TRUE(opened) << opened.error().message;
  logging.Connect()->Ask("INSERT INTO tasks (handler, slice) VALUES ('noop', 5)");
  const auto deadline = std::chrono::steady_clock::now() + seconds(5);
  std::vector<Ring> heard;
  while (heard.empty() && std::chrono::steady_clock::now() < deadline) {
    auto rings = feed->Next();
    ASSERT_TRUE(rings) << rings.error().message;
    heard = std::move(*rings);
  }
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].table, kDefaultTable);
  EXPECT_THAT(heard[0].slices, ::testing::ElementsAre(5U));
  EXPECT_EQ(heard[0].rows.size(), 1U);
}

TEST(BinlogFeedWithoutLog, SaysThatThereIsNone) {
  PrivateMariadb server;
  server.AsRoot("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO millrace@'127.0.0.1'");
  TestDatabase database(ServerOf(server));
  StoreOptions options;
  options.password_file = database.password_file();
  options.doorbell.emplace();
  const auto store = mysql::OpenStore(database.url(), options);
  const Status opened = (*store)->OpenChanges([](const TableName&) { return true; })->Open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::Invalid);
  EXPECT_THAT(opened.error().message, HasSubstr("writes no binary log"));
}

}  // namespace
}  // namespace millrace::engine
