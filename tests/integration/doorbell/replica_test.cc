// Doorbells beside a real replica: it is never thrown off, and no commit waits for a doorbell.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "logging_server.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class BesideAReplica : public ::testing::Test {
 protected:
  BesideAReplica() : replica_({"--log-bin=bin", "--server-id=2"}) {
    logging_.server().AsRoot(
        "CREATE USER copy@'127.0.0.1' IDENTIFIED BY 'copy'; "
        "GRANT REPLICATION SLAVE ON *.* TO copy@'127.0.0.1'");
    replica_.AsRoot(
        (is_mariadb_ ? "CHANGE MASTER TO " : "CHANGE REPLICATION SOURCE TO get_source_public_key=1, ") +
        Of("host") + "'127.0.0.1', " + Of("port") + std::to_string(logging_.server().port()) + ", " +
        Of("user") + "'copy', " + Of("password") + "'copy', " + Of("log_file") + "'" + Position(0) + "', " +
        Of("log_pos") + Position(1) + (is_mariadb_ ? "; START SLAVE" : "; START REPLICA"));
  }
  ~BesideAReplica() override { replica_.AsRoot(is_mariadb_ ? "STOP SLAVE" : "STOP REPLICA"); }

  std::string Of(const std::string& option) const {
    return (is_mariadb_ ? "master_" : "source_") + option + "=";
  }
  std::string Position(int column) {
    std::string words =
        logging_.server().AsRoot(is_mariadb_ ? "SHOW MASTER STATUS" : "SHOW BINARY LOG STATUS");
    for (; column > 0; --column) words = words.substr(words.find('\t') + 1);
    return words.substr(0, words.find('\t'));
  }
  // The ids of the connections by which replicas, or doorbells, follow the log.
  std::string Followers(const std::string& user) {
    return logging_.server().AsRoot(
        "SELECT id FROM information_schema.processlist WHERE command='Binlog Dump' AND user='" + user +
        "' ORDER BY id");
  }
  template <class Condition>
  static bool Eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(milliseconds(20));
    }
    return true;
  }

  LoggingServer logging_;
  PrivateMariadb replica_;
  const bool is_mariadb_ = replica_.IsMariadb();
};

TEST_F(BesideAReplica, ItIsNeverThrownOff) {
  ASSERT_TRUE(Eventually([&] { return !Followers("copy").empty(); }));
  const std::string before = Followers("copy");
  const auto store = logging_.Open(logging_.server().port(), logging_.Bell());
  std::vector<std::unique_ptr<ChangeFeed>> feeds;
  for (int i = 0; i < 20; ++i) {
    feeds.push_back(store->OpenChanges([](const TableName&) { return true; }));
    const Status opened = feeds.back()->Open();
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE(feeds.back()->Next());
  }
  const std::string bells = Followers("bell");
  EXPECT_EQ(std::count(bells.begin(), bells.end(), '\n'), 20) << "nor is one doorbell thrown off by another";
  logging_.server().AsRoot("CREATE DATABASE copied");
  EXPECT_TRUE(Eventually([&] { return !replica_.AsRoot("SHOW DATABASES LIKE 'copied'").empty(); }));
  EXPECT_EQ(Followers("copy"), before) << "it had to come back";
  for (const auto& feed : feeds) EXPECT_TRUE(feed->Next());
  EXPECT_EQ(Followers("bell"), bells);
}

TEST_F(BesideAReplica, ADoorbellThatComesBackTakesTheWholePlaceOfItsFormerConnection) {
  const auto store = logging_.Open(logging_.server().port(), logging_.Bell());
  const auto feed = store->OpenChanges([](const TableName&) { return true; });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(feed->Open());
  const auto one = [&] {
    const std::string ids = Followers("bell");
    return std::count(ids.begin(), ids.end(), '\n') == 1;
  };
  EXPECT_TRUE(Eventually(one)) << Followers("bell");
}

TEST_F(BesideAReplica, NoCommitWaitsForADoorbell) {
  const std::string semi_sync = is_mariadb_ ? "Rpl_semi_sync_master" : "Rpl_semi_sync_source";
  if (!is_mariadb_)
    logging_.server().AsRoot("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'");
  logging_.server().AsRoot("SET GLOBAL " + semi_sync + "_enabled=ON");
  const auto store = logging_.Open(logging_.server().port(), logging_.Bell());
  const auto feed = store->OpenChanges([](const TableName&) { return true; });
  ASSERT_TRUE(feed->Open());
  ASSERT_TRUE(feed->Next());
  EXPECT_EQ(logging_.server().AsRoot("SHOW STATUS LIKE '" + semi_sync + "_clients'"),
            semi_sync + "_clients\t0\n");
}

}  // namespace
}  // namespace millrace::engine
