// From the tables of older versions, as their programs printed them, to those of today.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

constexpr const char* kThen = "'2026-01-01 00:00:00.000000'";

std::string FormerText(int version, const std::string& store) {
  std::stringstream text;
  text << std::ifstream(std::string(std::getenv("MILLRACE_SOURCE_DIR")) + "/tests/contract/suite/version_" +
                        std::to_string(version) + "/" + store + ".sql")
              .rdbuf();
  return text.str();
}

constexpr const char* kWhole =
    "SELECT id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,last_error,"
    "progress,created_at,result,error_class,finished_at FROM tasks_all ORDER BY id";

}  // namespace

void UpgradeContract::SetUp() { Make(2); }
void LiveUpgradeContract::SetUp() { Make(3); }

void UpgradeContract::Make(int version) {
  Disconnect();
  made_ = GetParam().make({.tables = 1, .slices = 4});
  ASSERT_NE(made_, nullptr);
  Run("DROP VIEW tasks_all");
  for (const char* table : {"tasks", "tasks_done", "tasks_failed", "tasks_keys", "millrace_attempts",
                            "millrace_audit", "millrace_beats", "millrace_counters", "millrace_incarnations",
                            "millrace_pauses", "millrace_schema"}) {
    Run(std::string("DROP TABLE ") + table);
  }
  const std::string text = FormerText(version, GetParam().name);
  ASSERT_FALSE(text.empty());
  for (std::size_t at = 0, end = text.find(";\n"); end != std::string::npos;
       at = end + 2, end = text.find(";\n", at)) {
    Run(text.substr(at, end - at));
  }
}

SqlClient& UpgradeContract::client() {
  if (!client_) client_ = made_->NewClient();
  return *client_;
}

UpgradeContract::Table UpgradeContract::All(const std::string& sql) {
  auto rows = client().Run(sql);
  EXPECT_TRUE(rows) << sql << ": " << rows.error().message;
  return rows ? rows->rows : Table{};
}

std::string UpgradeContract::Ask(const std::string& sql) {
  const Table rows = All(sql);
  return rows.empty() ? "no row" : rows[0].at(0).value_or("NULL");
}

void UpgradeContract::FillEachPool() {
  const std::string columns = "INSERT INTO tasks (id,slice,handler,params,created_at,run_at,updated_at";
  const auto add = [&](int id, const std::string& more = "", const std::string& values = "") {
    const std::string number = std::to_string(id);
    Run(columns + more + ") VALUES (" + number + ",1,'noop','{\"n\":" + number + "}'," + kThen + "," + kThen +
        "," + kThen + values + ")");
  };
  const std::string at = std::string(",") + kThen;
  const std::string claim = ",state,attempt,claimed_by,claimed_at";
  add(1);
  add(2, ",state", ",3");
  add(3, claim, ",2,2,'a.live'" + at);
  add(4, claim, ",2,1,'a.dead'" + at);
  add(5, claim, ",2,1,'a.gone'" + at);
  add(6, ",failures,attempt,last_error,biz_key,batch,progress,priority", ",2,3,'no','k6','b','half',0");
  add(7);
  Run("DELETE FROM tasks WHERE id=7");
  const std::string ended =
      "id,slice,handler,params,created_at,run_at,priority,failures,attempt,crashes,state,claimed_by,claimed_"
      "at,"
      "finished_at";
  Run("INSERT INTO tasks_done (" + ended + ") VALUES (8,1,'noop','{}'," + kThen + at + ",5,0,1,0,1,'a.dead'" +
      at + at + ")");
  Run("INSERT INTO tasks_failed (" + ended + ",error_class) VALUES (9,1,'noop','{}'," + kThen + at +
      ",5,1,1,0,-1,'a.dead'" + at + at + ",'x')");
  const std::string life =
      "INSERT INTO millrace_incarnations (id,worker,host,pid,lease_us,slices,started_at,dead) VALUES ('a.";
  Run(life + "live','a','here',17,10000000,''," + kThen + ",0)");
  Run(life + "dead','a','here',16,10000000,''," + kThen + ",1)");
  Run("INSERT INTO millrace_beats (id,beat) VALUES ('a.live',5)");
  Run("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES "
      "('noop','k6','tasks',6," +
      std::string(kThen) + ")");
}

void UpgradeContract::FillMany(int rows) {
  for (int at = 0; at < rows; at += 1000) {
    std::string values;
    for (int i = at; i < at + 1000; ++i)
      values += (values.empty() ? "('noop','" : ",('noop','") + std::to_string(i) + "')";
    Run("INSERT INTO tasks (handler,params) VALUES " + values);
  }
}

void UpgradeContract::ExpectClean() {
  auto findings = store().OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  for (const SchemaFinding& finding : *findings) ADD_FAILURE() << finding.what << ": " << finding.problem;
}

TEST_P(UpgradeContract, KeepsEveryRowItsKeyAndWhatTellsTheDatabaseFromOthers) {
  FillEachPool();
  const char* others[] = {"SELECT id,cancel,updated_at,urgency FROM tasks ORDER BY id",
                          "SELECT id,claimed_by,claimed_at FROM tasks_done",
                          "SELECT id,claimed_by,claimed_at FROM tasks_failed", "SELECT * FROM tasks_keys"};
  const Table whole = All(kWhole);
  ASSERT_EQ(whole.size(), 8U);
  std::vector<Table> before;
  for (const char* sql : others) before.push_back(All(sql));
  const auto identity = store().OpenSchema()->Identity();
  ASSERT_TRUE(identity) << identity.error().message;

  auto was = Upgrade();
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(*was, 2U);
  EXPECT_EQ(All(kWhole), whole);
  for (std::size_t i = 0; i < std::size(others); ++i) EXPECT_EQ(All(others[i]), before[i]) << others[i];
  EXPECT_EQ(*store().OpenSchema()->Identity(), *identity);
  ExpectClean();
  EXPECT_EQ(*Upgrade(), kSchemaVersion) << "and once more there is nothing to do";
  Run("INSERT INTO tasks (handler,params) VALUES ('noop','{}')");
  EXPECT_GT(std::stoi(Ask("SELECT MAX(id) FROM tasks")), 7) << "an id is never given away twice";
}

TEST_P(UpgradeContract, RowsThatRanAreRescuedUnderTheNamesOfTheirClaimers) {
  FillEachPool();
  auto was = Upgrade();
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(Ask("SELECT claimed_by FROM tasks_all WHERE id=3"), "a.live");
  EXPECT_EQ(Ask("SELECT claimed_by FROM tasks_all WHERE id=5"), "#1") << "nobody knows it any more";
  EXPECT_EQ(Ask("SELECT claimed_by FROM tasks_all WHERE id=8"), "a.dead");
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks_all WHERE claimed_by IS NULL"), "3");
  Begin(*made_);
  std::map<std::uint64_t, std::string> running;
  for (const ScanRow& row : ScanAll()) {
    if (row.state == TaskState::Running) running[row.id] = row.claimed_by;
  }
  EXPECT_EQ(running, (std::map<std::uint64_t, std::string>{{3, "a.live"}, {4, "a.dead"}, {5, "#1"}}));
  const auto rescue = [&](const std::string& who, std::uint32_t attempt, std::uint64_t id) {
    auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = who, .attempt = attempt, .ids = {id}});
    EXPECT_TRUE(rescued) << rescued.error().message;
    return rescued && *rescued == std::vector{id};
  };
  EXPECT_TRUE(rescue("a.dead", 1, 4));
  EXPECT_TRUE(rescue("#1", 1, 5));
  EXPECT_FALSE(rescue("a.live", 2, 3)) << "nobody has marked it dead";
  EXPECT_TRUE(*incarnations().Retire("a.live"));
  EXPECT_TRUE(rescue("a.live", 2, 3));
  const Crash crash{{"tasks", 3}, 2};
  EXPECT_EQ(*incarnations().ChargeCrashes("a.live", std::span(&crash, 1)), 1U);
  EXPECT_EQ(Claim({1, 4, 5}).size(), 1U) << "those that were rescued have another number of attempts";
  EXPECT_EQ(Claim({4, 5}, 1).size(), 2U);
}

TEST_P(UpgradeContract, AWorkerThatStillBeatsIsNamedAndNothingIsChanged) {
  FillEachPool();
  const char* signs[] = {"UPDATE millrace_beats SET beat=beat+1",
                         "INSERT INTO millrace_beats (id,beat) VALUES ('b.new',0)"};
  for (const char* sign : signs) {
    UpgradeCalls calls = AtOnce();
    Micros paused{};
    calls.pause = [&](Micros time) {
      paused = time;
      Run("INSERT INTO millrace_incarnations (id,worker,host,pid,lease_us,slices,started_at) VALUES "
          "('b.new','b','there',18,20000000,''," +
          std::string(kThen) + ")");
      Run(sign);
    };
    auto refused = store().OpenSchema()->Upgrade(calls);
    ASSERT_FALSE(refused) << sign;
    EXPECT_EQ(refused.error().code, ErrorCode::Conflict);
    const bool by_old = sign == signs[0];
    EXPECT_NE(refused.error().message.find(by_old ? "process 17 on here" : "process 18 on there"),
              std::string::npos)
        << refused.error().message;
    EXPECT_GT(paused, std::chrono::seconds(2)) << "a beat comes every fifth of its lease of ten seconds";
    EXPECT_EQ(Ask("SELECT MAX(version) FROM millrace_schema"), "2");
    EXPECT_EQ(Ask("SELECT claimed_by FROM tasks WHERE id=3"), "a.live");
    Run("DELETE FROM millrace_incarnations WHERE id='b.new'");
    Run("DELETE FROM millrace_beats WHERE id='b.new'");
  }
}

// Two people, or two workers that open one file; the other's new tables are in use already.
TEST_P(UpgradeContract, WhatSomebodyElseHasUpgradedMeanwhileIsLeftAsItIs) {
  FillEachPool();
  UpgradeCalls calls = AtOnce();
  calls.pause = [&](Micros) {
    const auto others = Upgrade();
    ASSERT_TRUE(others) << others.error().message;
    Begin(*made_);
    EXPECT_EQ(Claim({1}).size(), 1U);
    Run("UPDATE tasks SET expires_at='2027-01-01 00:00:00.000000' WHERE id=1");
    Run("UPDATE millrace_incarnations SET dead=1 WHERE id='w.1'");  // a beat would keep the first one away
  };
  const auto was = store().OpenSchema()->Upgrade(calls);
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(Ask("SELECT claimed_by FROM tasks_all WHERE id=1"), "w.1");
  EXPECT_EQ(Ask("SELECT claimed_by FROM tasks_all WHERE id=3"), "a.live");
  EXPECT_EQ(Ask("SELECT expires_at FROM tasks_all WHERE id=1"), "2027-01-01 00:00:00.000000");
  ExpectClean();
}

TEST_P(UpgradeContract, KilledInTheMiddleItIsRunAgain) {
  constexpr int kRows = 25'000;
  FillEachPool();
  FillMany(kRows);
  Disconnect();  // nothing that is open goes along
  const pid_t child = fork();
  if (child == 0) {
    UpgradeCalls calls = AtOnce();
    calls.step = [](const UpgradeStep& step) {
      if (step.copied > 0) _exit(7);
    };
    (void)store().OpenSchema()->Upgrade(calls);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 7) << "it was in the middle";
  const auto tables = store().OpenSchema()->Tables();
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, ErrorCode::Conflict);
  EXPECT_NE(tables.error().message.find("millrace schema upgrade"), std::string::npos)
      << tables.error().message;
  if (made_->late_commits()) {
    EXPECT_NE(Ask("SELECT readable_by FROM millrace_schema WHERE task_table=''"), "3")
        << "version 3 can't work on tables of version 2 either";
  } else {
    EXPECT_EQ(Ask("SELECT MAX(version) FROM millrace_schema"), "2")
        << "one transaction: nothing is left of it";
  }
  Run("INSERT INTO tasks (handler,params) VALUES ('noop','25000')");  // a producer knows nothing of it

  std::uint64_t copied = 0;
  UpgradeCalls calls = AtOnce();
  calls.step = [&](const UpgradeStep& step) { copied = step.copied; };
  auto was = store().OpenSchema()->Upgrade(calls);
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(*was, 2U);
  EXPECT_GT(copied, 0U);
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks"), std::to_string(kRows + 7));
  EXPECT_EQ(Ask("SELECT COUNT(DISTINCT params) FROM tasks"), std::to_string(kRows + 7));
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks_done"), "1");
  ExpectClean();
  Begin(*made_);
  EXPECT_EQ(Claim({1}).size(), 1U);
}

// On SQLite it is one transaction, and no producer comes between.
TEST_P(UpgradeContract, IdsGoOnBehindThoseThatWereGivenWhileSomebodyHadTheTableOpen) {
  if (!made_->late_commits()) return;
  Run("BEGIN");
  Run("INSERT INTO tasks (id,handler,params) VALUES (1,'noop','{}')");
  UpgradeCalls calls = AtOnce();
  calls.pause = [&](Micros) {
    Run("INSERT INTO tasks (id,handler,params) VALUES (500000,'noop','{}')");
    Run("COMMIT");
  };
  calls.step = [&](const UpgradeStep& step) {
    if (step.copied > 0) return;
    Run("INSERT INTO tasks (handler,params) VALUES ('noop','{}')");
    EXPECT_GT(std::stoi(Ask("SELECT MAX(id) FROM tasks")), 500'000);
  };
  const auto was = store().OpenSchema()->Upgrade(calls);
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks"), "3");
}

TEST_P(UpgradeContract, ANewRowAmongTheOldTablesIdsIsNotTakenForOneThatHasMoved) {
  if (!made_->late_commits()) return;
  FillMany(25'000);
  UpgradeCalls calls = AtOnce();
  calls.step = [&](const UpgradeStep& step) {
    if (step.copied == 10'000) Run("INSERT INTO tasks (id,handler,params) VALUES (15000,'noop','{}')");
  };
  EXPECT_FALSE(store().OpenSchema()->Upgrade(calls));
  const auto refused = Upgrade();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Conflict);
  EXPECT_NE(refused.error().message.find("row 15000"), std::string::npos) << refused.error().message;
  Run("UPDATE tasks SET id=150000 WHERE id=15000");
  const auto was = Upgrade();
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks"), "25001");
}

TEST_P(UpgradeContract, CutShortBeforeItsLastStatementItIsRunAgain) {
  if (!made_->late_commits()) return;
  ASSERT_TRUE(Upgrade());
  Run("UPDATE millrace_schema SET readable_by=0 WHERE task_table=''");
  ASSERT_TRUE(Upgrade());
  EXPECT_EQ(Ask("SELECT readable_by FROM millrace_schema WHERE task_table=''"), "3");
}

TEST_P(UpgradeContract, ATableOfSomebodyElsesUnderTheNameOfTheNewOneIsKept) {
  Run("CREATE TABLE tasks_next (id INTEGER PRIMARY KEY)");
  Run("INSERT INTO tasks_next (id) VALUES (1)");
  EXPECT_FALSE(Upgrade());
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tasks_next"), "1");
  Run("DROP TABLE tasks_next");
  ASSERT_TRUE(Upgrade());
}

TEST_P(UpgradeContract, WhatSomebodyElseHasPutOnATableIsNamedAndKept) {
  FillEachPool();
  Run("CREATE INDEX mine ON tasks (batch)");
  auto refused = Upgrade();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Conflict);
  EXPECT_NE(refused.error().message.find("index mine"), std::string::npos) << refused.error().message;
  EXPECT_EQ(Ask("SELECT MAX(version) FROM millrace_schema"), "2") << "the older program works on";
  if (!client().Run("DROP INDEX mine ON tasks")) Run("DROP INDEX mine");
  Run("ALTER TABLE tasks ADD COLUMN tenant INTEGER");
  Run("CREATE TABLE notes (id INTEGER PRIMARY KEY, task " +
      std::string(GetParam().name == "sqlite" ? "INTEGER" : "BIGINT UNSIGNED") +
      ", CONSTRAINT of_task FOREIGN KEY (task) REFERENCES tasks (id))");
  refused = Upgrade();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Conflict);
  for (const char* mine : {"column tenant", "foreign key of"})
    EXPECT_NE(refused.error().message.find(mine), std::string::npos) << refused.error().message;
  EXPECT_EQ(Ask("SELECT MAX(version) FROM millrace_schema"), "2");
  Run("DROP TABLE notes");
  Run("ALTER TABLE tasks DROP COLUMN tenant");
  const auto upgraded = Upgrade();
  EXPECT_TRUE(upgraded) << upgraded.error().message;
}

TEST_P(UpgradeContract, TheFirstVersionIsUpgradedAlike) {
  FillEachPool();
  Run("DROP TABLE millrace_pauses");
  Run("UPDATE millrace_schema SET version=1");
  if (client().Run("ALTER TABLE tasks DROP CONSTRAINT tasks_slice")) {
    Run("ALTER TABLE tasks ADD CONSTRAINT tasks_slice CHECK (slice < 4)");
  } else {
    Run("DROP INDEX tasks_held");
  }
  const auto schema = store().OpenSchema();
  const auto expect_remedy = [](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::Conflict);
    EXPECT_NE(error.message.find("millrace schema upgrade"), std::string::npos) << error.message;
  };
  const auto tables = schema->Tables();
  ASSERT_FALSE(tables);
  expect_remedy(tables.error());
  const Status applied = schema->Apply({.tables = 1, .slices = 4});
  ASSERT_FALSE(applied);
  expect_remedy(applied.error());
  auto was = Upgrade();
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(*was, 1U);
  ExpectClean();
  Run("INSERT INTO tasks (handler,params,slice) VALUES ('noop','{}',4)");
  Begin(*made_);
  EXPECT_TRUE(operations().SetPause("cluster", "me", true));
}

// Older checks took a last newline (MySQL, MariaDB) or bytes behind a zero one (SQLite) in a handler's name,
// and any number.
TEST_P(UpgradeContract, RowsThatOlderChecksLetThroughBecomeWhatTheyWereMeantToBe) {
  if (client().Run("ALTER TABLE tasks DROP CONSTRAINT tasks_handler, DROP CONSTRAINT tasks_counts")) {
    Run("INSERT INTO tasks (handler,params,attempt) VALUES (CONCAT('noop',CHAR(10)),'{}',4294967295)");
  } else {
    Run("PRAGMA ignore_check_constraints=ON");
    Run("INSERT INTO tasks (handler,params,attempt) VALUES (CAST(X'6E6F6F7000' AS TEXT),'{}',4294967295)");
    Run("INSERT INTO tasks (handler,params,slice,failures,run_at) VALUES "
        "('odd','{}',2.5,1.5,'2026-02-30 24:00:00.000000')");
  }
  auto was = Upgrade();
  ASSERT_TRUE(was) << was.error().message;
  EXPECT_EQ(Ask("SELECT handler FROM tasks WHERE handler='noop'"), "noop");
  EXPECT_EQ(Ask("SELECT attempt FROM tasks WHERE handler='noop'"), std::to_string(kMaxCount));
  ExpectClean();
  if (GetParam().name == "sqlite") {
    EXPECT_EQ(Ask("SELECT slice||' '||failures||' '||run_at FROM tasks WHERE handler='odd'"),
              "2 1 2026-02-30 24:00:00.000000");
  }
}

TEST_P(UpgradeContract, AProgramOfTheOlderVersionCanNotRegisterAnyMore) {
  ASSERT_TRUE(Upgrade());
  EXPECT_FALSE(client().Run(
      "INSERT INTO millrace_incarnations (id,worker,host,pid,lease_us,slices,started_at,dead) VALUES "
      "('a.late','a','here',17,10000000,'','2026-01-01 00:00:00.000000',0)"));
}

}  // namespace millrace::engine
