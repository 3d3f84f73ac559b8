#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

template <class T>
T Take(Result<T> result, const char* what) {
  if (!result) {
    ADD_FAILURE() << what << ": " << ToString(result.error().code) << ": " << result.error().message;
    return T{};
  }
  return std::move(*result);
}

}  // namespace

void StoreTest::Begin(StoreFixture& fixture) {
  fixture_ = &fixture;
  tasks_ = fixture.store().OpenTasks();
  operations_ = fixture.store().OpenOperations();
  incarnations_ = fixture.store().OpenIncarnations();
  Register("w.1");
}

void StoreTest::Register(const std::string& id) {
  Incarnation incarnation{
      .id = id, .worker = "w", .host = "here", .pid = 7, .lease = std::chrono::seconds(10)};
  const Status done = incarnations_->Register(incarnation);
  ASSERT_TRUE(done) << done.error().message;
}

WallTime StoreTest::Now() { return Due().now; }

DueMap StoreTest::Due(const TableName& table) {
  const TableSlices all{.table = table, .all = true};
  return Take(tasks_->Due(std::span(&all, 1)), "Due");
}

std::vector<ScanRow> StoreTest::ScanAll(const TableName& table) {
  std::vector<ScanRow> rows;
  for (const DueGroup& group : Due(table).groups) {
    for (ScanRow& row : Take(tasks_->Scan(ScanRequest{.group = group}), "Scan"))
      rows.push_back(std::move(row));
  }
  return rows;
}

std::uint64_t StoreTest::Add(PlainRow row, const TableName& table) {
  return Take(fixture_->Insert(table, row), "Insert");
}

std::vector<std::uint64_t> StoreTest::AddDue(std::size_t count, const std::string& handler) {
  std::vector<std::uint64_t> ids;
  const WallTime due = Now() - std::chrono::hours(1);
  for (std::size_t i = 0; i < count; ++i) ids.push_back(Add({.handler = handler, .slice = 1, .run_at = due}));
  return ids;
}

std::vector<Task> StoreTest::Claim(const std::vector<std::uint64_t>& ids, std::uint32_t attempt,
                                   const std::string& incarnation, const TableName& table) {
  return Take(tasks_->Claim({.table = table, .incarnation = incarnation, .attempt = attempt, .ids = ids}),
              "Claim");
}

Task StoreTest::ClaimOne(std::uint64_t id, std::uint32_t attempt, const std::string& incarnation) {
  auto claimed = Claim({id}, attempt, incarnation);
  EXPECT_EQ(claimed.size(), 1U) << "task " << id << " was not claimed";
  return claimed.empty() ? Task{} : claimed[0];
}

SettleReport StoreTest::Settle(const std::vector<Settlement>& batch, const std::string& incarnation) {
  auto report = Take(tasks_->Settle(incarnation, batch), "Settle");
  EXPECT_EQ(report.verdicts.size(), batch.size());
  EXPECT_EQ(report.errors.size(), batch.size());
  report.verdicts.resize(batch.size(), SettleVerdict::Broken);
  report.errors.resize(batch.size());
  return report;
}

TaskRecord StoreTest::Get(std::uint64_t id, const TableName& table) {
  return Take(operations_->Get({table, id}), "Get");
}

std::vector<std::uint64_t> IdsOf(const std::vector<ChangedTask>& changed) {
  std::vector<std::uint64_t> ids;
  for (const ChangedTask& task : changed) ids.push_back(task.id);
  return ids;
}

UpgradeCalls AtOnce() {
  return {.pause = [](Micros) {}, .step = [](const UpgradeStep&) {}};
}

Settlement End(const Task& task, Settlement::To to, const std::string& text) {
  return {.key = task.key,
          .attempt = task.attempt,
          .to = to,
          .failed_attempt = to == Settlement::To::Failed,
          .text = text,
          .handler = task.handler,
          .biz_key = task.biz_key,
          .batch = task.batch};
}

void StoreContract::SetUp() {
  made_ = GetParam().make(SchemaSpec{.tables = 1, .slices = 4});
  ASSERT_NE(made_, nullptr);
  Begin(*made_);
}

void SqlStoreContract::SetUp() {
  made_ = GetParam().make(SchemaSpec{.tables = 1, .slices = 4});
  ASSERT_NE(made_, nullptr);
  Begin(*made_);
}

// A store that leaves one of the suites out says so by its own instantiations.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SqlStoreContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransactionContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UpgradeContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LiveUpgradeContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ScannedContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(QueryPagesContract);

}  // namespace millrace::engine
