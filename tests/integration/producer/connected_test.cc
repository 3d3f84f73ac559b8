// The producer API on real connections: those that it opens by a URL, and a caller's own on a server, with
// whatever isolation level and step of ids the caller's session has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/producer.h>

#include <filesystem>
#include <latch>
#include <thread>

#include "framework/doorbell/datagram.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/store.h"
#include "framework/store/sqlite/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"

namespace millrace::producer {
namespace {

using testing::HasSubstr;

// A caller's session, with literals for the values.
RunSql On(engine::SqlConnection& connection) {
  return [&connection](const std::string& sql, std::span<const SqlValue> values) {
    std::vector<engine::sql::Value> literals;
    for (const SqlValue& value : values) {
      const auto* number = std::get_if<std::int64_t>(&value);
      const auto* text = std::get_if<std::string>(&value);
      literals.push_back(number != nullptr ? engine::sql::Value(*number)
                         : text != nullptr ? engine::sql::Value(*text)
                                           : engine::sql::Value(nullptr));
    }
    auto answer = connection.Run(engine::mysql::WithValues(sql, literals));
    if (!answer) return SqlAnswer{.error = answer.error().message};
    return SqlAnswer{.rows = std::move(answer->rows), .affected = answer->affected};
  };
}

class ProducerOnServer : public testing::Test {
 protected:
  ProducerOnServer() {
    const auto store =
        engine::mysql::OpenStore(database_.url(), {.password_file = database_.password_file()});
    EXPECT_TRUE((*store)->OpenSchema()->Apply({.tables = 1, .slices = 8}));
  }
  std::string Url(const std::string& database) const {
    return "mysql://" + database_.url().user + "@" + database_.url().host + ":" +
           std::to_string(database_.url().port) + "/" + database;
  }
  Result<Producer> Open(const ConnectOptions& options = {}) const {
    ConnectOptions with = options;
    with.password_file = database_.password_file();
    return Producer::Open(Url(database_.url().database), with);
  }

  engine::TestDatabase database_;
  engine::SqlConnection sql_{database_.url(), database_.password_file()};
};

TEST_F(ProducerOnServer, TasksGoInOverItsOwnConnections) {
  auto producer = Open();
  ASSERT_TRUE(producer) << producer.error().message;
  const auto one = producer->Submit({.handler = "ship", .key = "k"});
  ASSERT_TRUE(one) << one.error().message;
  const auto many = producer->Submit(std::vector<NewTask>(1'500, {.handler = "ship"}));
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(many->added, 1'500u);
  EXPECT_EQ(sql_.Ask("SELECT COUNT(*) FROM tasks"), "1501");
  EXPECT_EQ(producer->Submit({.handler = "ship", .key = "k"})->duplicate_of,
            "tasks/" + std::to_string(one->id));
}

TEST_F(ProducerOnServer, ManyThreadsShareOneProducer) {
  auto producer = Open();
  ASSERT_TRUE(producer);
  std::latch ready(4);
  std::vector<std::thread> threads;
  std::array<std::size_t, 4> added{};
  for (std::size_t& mine : added) {
    threads.emplace_back([&] {
      ready.arrive_and_wait();
      for (int i = 0; i < 50; ++i)
        mine += producer->Submit({.handler = "ship", .key = "k" + std::to_string(i)})->added() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added[0] + added[1] + added[2] + added[3], 50u);
  EXPECT_EQ(sql_.Ask("SELECT COUNT(*) FROM tasks"), "50");
}

TEST_F(ProducerOnServer, WhatIsWrongIsSaidWhenItOpens) {
  const auto absent = Producer::Open(Url("no_such_database"), {.password_file = database_.password_file()});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, ErrorKind::Invalid) << absent.error().message;
  EXPECT_THAT(absent.error().message, HasSubstr("no_such_database"));
  EXPECT_EQ(Producer::Open("mysql://a@127.0.0.1:1/b").error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(Producer::Open("http://shop").error().kind, ErrorKind::Invalid);
  EXPECT_THAT(Open({.table = "other"}).error().message, HasSubstr("no task table 'other'"));
  sql_.Ask("DROP TABLE millrace_schema");
  EXPECT_THAT(Open().error().message, HasSubstr("schema apply"));
}

TEST_F(ProducerOnServer, WorkersAreRungForWhatIsAdded) {
  const auto socket = engine::RingSocket::Open("127.0.0.1");
  ASSERT_TRUE(socket);
  auto producer = Open({.doorbells = {(*socket)->address()}, .shard = "shop"});
  ASSERT_TRUE(producer) << producer.error().message;
  const auto slice_of = [this](std::uint64_t id) {
    return static_cast<std::uint32_t>(
        std::stoul(sql_.Ask("SELECT slice FROM tasks WHERE id=" + std::to_string(id))));
  };
  const auto one = producer->Submit({.handler = "ship", .key = "k"});
  ASSERT_TRUE(one) << one.error().message;
  const auto ring = (*socket)->Wait(std::chrono::seconds(5));
  ASSERT_TRUE(ring);
  EXPECT_EQ(*ring, (engine::ShardRing{"shop", {engine::kDefaultTable, {slice_of(one->id)}}}));

  // Nobody is rung for these.
  ASSERT_FALSE(producer->Submit({.handler = "ship", .key = "k"})->added());
  ASSERT_TRUE(producer->Submit({.handler = "ship", .held = true})->added());
  ASSERT_TRUE(producer->Submit({.handler = "ship", .delay = std::chrono::seconds(30)})->added());
  const Time never = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31);
  ASSERT_TRUE(producer->Submit({.handler = "ship", .run_at = never})->added());
  const auto two =
      producer->Submit(std::vector<NewTask>{{.handler = "ship", .key = "k"}, {.handler = "ship"}});
  ASSERT_TRUE(two) << two.error().message;
  const auto next = (*socket)->Wait(std::chrono::seconds(5));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->ring.slices, std::vector{slice_of(two->tasks[1].id)});

  for (const char* wrong : {"worker-7:7460", "10.0.0.7", "", "10.0.0.7:x", "0.0.0.0:7460"}) {
    const auto refused = Open({.doorbells = {(*socket)->address(), wrong}});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().kind, ErrorKind::Invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("IP:PORT"));
  }
  EXPECT_THAT(Open({.doorbells = std::vector<std::string>(101, (*socket)->address())}).error().message,
              HasSubstr("at most 100"));
  EXPECT_THAT(Open({.shard = "my shop"}).error().message, HasSubstr("'my shop' is not the name of a shard"));
}

// MySQL's default. The snapshot was taken before another producer's task was there.
TEST_F(ProducerOnServer, UnderRepeatableReadAKeyThatTheSnapshotDoesNotShowIsTakenAllTheSame) {
  sql_.Ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  sql_.Ask("BEGIN");
  EXPECT_EQ(sql_.Ask("SELECT COUNT(*) FROM tasks"), "0");
  auto other = Open();
  ASSERT_TRUE(other);
  const auto first = other->Submit({.handler = "ship", .key = "k"});
  const auto second = SubmitInTransaction(Dialect::Mysql, On(sql_), {.handler = "ship", .key = "k"});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->duplicate_of, "tasks/" + std::to_string(first->id));
  sql_.Ask("COMMIT");
  EXPECT_EQ(sql_.Ask("SELECT COUNT(*) FROM tasks"), "1");
}

// A read of missing keys under locks would keep out all keys near them.
TEST_F(ProducerOnServer, UnderRepeatableReadNeighbouringKeysKeepNobodyWaiting) {
  sql_.Ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  sql_.Ask("BEGIN");
  ASSERT_TRUE(SubmitInTransaction(Dialect::Mysql, On(sql_), {.handler = "ship", .key = "m"}));
  engine::SqlConnection other(database_.url(), database_.password_file());
  other.Ask("SET SESSION innodb_lock_wait_timeout=1");
  other.Ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  other.Ask("BEGIN");
  for (const char* key : {"a", "l", "n", "z"}) {
    const auto task = SubmitInTransaction(Dialect::Mysql, On(other), {.handler = "ship", .key = key});
    EXPECT_TRUE(task) << key << ": " << task.error().message;
  }
  other.Ask("COMMIT");
  sql_.Ask("COMMIT");
}

TEST_F(ProducerOnServer, IdsRiseByTheStepOfTheCallersSession) {
  sql_.Ask("SET SESSION auto_increment_increment=5, auto_increment_offset=3");
  sql_.Ask("BEGIN");
  std::vector<NewTask> tasks;
  const auto numbered = [](std::size_t i) { return "{\"n\":" + std::to_string(i) + "}"; };
  for (std::size_t i = 0; i < 40; ++i) tasks.push_back({.handler = "ship", .params = numbered(i)});
  const auto report = SubmitInTransaction(Dialect::Mysql, On(sql_), tasks);
  ASSERT_TRUE(report) << report.error().message;
  sql_.Ask("COMMIT");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(sql_.Ask("SELECT params FROM tasks WHERE id=" + std::to_string(report->tasks[i].id)),
              numbered(i));
  }
  EXPECT_EQ(report->tasks[1].id - report->tasks[0].id, 5u);
}

TEST(ProducerOnFile, TasksGoIntoASqliteStore) {
  std::string folder = testing::TempDir() + "millrace-producer-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/shard.db";
  EXPECT_THAT(Producer::Open("sqlite:" + path).error().message, HasSubstr("there is no database file"));
  {
    const auto store = engine::sqlite::OpenStore({.kind = engine::StoreUrl::Kind::Sqlite, .path = path}, {});
    ASSERT_TRUE((*store)->OpenSchema()->Apply({.tables = 2, .slices = 8}));
    EXPECT_THAT(Producer::Open("sqlite:" + path).error().message, HasSubstr("2 task tables"));
    auto producer = Producer::Open("sqlite:" + path, {.table = "tasks_001"});
    ASSERT_TRUE(producer) << producer.error().message;
    EXPECT_EQ(producer->Submit({.handler = "ship", .key = "k"})->id, 1u);
    EXPECT_EQ(producer->Submit({.handler = "ship", .key = "k"}, {.table = "tasks_000"})->duplicate_of,
              "tasks_001/1");
    const auto refused = producer->Submit({.handler = "ship", .params = "{"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("not valid JSON"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace millrace::producer
