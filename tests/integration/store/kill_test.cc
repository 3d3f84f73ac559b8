// KILL in the middle of each statement: nothing is lost or doubled.
#include <thread>

#include "framework/store/mysql/store.h"
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

// The byte that a statement begins with on the line: not part of a longer one.
const std::string kQuery = "\x03";

// The proxy holds the request back, so that the connection is killed at exactly that place.
class KilledConnection : public StoreFaults {
 protected:
  explicit KilledConnection(const TestServer& server = SharedServer()) : StoreFaults(server) {}
  void SetUp() override {
    tasks_ = proxied_->OpenTasks();
    ASSERT_TRUE(tasks_->Due({}));  // connects
  }
  // Kills every connection of this database but the test's own.
  void KillAll() {
    auto list = sql_->Run(
        "SELECT id FROM information_schema.PROCESSLIST WHERE DB=DATABASE() AND id<>CONNECTION_ID()");
    ASSERT_TRUE(list) << list.error().message;
    for (const auto& row : list->rows) (void)sql_->Run("KILL " + *row[0]);
  }
  template <class Work>
  auto KilledAt(const std::string& text, Work work) {
    proxy_.Arm(TcpProxy::Evil::Delay, text);
    decltype(work()) result;
    std::thread working([&] { result = work(); });
    EXPECT_TRUE(proxy_.WaitDone(++evils_)) << "the statement never came: " << text;
    KillAll();
    proxy_.Release();
    working.join();
    return result;
  }

  std::unique_ptr<TaskStore> tasks_;
  int evils_ = 0;
};

TEST_F(KilledConnection, ClaimIsResolved) {
  const auto ids = Add(5);
  auto claimed = KilledAt("SET state=2", [&] { return tasks_->Claim(Request(ids)); });
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::Unknown) << claimed.error().message;
  auto adopted = tasks_->Resolve(Request(ids));
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_TRUE(adopted->empty());
  EXPECT_EQ(Claim(*tasks_, ids, 1).size(), 5U);
}

TEST_F(KilledConnection, EveryStatementOfASettle) {
  const std::vector<std::string> places = {kQuery + "BEGIN",
                                           "INSERT INTO tasks_done",
                                           "DELETE tasks",
                                           "INSERT INTO tasks_failed",
                                           "SET state=0",
                                           "INSERT INTO millrace_attempts",
                                           "INSERT INTO millrace_counters",
                                           kQuery + "COMMIT"};
  std::size_t added = 0;
  for (const std::string& place : places) {
    const auto claimed = Claim(*tasks_, Add(3));
    added += 3;
    ASSERT_EQ(claimed.size(), 3U);
    auto batch = Succeeded(claimed);
    batch[1].to = Settlement::To::Failed;
    batch[2].to = Settlement::To::Waiting;
    batch[2].delay = std::chrono::hours(1);
    batch[1].failed_attempt = batch[2].failed_attempt = true;
    batch[1].text = batch[2].text = "no luck";
    auto settled = KilledAt(place, [&] { return tasks_->Settle("w.1", batch); });
    ASSERT_FALSE(settled) << place;
    EXPECT_EQ(settled.error().code, place.ends_with("COMMIT") ? ErrorCode::Unknown : ErrorCode::Unavailable)
        << place << ": " << settled.error().message;
    auto running = tasks_->StillRunning("w.1", batch);
    ASSERT_TRUE(running) << running.error().message;
    EXPECT_EQ(*running, std::vector<bool>(3, true)) << place;
    auto again = tasks_->Settle("w.1", batch);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->verdicts, std::vector<SettleVerdict>(3, SettleVerdict::Settled)) << place;
  }
  ExpectNothingLostOrDoubled(added);
  EXPECT_EQ(Count("tasks_done"), places.size());
  EXPECT_EQ(Count("tasks_failed"), places.size());
  EXPECT_EQ(Count("millrace_attempts"), 2 * places.size());
  EXPECT_EQ(sql_->Ask("SELECT SUM(attempts_failed) FROM millrace_counters"),
            std::to_string(2 * places.size()));
}

// On a server of its own, since it changes its user's password.
class RefusedLogin : public KilledConnection {
 protected:
  RefusedLogin() : KilledConnection(ServerOf(Private())) {}
};

TEST_F(RefusedLogin, IsNoFaultOfTheTasksThatAreToBeSettled) {
  const auto tasks = direct_->OpenTasks();
  const auto batch = Succeeded(Claim(*tasks, Add(3)));
  const std::string password = ReadPasswordFile(database_.password_file()).value_or("");
  Private().AsRoot("ALTER USER millrace@'127.0.0.1' IDENTIFIED BY 'another'");
  tasks_ = direct_->OpenTasks();
  KillAll();
  const auto lost = tasks_->Settle("w.1", batch);
  const auto refused = tasks_->Settle("w.1", batch);
  Private().AsRoot("ALTER USER millrace@'127.0.0.1' IDENTIFIED BY '" + password + "'");
  ASSERT_FALSE(lost);
  ASSERT_FALSE(refused) << "verdicts on rows that nobody has looked at";
  EXPECT_EQ(refused.error().code, ErrorCode::Denied);
  EXPECT_NE(refused.error().message.find("password"), std::string::npos) << refused.error().message;
  const auto settled = tasks_->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, std::vector<SettleVerdict>(3, SettleVerdict::Settled));
}

TEST_F(RefusedLogin, NorIsARightThatIsMissing) {
  const auto batch = Succeeded(Claim(*tasks_, Add(3)));
  StoreUrl url = database_.url();
  const std::string clerk = "clerk@'127.0.0.1'";
  Private().AsRoot("CREATE USER " + clerk + " IDENTIFIED BY '" +
                   ReadPasswordFile(database_.password_file()).value_or("") +
                   "'; GRANT SELECT,UPDATE,DELETE ON " + url.database + ".* TO " + clerk);
  for (const char* table : {"tasks", "tasks_failed", "tasks_keys", "millrace_attempts", "millrace_counters"})
    Private().AsRoot("GRANT INSERT ON " + url.database + "." + table + " TO " + clerk);
  url.user = "clerk";
  const auto store = mysql::OpenStore(url, {.password_file = database_.password_file()}).value();
  const auto tasks = store->OpenTasks();
  const auto refused = tasks->Settle("w.1", batch);
  ASSERT_TRUE(refused) << "others are not kept behind them: " << refused.error().message;
  EXPECT_EQ(refused->verdicts, std::vector<SettleVerdict>(3, SettleVerdict::Busy)) << refused->errors[0];
  EXPECT_NE(refused->errors[0].find("lacks a right"), std::string::npos) << refused->errors[0];
  Private().AsRoot("REVOKE SELECT,UPDATE,DELETE ON " + url.database + ".* FROM " + clerk);
  for (const char* table : {"millrace_attempts", "millrace_counters", "tasks_keys", "millrace_incarnations"})
    Private().AsRoot("GRANT SELECT,UPDATE,DELETE ON " + url.database + "." + table + " TO " + clerk);
  const auto again = store->OpenTasks()->Settle("w.1", batch);
  const auto once_more = tasks->Settle("w.1", batch);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(once_more) << "where they are known, too: " << once_more.error().message;
  EXPECT_EQ(once_more->verdicts, std::vector<SettleVerdict>(3, SettleVerdict::Busy));
  EXPECT_NE(once_more->errors[0].find("lacks a right"), std::string::npos) << once_more->errors[0];
  Private().AsRoot("GRANT SELECT,UPDATE,DELETE ON " + url.database + ".* TO " + clerk);
  const auto transaction = store->OpenTransaction(std::chrono::seconds(5));
  ASSERT_TRUE(transaction->Execute("SELECT 1", {}));
  EXPECT_EQ(transaction->Commit("w.1", std::span(batch).first(1)).verdict, CommitVerdict::Unavailable)
      << "the handler has done its part";
  EXPECT_FALSE(transaction->Execute("INSERT INTO tasks_done SELECT * FROM tasks_done", {}));
  EXPECT_EQ(transaction->state(), TransactionState::Poisoned)
      << "what a handler may not do is its own affair";
  EXPECT_EQ(transaction->Commit("w.1", std::span(batch).first(1)).verdict, CommitVerdict::Broken);
  Private().AsRoot("GRANT INSERT ON " + url.database + ".tasks_done TO " + clerk);
  const auto settled = tasks->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, std::vector<SettleVerdict>(3, SettleVerdict::Settled));
  Private().AsRoot("DROP USER " + clerk);
}

TEST_F(KilledConnection, EveryStatementOfATaskTransaction) {
  sql_->Ask("CREATE TABLE points (id INT)");
  auto transaction = proxied_->OpenTransaction(std::chrono::seconds(5));
  const auto claimed = Claim(*tasks_, Add(1));
  const auto batch = Succeeded(claimed);
  const auto run = [&]() -> CommitReport {
    if (auto done = transaction->Execute("INSERT INTO points VALUES (1)", {}); !done) {
      EXPECT_EQ(transaction->state(), TransactionState::Lost) << done.error().message;
      transaction->Rollback();
      return {CommitVerdict::Unavailable, done.error().message};
    }
    return transaction->Commit("w.1", batch);
  };
  for (const char* place :
       {"INSERT INTO points", "RELEASE SAVEPOINT", "INSERT INTO tasks_done", "DELETE tasks"}) {
    const CommitReport report = KilledAt(place, run);
    EXPECT_EQ(report.verdict, CommitVerdict::Unavailable) << place << ": " << report.message;
    EXPECT_EQ(Count("points"), 0U);
  }
  EXPECT_EQ(KilledAt(kQuery + "COMMIT", run).verdict, CommitVerdict::Unknown);
  auto running = tasks_->StillRunning("w.1", batch);
  ASSERT_TRUE(running) << running.error().message;
  EXPECT_TRUE(running->at(0));
  EXPECT_EQ(run().verdict, CommitVerdict::Committed);
  EXPECT_EQ(Count("points"), 1U);
  ExpectNothingLostOrDoubled(1);
}

}  // namespace
}  // namespace millrace::engine
