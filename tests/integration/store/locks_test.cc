// Other people's locks, KILLs and refusals: each caused for real.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/mysql/store.h"
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

class MysqlLocks : public StoreFaults {
 protected:
  void SetUp() override { tasks_ = direct_->OpenTasks(); }
  // These ids, of new rows, in two new tables; what is to be settled of them.
  void ClaimInTwoTables(const std::vector<std::uint64_t>& ids, std::vector<Settlement>& batch) {
    ASSERT_TRUE(direct_->OpenSchema()->Apply({.tables = 2, .slices = 4}));
    for (const char* table : {"tasks_000", "tasks_001"}) {
      for (const std::uint64_t id : ids) {
        sql_->Ask(std::string("INSERT INTO ") + table + " (handler,slice) VALUES ('noop'," +
                  std::to_string(id) + ")");
      }
      const auto claimed =
          tasks_->Claim({.table = *ParseTableName(table), .incarnation = "w.1", .ids = ids}).value();
      for (const Settlement& one : Succeeded(claimed)) batch.push_back(one);
    }
  }
  std::unique_ptr<TaskStore> tasks_;
};

TEST_F(MysqlLocks, LockedRowInABatchDelaysItselfAlone) {
  const auto ids = Add(999);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE tasks SET priority=4 WHERE id=" + std::to_string(ids[500]));
  EXPECT_EQ(Claim(*tasks_, ids).size(), 998U);
  other.Ask("COMMIT");
  const auto late = Claim(*tasks_, ids);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].key.id, ids[500]);
}

TEST_F(MysqlLocks, WhoHasTheRowsBesideARangeHoldsItUpNeitherWhenItIsClaimedNorWhenItIsSettled) {
  const auto ids = Add(202);
  const std::vector<std::uint64_t> mine(ids.begin() + 1, ids.end() - 1);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE tasks SET priority=4 WHERE id IN (" + std::to_string(ids.front()) + "," +
            std::to_string(ids.back()) + ")");
  ASSERT_THAT(mysql::WithIds(mine), testing::HasSubstr("BETWEEN"));
  const auto start = std::chrono::steady_clock::now();
  const auto claimed = Claim(*tasks_, mine);
  ASSERT_EQ(claimed.size(), mine.size());
  const auto settled = tasks_->Settle("w.1", Succeeded(claimed));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(Count("tasks_done"), mine.size());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900))
      << "a lock is waited for a second";
  other.Ask("COMMIT");
}

TEST_F(MysqlLocks, LockedRowDoesNotHoldUpTheSettleOfTheOthers) {
  const auto claimed = Claim(*tasks_, Add(999));
  const auto batch = Succeeded(claimed);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE tasks SET cancel=1 WHERE id=" + std::to_string(claimed[20].key.id));
  const auto start = std::chrono::steady_clock::now();
  auto settled = tasks_->Settle("w.1", batch);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(std::count(settled->verdicts.begin(), settled->verdicts.end(), SettleVerdict::Settled), 998);
  EXPECT_EQ(settled->verdicts[20], SettleVerdict::Busy);
  EXPECT_EQ(Count("tasks_done"), 998U);
  // The next ones do not wait for the lock again.
  const auto again = std::chrono::steady_clock::now();
  const auto more = Claim(*tasks_, Add(2));
  const std::vector<Settlement> next{batch[20], Succeeded(more[0]), Succeeded(more[1])};
  settled = tasks_->Settle("w.1", next);
  EXPECT_LT(std::chrono::steady_clock::now() - again, std::chrono::milliseconds(900));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts,
            (std::vector{SettleVerdict::Busy, SettleVerdict::Settled, SettleVerdict::Settled}));
  other.Ask("COMMIT");
  settled = tasks_->Settle("w.1", std::span(&batch[20], 1));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts[0], SettleVerdict::Settled);
  EXPECT_EQ(Count("tasks_done"), 1001U);
}

// A table that is locked as a whole, as behind DDL that waits for a dump.
TEST_F(MysqlLocks, ALockedTableIsNotWaitedForAndDoesNotHoldUpTheOthers) {
  ASSERT_TRUE(direct_->OpenSchema()->Apply({.tables = 2, .slices = 4}));
  sql_->Ask("INSERT INTO tasks_000 (handler,slice) VALUES ('noop',1),('noop',2)");
  sql_->Ask("INSERT INTO tasks_001 (handler,slice) VALUES ('noop',1),('noop',2)");
  const auto claim = [&](const char* table) {
    return tasks_->Claim({.table = *ParseTableName(table), .incarnation = "w.1", .ids = {1, 2}}).value();
  };
  auto batch = Succeeded(claim("tasks_000"));
  const auto others = Succeeded(claim("tasks_001"));
  batch.insert(batch.end(), others.begin(), others.end());
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("LOCK TABLES tasks_000 WRITE");
  const std::vector verdicts{SettleVerdict::Busy, SettleVerdict::Busy, SettleVerdict::Settled,
                             SettleVerdict::Settled};
  const auto start = std::chrono::steady_clock::now();
  auto settled = tasks_->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, verdicts);
  // The next one knows them, and still does not let the others wait for long.
  sql_->Ask("INSERT INTO tasks_001 (handler,slice) VALUES ('noop',1),('noop',2)");
  auto more = tasks_->Claim({.table = *ParseTableName("tasks_001"), .incarnation = "w.1", .ids = {3, 4}});
  ASSERT_TRUE(more) << more.error().message;
  batch.resize(2);
  for (const Task& task : *more) batch.push_back(Succeeded(task));
  settled = tasks_->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, verdicts);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(12));
  const auto refused =
      tasks_->Claim({.table = *ParseTableName("tasks_000"), .incarnation = "w.1", .ids = {1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Conflict) << refused.error().message;
  other.Ask("UNLOCK TABLES");
  settled = tasks_->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts[0], SettleVerdict::Settled);
  EXPECT_EQ(settled->verdicts[1], SettleVerdict::Settled);
}

// As behind an ALTER that waits for a dump.
TEST_F(MysqlLocks, ATableThatCanNotBeReadIsLeftOutOfTheDueMap) {
  ASSERT_TRUE(direct_->OpenSchema()->Apply({.tables = 2, .slices = 4}));
  for (const char* table : {"tasks_000", "tasks_001"})
    sql_->Ask(std::string("INSERT INTO ") + table + " (handler,slice) VALUES ('noop',1)");
  const std::vector<TableSlices> both{{.table = "tasks_000"}, {.table = "tasks_001"}};
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("LOCK TABLES tasks_000 WRITE");
  const auto map = tasks_->Due(both, {});
  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->groups.size(), 1U);
  EXPECT_EQ(map->groups[0].table, TableName("tasks_001"));
  EXPECT_NE(map->now, WallTime{});
  ASSERT_EQ(map->refused.size(), 1U);
  EXPECT_TRUE(map->refused.contains("tasks_000"));
  EXPECT_FALSE(tasks_->Due(both)) << "for those who want all of them";
  const auto alone = tasks_->Due(std::span(both).first(1));
  ASSERT_FALSE(alone) << "of one there is nothing else to tell";
  EXPECT_EQ(alone.error().code, ErrorCode::Conflict);
  other.Ask("UNLOCK TABLES");
  EXPECT_EQ(tasks_->Due(both)->groups.size(), 2U);
  EXPECT_TRUE(tasks_->Due(both, {})->refused.empty());
}

// The table of a pool alone: a claim does not meet it.
TEST_F(MysqlLocks, ALockedPoolOfATableHoldsUpThatTableAlone) {
  std::vector<Settlement> batch;
  ASSERT_NO_FATAL_FAILURE(ClaimInTwoTables({1, 2}, batch));
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("LOCK TABLES tasks_000_done WRITE");
  auto settled = tasks_->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, (std::vector{SettleVerdict::Busy, SettleVerdict::Busy, SettleVerdict::Settled,
                                            SettleVerdict::Settled}));
  EXPECT_NE(settled->errors[0].find("lock"), std::string::npos) << settled->errors[0];
  settled = tasks_->Settle("w.1", std::span(batch).first(2));
  ASSERT_TRUE(settled) << "with nobody else it is told in the same way: " << settled.error().message;
  EXPECT_EQ(settled->verdicts[1], SettleVerdict::Busy);
  other.Ask("UNLOCK TABLES");
  settled = tasks_->Settle("w.1", std::span(batch).first(2));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, std::vector<SettleVerdict>(2, SettleVerdict::Settled));
}

// Neither a lock nor wrong data: a pool that is gone, or a trigger on it that can't be run.
TEST_F(MysqlLocks, APoolThatCanNotBeWrittenHoldsUpItsOwnTableAlone) {
  std::vector<Settlement> batch;
  ASSERT_NO_FATAL_FAILURE(ClaimInTwoTables({1}, batch));
  sql_->Ask("RENAME TABLE tasks_000_done TO put_away");
  auto settled = tasks_->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, (std::vector{SettleVerdict::Busy, SettleVerdict::Settled}));
  EXPECT_NE(settled->errors[0].find("tasks_000_done"), std::string::npos) << settled->errors[0];
  sql_->Ask("RENAME TABLE put_away TO tasks_000_done");
  settled = tasks_->Settle("w.1", std::span(batch).first(1));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts[0], SettleVerdict::Settled);
}

// Whoever has met a key as a duplicate keeps it locked until the end of his transaction.
constexpr const char* kMeet =
    "SELECT entered_at FROM tasks_keys WHERE handler='noop' AND biz_key='k' LOCK IN SHARE MODE";

TEST_F(MysqlLocks, ALockedKeyHoldsUpItsOwnTaskAlone) {
  const std::vector<NewTask> tasks{
      {.handler = "noop", .biz_key = "k"}, {.handler = "noop", .biz_key = "free"}, {.handler = "noop"}};
  const auto report = direct_->OpenOperations()->Submit("tasks", tasks);
  ASSERT_TRUE(report) << report.error().message;
  const auto claimed = Claim(*tasks_, report->ids);
  ASSERT_EQ(claimed.size(), 3U);
  ASSERT_EQ(claimed[0].biz_key, "k");
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask(kMeet);
  auto settled = tasks_->Settle("w.1", Succeeded(claimed));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts,
            (std::vector{SettleVerdict::Busy, SettleVerdict::Settled, SettleVerdict::Settled}));
  const auto more = Claim(*tasks_, Add(1));
  const auto again = std::chrono::steady_clock::now();
  settled = tasks_->Settle("w.1", std::vector{Succeeded(claimed[0]), Succeeded(more[0])});
  EXPECT_LT(std::chrono::steady_clock::now() - again, std::chrono::milliseconds(900))
      << "nobody waits for it";
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts, (std::vector{SettleVerdict::Busy, SettleVerdict::Settled}));
  // Its worker dies: the others that it had are not kept back either.
  const auto left = Claim(*tasks_, Add(1));
  ASSERT_TRUE(direct_->OpenIncarnations()->Retire("w.1").value());
  const auto rescued = tasks_->Rescue({"tasks", "w.1", 1, {claimed[0].key.id, left[0].key.id}});
  ASSERT_TRUE(rescued) << rescued.error().message;
  EXPECT_EQ(*rescued, std::vector{left[0].key.id});
  other.Ask("COMMIT");
  EXPECT_EQ(tasks_->Rescue({"tasks", "w.1", 1, {claimed[0].key.id}}).value(), std::vector{claimed[0].key.id});
}

TEST_F(MysqlLocks, ALockedKeyOfAPlainRowKeepsThatOneWaitingAlone) {
  for (const char* key : {"k", "free"})
    sql_->Ask("INSERT INTO tasks (handler,biz_key) VALUES ('noop','" + std::string(key) + "')");
  sql_->Ask("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id) VALUES ('noop','k','tasks',999)");
  const auto claimed = Claim(*tasks_, {1, 2});
  ASSERT_EQ(claimed.size(), 2U);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask(kMeet);
  const auto confirmed = tasks_->ConfirmKeys("w.1", claimed);
  ASSERT_TRUE(confirmed) << confirmed.error().message;
  ASSERT_EQ(confirmed->size(), 1U);
  EXPECT_EQ((*confirmed)[0].task, claimed[1].key);
  EXPECT_TRUE((*confirmed)[0].mine);
  other.Ask("COMMIT");
}

// Its entry is seen by its lock alone.
TEST_F(MysqlLocks, AKeyThatIsBeingEnteredKeepsItsOwnTaskWaitingAlone) {
  for (const char* key : {"k", "free"})
    sql_->Ask("INSERT INTO tasks (handler,biz_key) VALUES ('noop','" + std::string(key) + "')");
  const auto claimed = Claim(*tasks_, {1, 2});
  ASSERT_EQ(claimed.size(), 2U);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id) VALUES ('noop','k','tasks',999)");
  const auto confirmed = tasks_->ConfirmKeys("w.1", claimed);
  ASSERT_TRUE(confirmed) << confirmed.error().message;
  ASSERT_EQ(confirmed->size(), 1U);
  EXPECT_EQ((*confirmed)[0].task, claimed[1].key);
  other.Ask("ROLLBACK");
  EXPECT_EQ(tasks_->ConfirmKeys("w.1", claimed)->size(), 2U);
}

TEST_F(MysqlLocks, LockedRowHoldsUpNeitherCancelsNorTheProgressOfTheOthers) {
  const auto claimed = Claim(*tasks_, Add(3));
  sql_->Ask("UPDATE tasks SET cancel=1 WHERE id=" + std::to_string(claimed[2].key.id));
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE tasks SET priority=4 WHERE id=" + std::to_string(claimed[0].key.id));
  std::vector<TaskKey> running;
  std::vector<TaskProgress> progress;
  for (const Task& task : claimed) {
    running.push_back(task.key);
    progress.push_back({task.key, task.attempt, "half"});
  }
  const auto cancelled = tasks_->Cancelled("w.1", running);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(*cancelled, std::vector{claimed[2].key});
  auto locked = tasks_->SaveProgress("w.1", progress);
  ASSERT_TRUE(locked) << locked.error().message;
  EXPECT_EQ(*locked, std::vector{claimed[0].key});
  EXPECT_EQ(Count("tasks WHERE progress='half'"), 2U);
  other.Ask("COMMIT");
  locked = tasks_->SaveProgress("w.1", progress);
  ASSERT_TRUE(locked) << locked.error().message;
  EXPECT_TRUE(locked->empty());
  EXPECT_EQ(Count("tasks WHERE progress='half'"), 3U);
}

TEST_F(MysqlLocks, TheProgressOfMoreTasksThanABatchHasFitsIntoTheServersPackets) {
  constexpr std::size_t kBatches = 3;
  std::vector<TaskProgress> progress;
  for (std::size_t i = 0; i < kBatches; ++i) {
    for (const Task& task : Claim(*tasks_, Add(kMaxBatchRows)))
      progress.push_back({task.key, task.attempt, std::string(4096, '\'')});
  }
  ASSERT_EQ(progress.size(), kBatches * kMaxBatchRows);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE tasks SET priority=4 WHERE id=" + std::to_string(progress[1500].key.id));
  const auto locked = tasks_->SaveProgress("w.1", progress);
  ASSERT_TRUE(locked) << locked.error().message;
  EXPECT_EQ(*locked, std::vector{progress[1500].key});
  other.Ask("COMMIT");
  EXPECT_EQ(Count("tasks WHERE LENGTH(progress)>4000"), progress.size() - 1);
}

// A claim locks the row of its life in share mode.
TEST_F(MysqlLocks, PruningDeadIncarnationsWaitsForNoLockOnALivingOne) {
  const auto incarnations = direct_->OpenIncarnations();
  for (int i = 0; i < 40; ++i) {
    const std::string id = "a." + std::to_string(i);
    ASSERT_TRUE(incarnations->Register({.id = id, .worker = "a", .host = "here"}));
    ASSERT_TRUE(incarnations->Retire(id).value());
  }
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("SELECT 1 FROM millrace_incarnations WHERE id='w.1' LOCK IN SHARE MODE");
  const auto removed = direct_->OpenPruning()->PruneIncarnations(-std::chrono::hours(1), 40);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 40U);
}

TEST_F(MysqlLocks, ProducersInsertWhileAClaimIsOpen) {
  Add(3);
  const std::uint64_t claimer = std::stoull(sql_->Ask("SELECT number FROM millrace_incarnations"));
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask(mysql::ClaimText("tasks", "id IN (1,2,3)", claimer, 0));
  ASSERT_EQ(other.Ask("SELECT COUNT(*) FROM tasks WHERE state=2"), "3");
  sql_->Ask("SET innodb_lock_wait_timeout=1");
  const auto inserted = sql_->Run("INSERT INTO tasks (handler,slice) VALUES ('noop',1),('noop',1)");
  EXPECT_TRUE(inserted) << inserted.error().message;
  other.Ask("COMMIT");
}

TEST_F(MysqlLocks, ClaimsGoOnWhileAProducersTransactionIsOpen) {
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("INSERT INTO tasks (handler) VALUES ('noop')");
  EXPECT_EQ(Claim(*tasks_, Add(10)).size(), 10U);
  other.Ask("COMMIT");
}

TEST_F(MysqlLocks, DeadIncarnationClaimsNothingAndIsToldSo) {
  const auto ids = Add(3);
  ASSERT_TRUE(direct_->OpenIncarnations()->Retire("w.1").value());
  auto claimed = tasks_->Claim(Request(ids));
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::Cancelled);
}

// A takeover in progress holds the flag: a claim waits for it and then finds itself dead.
TEST_F(MysqlLocks, ClaimCannotSlipPastATakeover) {
  const auto ids = Add(3);
  SqlConnection other(database_.url(), database_.password_file());
  other.Ask("BEGIN");
  other.Ask("UPDATE millrace_incarnations SET dead=1 WHERE id='w.1'");
  Result<std::vector<Task>> claimed;
  std::thread claiming([&] { claimed = tasks_->Claim(Request(ids)); });
  WaitForLockWait();
  other.Ask("COMMIT");
  claiming.join();
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::Cancelled);
  EXPECT_EQ(Count("tasks WHERE state=2"), 0U);
}

TEST_F(MysqlLocks, AClaimThatATriggerRefusesIsWrongDataAndClaimsNothing) {
  const auto ids = Add(3);
  sql_->Ask("CREATE TRIGGER no_claim BEFORE UPDATE ON tasks FOR EACH ROW BEGIN IF NEW.state=2 AND NEW.id=" +
            std::to_string(ids[1]) +
            " THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='not this one'; END IF; END");
  const auto refused = tasks_->Claim(Request(ids));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Invalid) << refused.error().message;
  EXPECT_EQ(Count("tasks WHERE state=2"), 0U);
  const auto failed = tasks_->FailUnclaimed(Request({ids[1]}), refused.error().message);
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(*failed, std::vector{ids[1]});
  EXPECT_EQ(Claim(*tasks_, ids).size(), 2U);
}

class MysqlServer : public StoreFaults {
 protected:
  MysqlServer() : StoreFaults(ServerOf(Private())) {}
};

TEST_F(MysqlServer, ReadOnlyIsUnavailableUntilItIsOver) {
  auto tasks = direct_->OpenTasks();
  const auto ids = Add(3);
  const auto claimed = Claim(*tasks, Add(2));
  Private().AsRoot("SET GLOBAL read_only=1");
  auto refused = tasks->Claim(Request(ids));
  auto unsettled = tasks->Settle("w.1", Succeeded(claimed));
  auto beat = direct_->OpenIncarnations()->Renew("w.1");
  Private().AsRoot("SET GLOBAL read_only=0");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable) << refused.error().message;
  ASSERT_FALSE(unsettled);
  EXPECT_EQ(unsettled.error().code, ErrorCode::Unavailable) << unsettled.error().message;
  ASSERT_FALSE(beat);
  EXPECT_EQ(Claim(*tasks, ids).size(), 3U);
  ASSERT_TRUE(tasks->Settle("w.1", Succeeded(claimed)));
  EXPECT_EQ(Count("tasks_done"), 2U);
}

TEST_F(MysqlServer, StoppedAndStartedAgainGoesOnByItself) {
  auto tasks = direct_->OpenTasks();
  auto beats = direct_->OpenIncarnations();
  const auto ids = Add(3);
  ASSERT_TRUE(beats->Renew("w.1").value());
  Private().Stop();
  auto away = direct_->Ping();
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::Unavailable) << away.error().message;
  EXPECT_FALSE(tasks->Claim(Request(ids)));
  EXPECT_FALSE(beats->Renew("w.1"));
  Private().Start();
  EXPECT_TRUE(beats->Renew("w.1").value());
  EXPECT_EQ(Claim(*tasks, ids).size(), 3U);
  sql_ = std::make_unique<SqlConnection>(database_.url(), database_.password_file());
}

TEST_F(MysqlServer, RefusalsSayWhatToDo) {
  StoreUrl url = database_.url();
  const auto ping = [&](const StoreUrl& to, const std::string& file) {
    StoreOptions options;
    options.password_file = file;
    auto done = mysql::OpenStore(to, options).value()->Ping();
    return done ? Error{} : done.error();
  };
  StoreUrl wrong = url;
  wrong.database = "nowhere";
  EXPECT_EQ(ping(wrong, database_.password_file()).code, ErrorCode::Denied);
  EXPECT_NE(ping(wrong, database_.password_file()).message.find("no such database"), std::string::npos);
  EXPECT_EQ(ping(url, "").code, ErrorCode::Denied);
  EXPECT_NE(ping(url, "").message.find("MILLRACE_PASSWORD_FILE"), std::string::npos);
  wrong = url;
  wrong.port = 1;
  EXPECT_EQ(ping(wrong, database_.password_file()).code, ErrorCode::Unavailable);
  wrong = url;
  wrong.tls_ca = "/nonexistent.pem";
  EXPECT_NE(ping(wrong, database_.password_file()).message, "");
}

}  // namespace
}  // namespace millrace::engine
