// A handler's own transaction on a real server: what it answers, and what ends it.
#include <thread>
#include <tuple>
#include <utility>

#include "framework/store/mysql/store.h"
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

class MysqlTransaction : public StoreFaults {
 protected:
  void SetUp() override {
    sql_->Ask("CREATE TABLE points (id INT PRIMARY KEY, points INT NOT NULL)");
    sql_->Ask("INSERT INTO points VALUES (1,10),(2,20)");
    tasks_ = direct_->OpenTasks();
    transaction_ = direct_->OpenTransaction(std::chrono::seconds(5));
    task_ = Claim(*tasks_, Add(1)).at(0);
  }
  Result<SqlResult> Run(const std::string& sql, std::vector<SqlValue> values = {}) {
    return transaction_->Execute(sql, values);
  }
  CommitReport Commit() {
    const Settlement end = Succeeded(task_);
    return transaction_->Commit("w.1", std::span(&end, 1));
  }

  // After it has changed row 1, `sql` meets a real deadlock over row 2.
  void MeetDeadlock(const std::string& sql) {
    SqlConnection other(database_.url(), database_.password_file());
    // The other one has changed more, so the server takes ours for the victim.
    other.Ask("CREATE TABLE weight (id INT PRIMARY KEY)");
    other.Ask("SET innodb_lock_wait_timeout=10");
    other.Ask("BEGIN");
    for (int i = 0; i < 50; ++i) other.Ask("INSERT INTO weight VALUES (" + std::to_string(i) + ")");
    other.Ask("UPDATE points SET points=0 WHERE id=2");
    ASSERT_TRUE(Run("UPDATE points SET points=points+1 WHERE id=1"));
    std::thread opposing([&] { (void)other.Run("UPDATE points SET points=0 WHERE id=1"); });
    WaitForLockWait();
    auto waited = Run(sql);
    opposing.join();
    ASSERT_FALSE(waited);
    EXPECT_NE(waited.error().message.find("1213"), std::string::npos) << waited.error().message;
    EXPECT_EQ(transaction_->state(), TransactionState::Transient);
    EXPECT_EQ(Commit().verdict, CommitVerdict::Transient);
    other.Ask("ROLLBACK");
    EXPECT_EQ(sql_->Ask("SELECT SUM(points) FROM points"), "30");
  }

  std::unique_ptr<TaskStore> tasks_;
  std::unique_ptr<TaskTransaction> transaction_;
  Task task_;
};

TEST_F(MysqlTransaction, ATableThatIsLockedAsAWholeIsALockLikeAnother) {
  const StoreOptions options{.password_file = database_.password_file(),
                             .io_timeout = std::chrono::seconds(4)};
  const auto store = mysql::OpenStore(database_.url(), options).value();
  const auto transaction = store->OpenTransaction(std::chrono::seconds(5));
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("LOCK TABLES points WRITE");
  const auto waited = transaction->Execute("UPDATE points SET points=0 WHERE id=1", {});
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::Conflict) << waited.error().message;
  EXPECT_EQ(transaction->state(), TransactionState::Transient) << "the handler runs again, uncounted";
}

TEST_F(MysqlTransaction, BindsEveryKindOfValueAndReadsItBack) {
  const std::string bytes("a'b\"c\\d\0e\n%_?", 13);
  auto answer =
      Run("SELECT ? AS i, ? AS r, ? AS t, ? AS n", {std::int64_t{-7}, 0.5, bytes, std::monostate{}});
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->rows.size(), 1U);
  EXPECT_EQ(answer->columns, (std::vector<std::string>{"i", "r", "t", "n"}));
  EXPECT_EQ(answer->rows[0][0], "-7");
  EXPECT_EQ(std::stod(*answer->rows[0][1]), 0.5);
  EXPECT_EQ(answer->rows[0][2], bytes);
  EXPECT_EQ(answer->rows[0][3], std::nullopt);
}

TEST_F(MysqlTransaction, AStatementThatItsClientHasGivenUpIsEndedByTheServer) {
  auto limits =
      Run("SHOW SESSION VARIABLES WHERE Variable_name IN ('max_statement_time','max_execution_time')");
  ASSERT_TRUE(limits) << limits.error().message;
  ASSERT_EQ(limits->rows.size(), 1U) << "each kind of server has one of them";
  const double limit = std::stod(limits->rows[0][1].value_or("0"));
  EXPECT_EQ(limits->rows[0][0] == "max_execution_time" ? limit / 1'000 : limit, 25);
}

TEST_F(MysqlTransaction, CountsTheRowsThatAStatementMatched) {
  auto changed = Run("UPDATE points SET points=points+? WHERE id<=?", {std::int64_t{1}, std::int64_t{2}});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->affected, 2U);
  auto with = Run("/* a comment first */ UPDATE points SET points=points+1 WHERE id=1");
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->affected, 1U);
}

TEST_F(MysqlTransaction, CommitsTheHandlersWorkWithTheSettle) {
  ASSERT_TRUE(Run("UPDATE points SET points=points+1 WHERE id=1"));
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=1"), "10");
  EXPECT_EQ(Commit().verdict, CommitVerdict::Committed);
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=1"), "11");
  EXPECT_EQ(Count("tasks_done"), 1U);
  EXPECT_EQ(transaction_->state(), TransactionState::Idle);
}

TEST_F(MysqlTransaction, RefusedSettleRollsTheWorkBack) {
  ASSERT_TRUE(Run("UPDATE points SET points=points+1 WHERE id=1"));
  ASSERT_TRUE(tasks_->Settle("w.1", std::vector{Succeeded(task_)}));
  EXPECT_EQ(Commit().verdict, CommitVerdict::Refused);
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=1"), "10");
}

TEST_F(MysqlTransaction, AnErrorPoisonsIt) {
  ASSERT_TRUE(Run("UPDATE points SET points=points+1 WHERE id=1"));
  ASSERT_FALSE(Run("INSERT INTO points VALUES (2,1)"));
  EXPECT_EQ(transaction_->state(), TransactionState::Poisoned);
  EXPECT_FALSE(Run("SELECT 1"));
  transaction_->Rollback();
  EXPECT_EQ(transaction_->state(), TransactionState::Idle);
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=1"), "10");
}

TEST_F(MysqlTransaction, ProcedureThatCommitsIsSeenAtOnce) {
  sql_->Ask("CREATE PROCEDURE sneaky() BEGIN UPDATE points SET points=99 WHERE id=1; COMMIT; END");
  EXPECT_FALSE(Run("CALL sneaky()"));
  EXPECT_EQ(transaction_->state(), TransactionState::Escaped);
  EXPECT_FALSE(Run("UPDATE points SET points=98 WHERE id=2"));
  EXPECT_EQ(Commit().verdict, CommitVerdict::Escaped);
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=1"), "99");
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=2"), "20");
  EXPECT_EQ(Count("tasks_done"), 0U);
}

// What follows the commit within the procedure drops the connection, or looks like the server's own rollback.
TEST_F(MysqlTransaction, ProcedureThatCommitsAndThenFailsIsInDoubt) {
  const std::pair<const char*, const char*> ways[] = {
      {"a", "COMMIT; SELECT * FROM no_such_table;"},
      {"b", "COMMIT; SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213;"},
      {"c", "COMMIT; SIGNAL SQLSTATE '45000';"},
      {"d", "CREATE TABLE made (id INT); SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213;"},
      {"e", "START TRANSACTION; SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213;"},
      {"f", "SET autocommit=1; SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213;"},
  };
  for (const auto& [name, then] : ways) {
    sql_->Ask(std::string("CREATE PROCEDURE ") + name +
              "() BEGIN UPDATE points SET points=points+1 WHERE id=1; " + then + " END");
    EXPECT_FALSE(Run(std::string("CALL ") + name + "()")) << then;
    EXPECT_EQ(transaction_->state(), TransactionState::Escaped) << then;
    transaction_->Rollback();
  }
  EXPECT_EQ(sql_->Ask("SELECT points FROM points WHERE id=1"), "16");
}

TEST_F(MysqlTransaction, ProcedureThatFailsWithoutACommitHasCertainlyDoneNothing) {
  const std::tuple<const char*, const char*, TransactionState> ways[] = {
      {"a", "SELECT * FROM no_such_table;", TransactionState::Poisoned},
      {"b", "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213;", TransactionState::Transient},
      {"c", "SIGNAL SQLSTATE '45000';", TransactionState::Poisoned},
      {"d", "ROLLBACK; SIGNAL SQLSTATE '45000';", TransactionState::Poisoned},
      {"e", "ROLLBACK;", TransactionState::Poisoned},
  };
  for (const auto& [name, then, state] : ways) {
    sql_->Ask(std::string("CREATE PROCEDURE ") + name +
              "() BEGIN DECLARE n INT; SET n=1; UPDATE points SET points=points+n WHERE id=1; " + then +
              " END");
    ASSERT_TRUE(Run("UPDATE points SET points=points+1 WHERE id=2")) << then;
    EXPECT_FALSE(Run(std::string("CALL ") + name + "()")) << then;
    EXPECT_EQ(transaction_->state(), state) << then;
    transaction_->Rollback();
  }
  EXPECT_EQ(sql_->Ask("SELECT SUM(points) FROM points"), "30");
}

TEST_F(MysqlTransaction, ProcedureUnderWhichTheConnectionIsLostIsInDoubt) {
  sql_->Ask(
      "CREATE PROCEDURE slow() BEGIN UPDATE points SET points=99 WHERE id=1; COMMIT; DO SLEEP(20); END");
  std::thread killer([&] {
    SqlConnection other(database_.url(), database_.password_file());
    const std::string sleeps = "information_schema.PROCESSLIST WHERE INFO LIKE 'DO SLEEP%' AND DB=DATABASE()";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (other.Ask("SELECT COUNT(*) FROM " + sleeps) == "0") {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nobody sleeps";
    }
    other.Ask("KILL CONNECTION " + other.Ask("SELECT ID FROM " + sleeps));
  });
  EXPECT_FALSE(Run("CALL slow()"));
  killer.join();
  EXPECT_EQ(transaction_->state(), TransactionState::Escaped);
}

TEST_F(MysqlTransaction, ADeadlockWithinAProcedureIsRunAgain) {
  sql_->Ask("CREATE PROCEDURE second() BEGIN UPDATE points SET points=points+1 WHERE id=2; END");
  MeetDeadlock("CALL second()");
}

TEST_F(MysqlTransaction, ProcedureWithAnswersLeavesTheConnectionInStep) {
  sql_->Ask("CREATE PROCEDURE chatty() BEGIN SELECT 1; SELECT 2; END");
  ASSERT_TRUE(Run("CALL chatty()"));
  auto after = Run("SELECT points FROM points WHERE id=2");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->rows.at(0).at(0), "20");
  EXPECT_EQ(Commit().verdict, CommitVerdict::Committed);
}

TEST_F(MysqlTransaction, SwallowedLockWaitCommitsNothing) {
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE points SET points=0 WHERE id=2");
  ASSERT_TRUE(Run("UPDATE points SET points=points+1 WHERE id=1"));
  auto waited = Run("UPDATE points SET points=points+1 WHERE id=2");
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::Conflict) << waited.error().message;
  EXPECT_EQ(transaction_->state(), TransactionState::Transient);
  EXPECT_EQ(Commit().verdict, CommitVerdict::Transient);
  other.Ask("ROLLBACK");
  EXPECT_EQ(sql_->Ask("SELECT SUM(points) FROM points"), "30");
  EXPECT_EQ(Count("tasks_done"), 0U);
}

TEST_F(MysqlTransaction, SwallowedDeadlockCommitsNothing) {
  MeetDeadlock("UPDATE points SET points=points+1 WHERE id=2");
}

TEST_F(MysqlTransaction, SubmitsTasksThatComeWithItsCommit) {
  const std::vector<NewTask> more = {{.handler = "noop", .biz_key = "k"},
                                     {.handler = "noop", .biz_key = "k"}};
  auto added = transaction_->Submit("tasks", more);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->added, 1U);
  EXPECT_EQ(Count("tasks WHERE biz_key='k'"), 0U);
  EXPECT_EQ(Commit().verdict, CommitVerdict::Committed);
  EXPECT_EQ(Count("tasks WHERE biz_key='k'"), 1U);
}

// The holder's process vanishes without a word: here its connection stays open and silent.
TEST_F(MysqlTransaction, LocksOfASilentHolderGoWithinLimitAndLease) {
  auto store = OpenStore(database_.url().port, std::chrono::seconds(1));
  auto silent = store->OpenTransaction(std::chrono::seconds(1));
  ASSERT_TRUE(silent->Execute("UPDATE points SET points=0 WHERE id=1", {}));
  const auto start = std::chrono::steady_clock::now();
  while (!sql_->Run("SELECT * FROM points WHERE id=1 FOR UPDATE")) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(6));
  EXPECT_FALSE(silent->Execute("SELECT 1", {}));
  EXPECT_EQ(silent->state(), TransactionState::Lost);
}

}  // namespace
}  // namespace millrace::engine
