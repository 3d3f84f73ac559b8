#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {

void TransactionContract::SetUp() {
  SqlStoreContract::SetUp();
  const auto made = sql().NewClient()->Run(
      "CREATE TABLE account (id BIGINT PRIMARY KEY, points BIGINT, note TEXT, rate DOUBLE)");
  ASSERT_TRUE(made) << made.error().message;
  id_ = AddDue(1)[0];
  task_ = ClaimOne(id_);
  transaction_ = store().OpenTransaction(std::chrono::seconds(5));
}

SqlResult TransactionContract::Execute(std::string_view text, const std::vector<SqlValue>& values) {
  auto result = transaction_->Execute(text, values);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : SqlResult{};
}

CommitReport TransactionContract::Commit(const Settlement& settlement) {
  return transaction_->Commit("w.1", std::span(&settlement, 1));
}

std::string TransactionContract::Accounts() {
  auto count = sql().Ask("SELECT count(*) FROM account");
  EXPECT_TRUE(count) << count.error().message;
  return count.value_or("?");
}

namespace {

using To = Settlement::To;

SqlResult Must(Result<SqlResult> result) {
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : SqlResult{};
}

TEST_P(TransactionContract, CommitsTheHandlersSqlWithTheSettle) {
  EXPECT_EQ(transaction_->state(), TransactionState::Idle);
  EXPECT_EQ(
      Execute("INSERT INTO account (id, points) VALUES (?, ?)", {std::int64_t{7}, std::int64_t{42}}).affected,
      1U);
  EXPECT_EQ(transaction_->state(), TransactionState::Open);
  const CommitReport report = Commit(End(task_, To::Succeeded, "done"));
  EXPECT_EQ(report.verdict, CommitVerdict::Committed) << report.message;
  EXPECT_EQ(transaction_->state(), TransactionState::Idle);
  EXPECT_EQ(Accounts(), "1");
  EXPECT_EQ(Get(id_).result, "done");
}

TEST_P(TransactionContract, SettlesWithoutAnySqlToo) {
  EXPECT_EQ(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed);
  EXPECT_EQ(StateOf(id_), TaskState::Succeeded);
}

TEST_P(TransactionContract, WhatIsNotKeptCommitsWithTheHandlersSqlAndIsRefusedAsAnyOther) {
  Execute("INSERT INTO account (id, points) VALUES (1, 1)");
  Settlement end = End(task_, To::Succeeded);
  end.kept = false;
  end.attempt = 9;
  EXPECT_EQ(Commit(end).verdict, CommitVerdict::Refused);
  EXPECT_EQ(StateOf(id_), TaskState::Running);
  Execute("INSERT INTO account (id, points) VALUES (2, 2)");
  end.attempt = task_.attempt;
  EXPECT_EQ(Commit(end).verdict, CommitVerdict::Committed);
  EXPECT_EQ(Accounts(), "1");
  const auto record = operations().Get({"tasks", id_});
  EXPECT_TRUE(!record && record.error().code == ErrorCode::NotFound);
}

TEST_P(TransactionContract, ARefusedSettleTakesTheHandlersSqlBack) {
  Execute("INSERT INTO account (id, points) VALUES (1, 1)");
  Settlement stale = End(task_, To::Succeeded);
  stale.attempt = 9;
  EXPECT_EQ(Commit(stale).verdict, CommitVerdict::Refused);
  EXPECT_EQ(Accounts(), "0");
  EXPECT_EQ(StateOf(id_), TaskState::Running);
  EXPECT_EQ(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed) << "the session goes on";
}

TEST_P(TransactionContract, AnSqlErrorLeavesOnlyTheRollback) {
  Execute("INSERT INTO account (id) VALUES (1)");
  EXPECT_FALSE(transaction_->Execute("INSERT INTO no_such_table VALUES (1)", {}));
  EXPECT_EQ(transaction_->state(), TransactionState::Poisoned);
  EXPECT_FALSE(transaction_->Execute("INSERT INTO account (id) VALUES (2)", {}));
  transaction_->Rollback();
  EXPECT_EQ(transaction_->state(), TransactionState::Idle);
  EXPECT_EQ(Accounts(), "0");
}

TEST_P(TransactionContract, APoisonedTransactionCommitsNothing) {
  Execute("INSERT INTO account (id) VALUES (1)");
  EXPECT_FALSE(transaction_->Execute("INSERT INTO account (id) VALUES (1)", {}));
  EXPECT_NE(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed);
  EXPECT_EQ(Accounts(), "0");
  EXPECT_EQ(StateOf(id_), TaskState::Running);
}

TEST_P(TransactionContract, RollbackTakesEverythingBack) {
  Execute("INSERT INTO account (id) VALUES (1)");
  transaction_->Rollback();
  EXPECT_EQ(Accounts(), "0");
  transaction_->Rollback();
  EXPECT_EQ(Accounts(), "0");
}

TEST_P(TransactionContract, ValuesOfEveryKindComeBackAsTheyWere) {
  const std::string text = "quote ' and ? and \\ and ü and\nline";
  Execute("INSERT INTO account (id, points, note, rate) VALUES (?, ?, ?, ?)",
          {std::int64_t{-9'000'000'000'000'000'000}, std::monostate{}, text, 2.5});
  const SqlResult result = Execute("SELECT id, points, note, rate FROM account");
  EXPECT_EQ(result.columns, (std::vector<std::string>{"id", "points", "note", "rate"}));
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0][0], "-9000000000000000000");
  EXPECT_EQ(result.rows[0][1], std::nullopt);
  EXPECT_EQ(result.rows[0][2], text);
  EXPECT_EQ(result.rows[0][3], "2.5");
  EXPECT_EQ(Execute("UPDATE account SET rate=? WHERE id=1", {1.0}).affected, 0U);
}

TEST_P(TransactionContract, AFloatingPointNumberComesBackWithAllItsDigits) {
  Execute("INSERT INTO account (id, rate) VALUES (1, 0.1e0 + 0.2e0)");
  const SqlResult result = Execute("SELECT rate FROM account");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0][0], "0.30000000000000004");
}

TEST_P(TransactionContract, AFullDiskIsNoFailureOfTheTask) {
  if (GetParam().name != "sqlite") return;
  Execute("INSERT INTO account (id) VALUES (1)");
  Execute("PRAGMA max_page_count=1");  // as many as there are
  EXPECT_FALSE(transaction_->Execute("INSERT INTO account (id, note) VALUES (2, zeroblob(1000000))", {}));
  EXPECT_EQ(transaction_->state(), TransactionState::Lost);
  transaction_->Rollback();
  EXPECT_EQ(Accounts(), "0");
}

TEST_P(TransactionContract, AffectedCountsTheRowsFoundAlsoWhereNothingChanges) {
  Execute("INSERT INTO account (id, points) VALUES (1, 5)");
  EXPECT_EQ(Execute("UPDATE account SET points=5 WHERE id=1").affected, 1U);
}

TEST_P(TransactionContract, AWrongNumberOfValuesIsRefused) {
  const auto refused = transaction_->Execute("INSERT INTO account (id) VALUES (?)", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Invalid) << refused.error().message;
  EXPECT_EQ(transaction_->state(), TransactionState::Poisoned) << refused.error().message;
  transaction_->Rollback();
  EXPECT_EQ(Accounts(), "0");
}

TEST_P(TransactionContract, ADuplicateOfATaskWhoseTableWasDroppedLeavesTheTransactionOpen) {
  const auto entered = sql().NewClient()->Run(
      "INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at,ended_at,keep_until) VALUES "
      "('noop','k','tasks_999',5,'2026-01-01 00:00:00.000000','2026-01-01 00:00:00.000000',"
      "'9999-12-31 00:00:00.000000')");
  ASSERT_TRUE(entered) << entered.error().message;
  const NewTask task{.handler = "noop", .biz_key = "k"};
  const auto report = transaction_->Submit("tasks", std::span(&task, 1));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->duplicates[0], "tasks_999/5");
  EXPECT_EQ(transaction_->state(), TransactionState::Open);
  EXPECT_EQ(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed);
}

TEST_P(TransactionContract, TasksSubmittedInsideGoWithTheTransaction) {
  const std::vector<NewTask> more{{.handler = "next", .biz_key = "k"}, {.handler = "next", .biz_key = "k"}};
  auto added = transaction_->Submit("tasks", more);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->added, 1U);
  transaction_->Rollback();
  EXPECT_FALSE(operations().Find("tasks", "next", "k"));
  ASSERT_TRUE(transaction_->Submit("tasks", more));
  EXPECT_EQ(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed);
  EXPECT_TRUE(operations().Find("tasks", "next", "k"));
}

TEST_P(TransactionContract, WhatWasSentSinceTheMarkIsUndoneByItself) {
  ASSERT_TRUE(transaction_->Mark());
  Execute("INSERT INTO account (id) VALUES (1)");
  ASSERT_TRUE(transaction_->Mark());
  Execute("INSERT INTO account (id) VALUES (2)");
  ASSERT_TRUE(transaction_->Submit("tasks", std::vector<NewTask>{{.handler = "next", .biz_key = "k"}}));
  ASSERT_TRUE(transaction_->Undo());
  ASSERT_TRUE(transaction_->Mark());
  Execute("INSERT INTO account (id) VALUES (3)");
  EXPECT_EQ(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed);
  EXPECT_EQ(Accounts(), "2");
  EXPECT_FALSE(operations().Find("tasks", "next", "k"));
}

TEST_P(TransactionContract, AStatementThatTheDataForbidsIsUndoneByItselfToo) {
  ASSERT_TRUE(transaction_->Mark());
  Execute("INSERT INTO account (id) VALUES (1)");
  ASSERT_TRUE(transaction_->Mark());
  Execute("INSERT INTO account (id) VALUES (2)");
  EXPECT_FALSE(transaction_->Execute("INSERT INTO account (id) VALUES (1)", {}));
  EXPECT_EQ(transaction_->state(), TransactionState::Poisoned);
  ASSERT_TRUE(transaction_->Undo());
  EXPECT_EQ(transaction_->state(), TransactionState::Open);
  EXPECT_EQ(Commit(End(task_, To::Succeeded)).verdict, CommitVerdict::Committed);
  EXPECT_EQ(Accounts(), "1");
}

TEST_P(TransactionContract, ATransactionEndedBehindItsBackIsTold) {
  Execute("INSERT INTO account (id) VALUES (1)");
  EXPECT_FALSE(transaction_->Execute("COMMIT", {}));
  EXPECT_EQ(transaction_->state(), TransactionState::Escaped) << "at once";
  EXPECT_FALSE(transaction_->Execute("INSERT INTO account (id) VALUES (2)", {}));
  const CommitReport report = Commit(End(task_, To::Succeeded));
  EXPECT_EQ(report.verdict, CommitVerdict::Escaped);
  EXPECT_FALSE(report.message.empty());
  EXPECT_EQ(StateOf(id_), TaskState::Running);
}

TEST_P(TransactionContract, SeveralTasksSettleTogetherOrNotAtAll) {
  const Task second = ClaimOne(AddDue(1)[0]);
  std::vector<Settlement> batch{End(task_, To::Succeeded), End(second, To::Succeeded)};
  batch[1].attempt = 5;
  Execute("INSERT INTO account (id) VALUES (1)");
  EXPECT_EQ(transaction_->Commit("w.1", batch).verdict, CommitVerdict::Refused);
  EXPECT_EQ(StateOf(id_), TaskState::Running);
  batch[1].attempt = 1;
  EXPECT_EQ(transaction_->Commit("w.1", batch).verdict, CommitVerdict::Committed);
  EXPECT_EQ(StateOf(second.key.id), TaskState::Succeeded);
}

TEST_P(TransactionContract, ASettleThatTheDatabaseRefusesCommitsNothingAndSaysSo) {
  Execute("INSERT INTO account (id) VALUES (1)");
  const CommitReport report = Commit(End(task_, To::Succeeded, "not UTF-8: \xff\xfe"));
  EXPECT_EQ(report.verdict, CommitVerdict::Broken) << report.message;
  EXPECT_FALSE(report.message.empty());
  EXPECT_EQ(Accounts(), "0");
  EXPECT_EQ(StateOf(id_), TaskState::Running);
}

TEST_P(SqlStoreContract, TheViewFindsATaskThroughoutItsLife) {
  const auto id = AddDue(1)[0];
  const std::string ask = "SELECT state FROM tasks_all WHERE id=" + std::to_string(id);
  EXPECT_EQ(sql().Ask(ask).value_or("?"), "0");
  const Task task = ClaimOne(id);
  EXPECT_EQ(sql().Ask(ask).value_or("?"), "2");
  Settle({End(task, To::Succeeded)});
  EXPECT_EQ(sql().Ask(ask).value_or("?"), "1");
}

// As a text of SQL can't hold it: a name that ends, for whoever reads it as C does, before its last bytes.
TEST_P(SqlStoreContract, NoHandlersNameHidesBytesBehindAZero) {
  EXPECT_FALSE(
      sql().NewClient()->Run("INSERT INTO tasks (handler, params) VALUES "
                             "(CAST(X'6E6F6F7000' AS CHAR), '{}')"));
  EXPECT_TRUE(
      sql().NewClient()->Run("INSERT INTO tasks (handler, params) VALUES "
                             "(CAST(X'6E6F6F70' AS CHAR), '{}')"));
}

TEST_P(SqlStoreContract, ALifeOfWhichSomebodyHasEndedAHalfIsOver) {
  const std::string halves[] = {"UPDATE millrace_incarnations SET dead=1",
                                "DELETE FROM millrace_incarnations", "DELETE FROM millrace_beats"};
  for (std::size_t i = 0; i < std::size(halves); ++i) {
    const std::string life = "v." + std::to_string(i);
    Register(life);
    const auto id = AddDue(1)[0];
    ClaimOne(id, 0, life);
    Must(sql().NewClient()->Run(halves[i] + " WHERE id='" + life + "'"));
    auto renewed = incarnations().Renew(life);
    ASSERT_TRUE(renewed) << renewed.error().message;
    EXPECT_FALSE(*renewed) << halves[i];
    auto peers = incarnations().Peers();
    ASSERT_TRUE(peers);
    for (const PeerBeat& peer : *peers) EXPECT_FALSE(peer.incarnation.id == life && peer.beat) << halves[i];
    ASSERT_TRUE(incarnations().Retire(life));
    EXPECT_EQ(sql().Ask("SELECT COUNT(*) FROM millrace_beats WHERE id='" + life + "'").value_or("?"), "0")
        << halves[i];
    auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = life, .attempt = 1, .ids = {id}});
    ASSERT_TRUE(rescued);
    EXPECT_EQ(*rescued, std::vector{id}) << halves[i];
  }
}

// Where somebody has taken the constraint off a table it takes any number: it keeps the row from nothing that
// it needs.
TEST_P(SqlStoreContract, TheLargestNumbersOfATableThatTakesThemAreFailedAndSettledAllTheSame) {
  if (const auto former = sql().NewClient();
      !former->Run("ALTER TABLE tasks DROP CONSTRAINT tasks_count_range")) {
    Must(former->Run("PRAGMA writable_schema=ON"));
    Must(former->Run("UPDATE sqlite_master SET sql=replace(sql,' BETWEEN 0 AND 4100000000',' >= 0')"));
    const auto version = Must(former->Run("PRAGMA schema_version")).rows.at(0).at(0).value();
    Must(former->Run("PRAGMA schema_version=" + std::to_string(std::stoi(version) + 1)));
  }
  const auto client = sql().NewClient();
  const auto ids = AddDue(4);
  const auto set = [&](std::uint64_t id, const std::string& column) {
    Must(client->Run("UPDATE tasks SET " + column + "=4294967295 WHERE id=" + std::to_string(id)));
  };
  set(ids[0], "attempt");
  const ClaimRequest request{
      .table = "tasks", .incarnation = "w.1", .attempt = 4'294'967'295, .ids = {ids[0]}};
  auto unclaimed = tasks().FailUnclaimed(request, "no more numbers");
  ASSERT_TRUE(unclaimed) << unclaimed.error().message;
  EXPECT_EQ(*unclaimed, std::vector{ids[0]});
  for (const std::uint64_t id : {ids[1], ids[2]}) {
    const Task task = ClaimOne(id);
    set(id, "failures");
    Settlement end = End(task, To::Failed, "no");
    end.failed_attempt = true;
    EXPECT_EQ(Settle({end}).verdicts[0], SettleVerdict::Settled);
  }
  const Task task = ClaimOne(ids[3]);
  set(ids[3], "crashes");
  const Crash crash{task.key, task.attempt};
  auto charged = incarnations().ChargeCrashes("w.1", std::span(&crash, 1));
  EXPECT_TRUE(charged) << charged.error().message;
}

TEST_P(SqlStoreContract, WhatPeopleChangeIsInTheAudit) {
  const auto id = AddDue(1)[0];
  ASSERT_TRUE(operations().Apply(TaskAction::Hold, "tasks", std::span(&id, 1), "anna"));
  EXPECT_EQ(sql().Ask("SELECT actor FROM millrace_audit").value_or("?"), "anna");
  EXPECT_EQ(sql().Ask("SELECT action FROM millrace_audit").value_or("?"), "hold");
}

TEST_P(SqlStoreContract, TheAuditNamesEachTaskAndSaysWhatItWas) {
  const auto ids = AddDue(2);
  Settle({End(ClaimOne(ids[1]), To::Failed, "no")});
  ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", ids, std::string(300, 'a')));
  const auto detail = [&](std::uint64_t id) {
    return sql().Ask("SELECT detail FROM millrace_audit WHERE action='cancel' AND subject='tasks/" +
                     std::to_string(id) + "'");
  };
  EXPECT_EQ(detail(ids[0]).value_or("?"), "was waiting");
  EXPECT_EQ(detail(ids[1]).value_or("?"), "was failed");
  EXPECT_EQ(sql().Ask("SELECT MAX(LENGTH(actor)) FROM millrace_audit").value_or("?"), "190");
}

TEST_P(SqlStoreContract, AChargedCrashAndSavedProgressShowInTheRowsLastChange) {
  const auto ids = AddDue(2);
  const auto claimed = Claim(ids);
  ASSERT_EQ(claimed.size(), 2U);
  const auto client = sql().NewClient();
  Must(client->Run("UPDATE tasks SET updated_at='2001-01-01 00:00:00.000000'"));
  const Crash crash{claimed[0].key, 1};
  ASSERT_TRUE(incarnations().ChargeCrashes("w.1", std::span(&crash, 1)));
  const TaskProgress progress{claimed[1].key, 1, "half"};
  ASSERT_TRUE(tasks().SaveProgress("w.1", std::span(&progress, 1)));
  EXPECT_EQ(sql().Ask("SELECT COUNT(*) FROM tasks WHERE updated_at>'2002-01-01'").value_or("?"), "2");
}

TEST_P(SqlStoreContract, ARescuedTaskIsDueAtOnce) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  Must(sql().NewClient()->Run("UPDATE tasks SET run_at=" + SqlTime(Now() + std::chrono::hours(1))));
  ASSERT_TRUE(incarnations().Retire("w.1"));
  ASSERT_TRUE(tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}}));
  EXPECT_LE(Get(id).task.run_at, Now());
}

// A lossy failover may give the id of a task that has ended to another one with the same key.
TEST_P(SqlStoreContract, AnEntryOfATaskThatHasEndedStaysWhenItsIdComesAgain) {
  const NewTask keyed{.handler = "noop", .biz_key = "k"};
  auto report = operations().Submit("tasks", std::span(&keyed, 1));
  ASSERT_TRUE(report) << report.error().message;
  const std::uint64_t id = report->ids[0];
  Settle({End(ClaimOne(id), To::Succeeded)});
  const auto client = sql().NewClient();
  Must(client->Run("DELETE FROM tasks_done"));
  Must(client->Run("INSERT INTO tasks (id,slice,handler,params,biz_key) VALUES (" + std::to_string(id) +
                   ",1,'noop','{}','k')"));
  const Task again = ClaimOne(id);
  auto verdicts = tasks().ConfirmKeys("w.1", std::span(&again, 1));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  Settlement cancelled = End(again, To::Cancelled);
  cancelled.started = false;
  Settle({cancelled});
  report = operations().Submit("tasks", std::span(&keyed, 1));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->duplicates[0], TaskName(id)) << "the first one took effect";
}

TEST_P(SqlStoreContract, AnEntryOfATableThatIsNotThereIsVoid) {
  Must(
      sql().NewClient()->Run("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) "
                             "VALUES ('noop','k','tasks_999',1,'2026-01-01 00:00:00.000000')"));
  const NewTask keyed{.handler = "noop", .biz_key = "k"};
  auto report = operations().Submit("tasks", std::span(&keyed, 1));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->added, 1U);
}

// An account without any right on a table does not see it.
TEST_P(SqlStoreContract, AnEntryOfATableThatTheSchemaNamesAndNobodySeesHolds) {
  const auto client = sql().NewClient();
  Must(
      client->Run("INSERT INTO millrace_schema (task_table,slices,version,applied_at) SELECT "
                  "'tasks_999',slices,version,applied_at FROM millrace_schema WHERE task_table='tasks'"));
  Must(
      client->Run("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) "
                  "VALUES ('noop','k','tasks_999',1,'2026-01-01 00:00:00.000000')"));
  const NewTask keyed{.handler = "noop", .biz_key = "k"};
  auto report = operations().Submit("tasks", std::span(&keyed, 1));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->duplicates[0], "tasks_999/1");
  const Task task = ClaimOne(Add({.biz_key = "k"}));
  auto verdicts = tasks().ConfirmKeys("w.1", std::span(&task, 1));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_EQ((*verdicts)[0].holder, "tasks_999/1");
}

TEST_P(SqlStoreContract, ARowThatTheDatabaseRefusesKeepsNoOtherFromBeingRescued) {
  const auto ids = AddDue(5);
  ASSERT_EQ(Claim(ids).size(), 5U);
  const std::string refused = "NEW.state=0 AND NEW.id=" + std::to_string(ids[1]);
  Must(sql().NewClient()->Run("CREATE TRIGGER no_rescue BEFORE UPDATE ON tasks " +
                              (GetParam().name == "sqlite"
                                   ? "WHEN " + refused + " BEGIN SELECT RAISE(ABORT,'not this one'); END"
                                   : "FOR EACH ROW BEGIN IF " + refused +
                                         " THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='not this one'; "
                                         "END IF; END")));
  ASSERT_TRUE(incarnations().Retire("w.1"));
  auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = ids});
  ASSERT_TRUE(rescued) << rescued.error().message;
  EXPECT_EQ(rescued->size(), 4U);
  EXPECT_EQ(StateOf(ids[1]), TaskState::Running);
  EXPECT_EQ(StateOf(ids[4]), TaskState::Waiting);
}

TEST_P(SqlStoreContract, CheckFindsADroppedIndexAndAMissingTable) {
  const auto client = sql().NewClient();
  if (!client->Run("DROP INDEX tasks_due")) Must(client->Run("DROP INDEX due ON tasks"));
  Must(client->Run("DROP TABLE millrace_audit"));
  auto findings = store().OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  std::string all;
  for (const SchemaFinding& finding : *findings) all += finding.what + ": " + finding.problem + "\n";
  EXPECT_NE(all.find("due"), std::string::npos) << all;
  EXPECT_NE(all.find("millrace_audit"), std::string::npos) << all;
}

TEST_P(SqlStoreContract, APauseIsNotedInTheAudit) {
  ASSERT_TRUE(operations().SetPause("cluster", "ann", true));
  ASSERT_TRUE(operations().SetPause("cluster", "bob", false));
  EXPECT_EQ(sql()
                .Ask("SELECT COUNT(*) FROM millrace_audit WHERE action='pause' AND subject='cluster' AND "
                     "actor='ann'")
                .value_or("?"),
            "1");
  EXPECT_EQ(
      sql().Ask("SELECT COUNT(*) FROM millrace_audit WHERE action='resume' AND actor='bob'").value_or("?"),
      "1");
}

TEST_P(SqlStoreContract, ANewerSchemaIsWorkedOnWhereItSaysSoAndLeftAsItIs) {
  const auto client = sql().NewClient();
  ASSERT_TRUE(client->Run("UPDATE millrace_schema SET version=version+1"));
  const auto schema = store().OpenSchema();
  EXPECT_TRUE(schema->Tables()) << "this version is as old as may be";
  EXPECT_EQ(Claim(AddDue(1)).size(), 1U);
  const auto refused = [](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::Conflict);
    EXPECT_NE(error.message.find("newer program"), std::string::npos) << error.message;
  };
  const auto upgraded = schema->Upgrade(AtOnce());
  ASSERT_FALSE(upgraded);
  refused(upgraded.error());
  const auto checked = schema->Check();
  ASSERT_FALSE(checked);
  refused(checked.error());
  const Status applied = schema->Apply({.tables = 1, .slices = 4});
  ASSERT_FALSE(applied);
  refused(applied.error());
  for (const char* readable_by : {"version", "0"}) {
    ASSERT_TRUE(client->Run(std::string("UPDATE millrace_schema SET readable_by=") + readable_by));
    const auto tables = schema->Tables();
    ASSERT_FALSE(tables) << readable_by;
    refused(tables.error());
  }
}

// A row that a claim makes longer splits its page.
TEST_P(SqlStoreContract, ARowNamesItsClaimerByANumberThatWasDrawn) {
  const auto ids = AddDue(3);
  const std::string number =
      sql().Ask("SELECT number FROM millrace_incarnations WHERE id='w.1'").value_or("?");
  EXPECT_GT(std::stoull(number), std::uint64_t{1} << 32) << "it is hardly ever that small";
  const auto rows_of = [&](const std::string& claimer) {
    return sql().Ask("SELECT COUNT(*) FROM tasks WHERE claimed_by=" + claimer).value_or("?");
  };
  EXPECT_EQ(rows_of("0"), "3");
  EXPECT_EQ(
      sql().Ask("SELECT COUNT(*) FROM tasks WHERE claimed_at='1970-01-01 00:00:00.000000'").value_or("?"),
      "3");
  const auto claimed = Claim(ids);
  ASSERT_EQ(claimed.size(), 3U);
  EXPECT_EQ(claimed[0].claimed_by, "w.1");
  EXPECT_EQ(rows_of(number), "3");
  EXPECT_EQ(sql().Ask("SELECT COUNT(*) FROM tasks_all WHERE claimed_by='w.1'").value_or("?"), "3");
  EXPECT_FALSE(sql().NewClient()->Run("UPDATE tasks SET claimed_by=0")) << "running rows have a claimer";
  EXPECT_FALSE(sql().NewClient()->Run("UPDATE tasks SET claimed_by=NULL"));
  EXPECT_FALSE(sql().NewClient()->Run("UPDATE tasks SET claimed_by='w.1'"));
  Settle({End(claimed[0], To::Succeeded), End(claimed[1], To::Waiting), End(claimed[2], To::Failed, "no")});
  EXPECT_EQ(rows_of("0"), "1");
  EXPECT_EQ(sql().Ask("SELECT claimed_by FROM tasks_done").value_or("?"), "w.1");
  EXPECT_EQ(sql().Ask("SELECT claimed_by FROM tasks_failed").value_or("?"), "w.1");
  const TaskRecord again = Get(ids[1]);
  EXPECT_EQ(again.task.claimed_by, "");
  EXPECT_FALSE(again.task.claimed_at);
  EXPECT_EQ(sql()
                .Ask("SELECT COUNT(*) FROM tasks_all WHERE claimed_by IS NULL AND claimed_at IS NULL")
                .value_or("?"),
            "1");
}

// What a failover loses comes again, and not to somebody else.
TEST_P(SqlStoreContract, NobodyGetsTheNumberOfALifeThatTheDatabaseHasForgotten) {
  const auto ids = AddDue(2);
  const std::string first =
      sql().Ask("SELECT number FROM millrace_incarnations WHERE id='w.1'").value_or("?");
  const Task task = ClaimOne(ids[0]);
  Must(sql().NewClient()->Run("DELETE FROM millrace_incarnations"));
  Must(sql().NewClient()->Run("DELETE FROM millrace_beats"));
  Register("w.2");
  EXPECT_NE(sql().Ask("SELECT number FROM millrace_incarnations WHERE id='w.2'").value_or("?"), first);
  const Task other = ClaimOne(ids[1], 0, "w.2");
  EXPECT_EQ(Settle({End(other, To::Succeeded)}, "w.1").verdicts[0], SettleVerdict::Refused);
  EXPECT_EQ(Settle({End(task, To::Succeeded)}, "w.2").verdicts[0], SettleVerdict::Refused);
  EXPECT_FALSE(*incarnations().Renew("w.1"));
  EXPECT_FALSE(tasks().Claim({.table = "tasks", .incarnation = "w.1", .ids = AddDue(1)}));
}

// Whoever meets the row has never heard of its claimer, and the claimer's row is gone.
TEST_P(SqlStoreContract, ATaskOfAForgottenClaimerIsRescuedByItsNumber) {
  const auto id = AddDue(1)[0];
  Must(sql().NewClient()->Run("UPDATE tasks SET state=2, attempt=1, claimed_by=4711"));
  EXPECT_EQ(Get(id).task.claimed_by, "#4711");
  const auto rows = ScanAll();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].claimed_by, "#4711");
  auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = "#4711", .attempt = 1, .ids = {id}});
  ASSERT_TRUE(rescued) << rescued.error().message;
  EXPECT_EQ(*rescued, std::vector{id});
  EXPECT_EQ(StateOf(id), TaskState::Waiting);
}

}  // namespace
}  // namespace millrace::engine
