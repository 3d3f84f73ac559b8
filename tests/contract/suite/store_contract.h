// The one contract suite of every store. A store takes part by one file:
//   INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract, testing::Values(StoreKind{"sqlite", MakeFixture}));
//   INSTANTIATE_TEST_SUITE_P(Sqlite, SqlStoreContract, testing::Values(SqlStoreKind{"sqlite", MakeFixture}));
// and the same for TransactionContract.
// StoreContract holds for every store, the others for those that speak SQL.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/store/query_pages.h"
#include "tests/contract/suite/store_fixture.h"

namespace millrace::engine {

// What both suites share: one shard with 4 slices, one session of each sort, a live incarnation `w.1`, and
// short words for what tests do all the time. Every helper fails the test where the store gives an error.
class StoreTest {
 public:
  void Begin(StoreFixture& fixture);

  TaskStore& tasks() { return *tasks_; }
  TaskOperations& operations() { return *operations_; }
  IncarnationStore& incarnations() { return *incarnations_; }
  Store& store() { return fixture_->store(); }
  StoreFixture& fixture() { return *fixture_; }

  void Register(const std::string& id);
  WallTime Now();                                                  // the store's clock
  DueMap Due(const TableName& table = "tasks");                    // all slices of the table
  std::vector<ScanRow> ScanAll(const TableName& table = "tasks");  // every group from its beginning
  std::uint64_t Add(PlainRow row = {}, const TableName& table = "tasks");
  // Rows of one slice that are due since an hour.
  std::vector<std::uint64_t> AddDue(std::size_t count, const std::string& handler = "noop");
  std::vector<Task> Claim(const std::vector<std::uint64_t>& ids, std::uint32_t attempt = 0,
                          const std::string& incarnation = "w.1", const TableName& table = "tasks");
  Task ClaimOne(std::uint64_t id, std::uint32_t attempt = 0, const std::string& incarnation = "w.1");
  SettleReport Settle(const std::vector<Settlement>& batch, const std::string& incarnation = "w.1");
  TaskRecord Get(std::uint64_t id, const TableName& table = "tasks");
  TaskState StateOf(std::uint64_t id, const TableName& table = "tasks") { return Get(id, table).task.state; }

 private:
  StoreFixture* fixture_ = nullptr;
  std::unique_ptr<TaskStore> tasks_;
  std::unique_ptr<TaskOperations> operations_;
  std::unique_ptr<IncarnationStore> incarnations_;
};

// As duplicates and holders of keys are named.
inline std::string TaskName(std::uint64_t id) { return "tasks/" + std::to_string(id); }
std::vector<std::uint64_t> IdsOf(const std::vector<ChangedTask>& changed);

// Who upgrades without a pause between two looks at a beat, and hears nothing.
UpgradeCalls AtOnce();

// The settlement that ends `task` so; the rest is as a test needs it.
Settlement End(const Task& task, Settlement::To to, const std::string& text = "");

class StoreContract : public testing::TestWithParam<StoreKind>, public StoreTest {
 protected:
  void SetUp() override;
  std::unique_ptr<StoreFixture> made_;
};

class SqlStoreContract : public testing::TestWithParam<SqlStoreKind>, public StoreTest {
 protected:
  void SetUp() override;
  SqlFixture& sql() { return *made_; }
  std::unique_ptr<SqlFixture> made_;
};

// Tables of version 2, as its program made them; Begin, once they are upgraded.
class UpgradeContract : public testing::TestWithParam<SqlStoreKind>, public StoreTest {
 protected:
  using Table = std::vector<std::vector<std::optional<std::string>>>;

  void SetUp() override;
  void Make(int version);
  Store& store() { return made_->store(); }
  // A connection of its own, beside the store's.
  SqlClient& client();
  void Disconnect() { client_.reset(); }
  Table All(const std::string& sql);
  void Run(const std::string& sql) { (void)All(sql); }
  std::string Ask(const std::string& sql);
  // One of each kind of row: ids 1 to 6 in `tasks`, and 7 was the last that was given away there. Running are
  // 3 under `a.live`, whose beat stands, 4 under `a.dead`, and 5 under one that is gone.
  void FillEachPool();
  void FillMany(int rows);  // thousands; waiting, each with params of its own
  Result<std::uint32_t> Upgrade() { return store().OpenSchema()->Upgrade(AtOnce()); }
  void ExpectClean();

  std::unique_ptr<SqlFixture> made_;
  std::unique_ptr<SqlClient> client_;
};

// Tables of version 3, whose programs go on beside the upgrade.
class LiveUpgradeContract : public UpgradeContract {
 protected:
  void SetUp() override;
};

// A handler's own transaction: one claimed task, an empty table `account`, an open session.
class TransactionContract : public SqlStoreContract {
 protected:
  void SetUp() override;
  SqlResult Execute(std::string_view text, const std::vector<SqlValue>& values = {});
  CommitReport Commit(const Settlement& settlement);
  std::string Accounts();  // how many are committed

  std::uint64_t id_ = 0;
  Task task_;
  std::unique_ptr<TaskTransaction> transaction_;
};

// A table `src` of keys `k`, numbered by `n`, and what pages of a query give of it.
class QueryPagesContract : public SqlStoreContract {
 protected:
  bool IsMysql();
  void Run(const std::string& text);
  // The values are literals; each row's `n` is its place among them.
  void Fill(const std::string& type, const std::vector<std::string>& values);
  QueryPages Pages(const std::string& query, std::vector<std::string> keys, std::size_t limit,
                   std::optional<QueryPlace> after = std::nullopt);
  // The column `n` of all rows, in the order in which they come; or what kept a page from being read.
  Result<std::vector<std::string>> All(QueryPages& pages);
  std::vector<std::string> Numbers(const std::string& query, std::vector<std::string> keys,
                                   std::size_t limit);
  std::string Refusal(const std::string& query, std::vector<std::string> keys, std::size_t limit = 2);
};

// What a claim makes of what a scan has read.
class ScannedContract : public SqlStoreContract {
 protected:
  std::vector<ScanRow> Scan();  // of slice 1, with contents
  Result<std::vector<Task>> ClaimScanned(const std::vector<ScanRow>& rows);
  // The params of the tasks that the claim returns, by id.
  std::map<std::uint64_t, std::string> ClaimedParams(const std::vector<ScanRow>& rows);
  // As a statement of the commands would: it names `updated_at`.
  void Edit(std::uint64_t id, const std::string& set);
};

}  // namespace millrace::engine
