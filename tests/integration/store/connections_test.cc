// How many connections a store has on its server: those used at the same moment, and none for long beyond
// that.
#include <chrono>
#include <thread>

#include "framework/store/mysql/session.h"
#include "framework/store/mysql/store.h"
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Connections : public StoreFaults {
 protected:
  void Open(std::size_t max_transactions, Micros lease = seconds(10)) {
    StoreOptions options;
    options.password_file = database_.password_file();
    options.connect_timeout = milliseconds(300);
    options.max_transactions = max_transactions;
    options.lease = lease;
    auto opened = mysql::OpenStore(database_.url(), options);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  // Beside the one that asks.
  std::uint64_t Open() {
    return Count("information_schema.PROCESSLIST WHERE DB=DATABASE() AND ID<>CONNECTION_ID()");
  }
  void ExpectSettlesAt(std::uint64_t count) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    while (Open() != count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(Open(), count);
  }

  std::unique_ptr<Store> store_;
};

TEST_F(Connections, SessionsThatTakeTurnsShareOne) {
  direct_.reset();
  ExpectSettlesAt(0);
  Open(4);
  const TableSlices all{.table = "tasks"};
  std::vector<std::unique_ptr<TaskStore>> sessions;
  const auto operations = store_->OpenOperations();
  for (int i = 0; i < 5; ++i) {
    sessions.push_back(store_->OpenTasks());
    ASSERT_TRUE(sessions.back()->Due(std::span(&all, 1)));
    ASSERT_TRUE(operations->Totals());
  }
  EXPECT_EQ(Open(), 1U);
  const auto beats = store_->OpenIncarnations();
  ASSERT_TRUE(beats->Renew("w.1"));
  EXPECT_EQ(Open(), 2U) << "the beat has one of its own";
}

TEST_F(Connections, TransactionsGiveTheirsBackWhenTheyEnd) {
  direct_.reset();
  Open(4);
  std::vector<std::unique_ptr<TaskTransaction>> transactions;
  for (int i = 0; i < 8; ++i) {
    transactions.push_back(store_->OpenTransaction(seconds(5) * (i + 1)));
    ASSERT_TRUE(transactions.back()->Execute("SELECT 1", {}));
    transactions.back()->Rollback();
  }
  EXPECT_EQ(Open(), 1U);
  ASSERT_TRUE(transactions[0]->Execute("SELECT 1", {}));
  ASSERT_TRUE(transactions[1]->Execute("SELECT 1", {}));
  EXPECT_EQ(Open(), 2U);
}

TEST_F(Connections, OneTransactionTooManyWaitsAndIsToldWhy) {
  Open(2);
  const auto first = store_->OpenTransaction(seconds(5));
  auto second = store_->OpenTransaction(seconds(5));
  const auto third = store_->OpenTransaction(seconds(5));
  ASSERT_TRUE(first->Execute("SELECT 1", {}));
  ASSERT_TRUE(second->Execute("SELECT 1", {}));
  const auto refused = third->Execute("SELECT 1", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_NE(refused.error().message.find("all 2 connections"), std::string::npos) << refused.error().message;
  EXPECT_EQ(third->state(), TransactionState::NoConnection) << "nothing was sent";
  third->Rollback();
  std::thread later([&] { second.reset(); });
  EXPECT_TRUE(third->Execute("SELECT 1", {})) << "whoever comes while one ends gets it";
  later.join();
}

TEST_F(Connections, TransactionsAreAsManyAsHandlersWantWhereNobodySetABound) {
  direct_.reset();
  Open(0);
  std::vector<std::unique_ptr<TaskTransaction>> open;
  for (int i = 0; i < 64; ++i) {
    open.push_back(store_->OpenTransaction(seconds(5)));
    ASSERT_TRUE(open.back()->Execute("SELECT 1", {})) << i;
  }
  EXPECT_EQ(Open(), 64U);
}

TEST_F(Connections, ASpareOneIsClosedBeforeLong) {
  direct_.reset();
  Open(4);
  const auto first = store_->OpenTransaction(seconds(5));
  const auto second = store_->OpenTransaction(seconds(5));
  ASSERT_TRUE(first->Execute("SELECT 1", {}));
  ASSERT_TRUE(second->Execute("SELECT 1", {}));
  second->Rollback();
  first->Rollback();
  EXPECT_EQ(Open(), 2U);
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  while (Open() > 1 && std::chrono::steady_clock::now() < deadline) {
    ASSERT_TRUE(first->Execute("SELECT 1", {}));
    first->Rollback();
  }
  EXPECT_EQ(Open(), 1U);
}

TEST_F(Connections, ASessionThatFellSilentIsClosedByTheServer) {
  direct_.reset();
  Open(4, seconds(1));
  const auto tasks = store_->OpenTasks();
  const TableSlices all{.table = "tasks"};
  ASSERT_TRUE(tasks->Due(std::span(&all, 1)));
  ExpectSettlesAt(0);
  EXPECT_TRUE(tasks->Due(std::span(&all, 1))) << "and opened again when it is used";
}

TEST_F(Connections, ACommitThatFindsItsConnectionLostLeavesNoTransactionOpen) {
  const mysql::Endpoint endpoint{database_.url(), {.password_file = database_.password_file()}};
  mysql::Session session(endpoint, seconds(10));
  ASSERT_TRUE(session.Begin());
  std::string id;
  ASSERT_TRUE(session.Query("SELECT CONNECTION_ID()", [&](const mysql::Row& row) { id = row.Text(1); }));
  sql_->Ask("KILL " + id);
  EXPECT_FALSE(session.Write("INSERT INTO tasks (handler) VALUES ('noop')"));
  const Status done = session.Commit();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::Unavailable) << done.error().message;
  EXPECT_FALSE(session.in_transaction());
  const auto next = session.Write("INSERT INTO tasks (handler) VALUES ('noop')");
  EXPECT_TRUE(next) << next.error().message;
  EXPECT_EQ(Count("tasks"), 1U);
}

TEST_F(Connections, AServerThatIsSlowToConnectToIsConnectedToOnce) {
  StoreUrl url = database_.url();
  url.port = proxy_.port();
  const mysql::Endpoint endpoint{url, {.password_file = database_.password_file()}};
  mysql::Session session(endpoint, seconds(1));
  const auto made = [&] { return sql_->Run("SHOW GLOBAL STATUS LIKE 'Connections'")->rows.at(0).at(1); };
  const auto before = std::stoull(*made());
  proxy_.Arm(TcpProxy::Evil::Delay, "ISOLATION LEVEL");
  std::thread slow([&] {
    EXPECT_TRUE(proxy_.WaitDone(1));
    std::this_thread::sleep_for(milliseconds(700));
    proxy_.Release();
  });
  std::string id;
  const auto read = [&] {
    return session.Query("SELECT CONNECTION_ID()", [&](const mysql::Row& row) { id = row.Text(1); });
  };
  EXPECT_TRUE(read());
  slow.join();
  EXPECT_EQ(std::stoull(*made()), before + 1);
  const std::string first = id;
  EXPECT_TRUE(read());
  EXPECT_EQ(id, first) << "what was just made is as good as new";
}

TEST_F(Connections, WhatWasMadeBeforeAForgetIsClosedWhenItComesBack) {
  direct_.reset();
  ExpectSettlesAt(0);
  const mysql::Endpoint endpoint{database_.url(), {.password_file = database_.password_file()}};
  mysql::ConnectionPool pool(4);
  mysql::Session session(endpoint, seconds(100), &pool);
  ASSERT_TRUE(session.Begin());
  pool.Forget();
  ASSERT_TRUE(session.Write("INSERT INTO tasks (handler) VALUES ('noop')"));
  ASSERT_TRUE(session.Commit()) << "what is under way goes on";
  ExpectSettlesAt(0);
  ASSERT_TRUE(session.Write("INSERT INTO tasks (handler) VALUES ('noop')"));
  EXPECT_EQ(Open(), 1U) << "one that was made since stays";
}

// The old primary lives on, takes no writes, and keeps its connections.
TEST_F(Connections, AnIdleWorkerFollowsASwitchOver) {
  PrivateMariadb old;
  PrivateMariadb next;
  const TestDatabase database(ServerOf(old));
  const std::string password = ReadPasswordFile(database.password_file()).value();
  // Replication would have brought them.
  next.AsRoot("ALTER USER millrace@'127.0.0.1' IDENTIFIED BY '" + password + "'; CREATE DATABASE " +
              database.url().database);
  const auto at = [&](std::uint16_t port) {
    StoreUrl url = database.url();
    url.port = port;
    return url;
  };
  const auto open = [&](std::uint16_t port) {
    return mysql::OpenStore(at(port), {.password_file = database.password_file()}).value();
  };
  for (const std::uint16_t port : {old.port(), next.port()}) {
    const auto store = open(port);
    ASSERT_TRUE(store->OpenSchema()->Apply({.tables = 1, .slices = 4}));
    ASSERT_TRUE(store->OpenIncarnations()->Register({.id = "w.1", .worker = "w", .host = "here"}));
  }
  TcpProxy address(old.port());
  const auto store = open(address.port());
  const auto tasks = store->OpenTasks();
  const auto beats = store->OpenIncarnations();
  const TableSlices all{.table = "tasks"};
  ASSERT_TRUE(tasks->Due(std::span(&all, 1)));
  ASSERT_TRUE(beats->Renew("w.1").value());

  old.AsRoot("SET GLOBAL read_only=1");
  EXPECT_FALSE(beats->Renew("w.1"));
  const auto reads_old = tasks->Due(std::span(&all, 1));  // before the address has moved
  EXPECT_TRUE(reads_old) << reads_old.error().message;
  address.LeadTo(next.port());
  SqlConnection(at(next.port()), database.password_file())
      .Ask("INSERT INTO tasks (handler, slice) VALUES ('noop', 1)");
  const auto renewed = beats->Renew("w.1");
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_TRUE(*renewed);
  const auto due = tasks->Due(std::span(&all, 1));
  ASSERT_TRUE(due) << due.error().message;
  EXPECT_EQ(due->groups.size(), 1U) << "it still reads where nothing comes in any more";
}

TEST_F(Connections, TheTimeLimitOfATransactionGoesWithItsConnection) {
  Open(1);
  const auto shorter = store_->OpenTransaction(seconds(5));
  ASSERT_TRUE(shorter->Execute("SELECT 1", {}));
  shorter->Rollback();
  const auto longer = store_->OpenTransaction(seconds(100));
  auto timeout = longer->Execute("SELECT @@wait_timeout, @@autocommit", {});
  ASSERT_TRUE(timeout) << timeout.error().message;
  EXPECT_EQ(timeout->rows[0][0], "110");
  EXPECT_EQ(timeout->rows[0][1], "0");
}

}  // namespace
}  // namespace millrace::engine
