#include "tests/contract/suite/store_contract.h"

namespace millrace {
namespace {

TEST_P(StoreContract, ApplyingTheSchemaTwiceKeepsTheRows) {
  const auto id = Add();
  const Status again = store().OpenSchema()->Apply({.tables = 1, .slices = 4});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(StateOf(id), TaskState::Waiting);
}

TEST_P(StoreContract, AnotherNumberOfSlicesIsRefused) {
  const Status other = store().OpenSchema()->Apply({.tables = 1, .slices = 8});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::Conflict);
}

TEST_P(StoreContract, SeveralTablesAreListedAndKeptApart) {
  const auto made = GetParam().make({.tables = 3, .slices = 2});
  ASSERT_NE(made, nullptr);
  auto tables = made->store().OpenSchema()->Tables();
  ASSERT_TRUE(tables) << tables.error().message;
  ASSERT_EQ(tables->size(), 3U);
  EXPECT_EQ((*tables)[2].table, "tasks_002");
  EXPECT_EQ((*tables)[2].slices, 2U);
  auto id = made->Insert("tasks_001", {});
  ASSERT_TRUE(id) << id.error().message;
  const auto desk = made->store().OpenDesk();
  EXPECT_TRUE(desk->Get({"tasks_001", *id}));
  EXPECT_FALSE(desk->Get({"tasks_002", *id}));
  const auto session = made->store().OpenTasks();
  const std::vector<TableSlices> all{{.table = "tasks_000"}, {.table = "tasks_001"}};
  auto due = session->Due(all);
  ASSERT_TRUE(due);
  ASSERT_EQ(due->groups.size(), 1U);
  EXPECT_EQ(due->groups[0].table, "tasks_001");
}

TEST_P(StoreContract, AFreshSchemaIsCurrentAndChecksClean) {
  const auto schema = store().OpenSchema();
  auto version = schema->Upgrade();
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, kSchemaVersion);
  auto findings = schema->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  for (const SchemaFinding& finding : *findings) ADD_FAILURE() << finding.what << ": " << finding.problem;
}

TEST_P(StoreContract, TheStoreAnswersAPing) {
  const Status answered = store().Ping();
  EXPECT_TRUE(answered) << answered.error().message;
  EXPECT_FALSE(store().Describe().empty());
}

}  // namespace
}  // namespace millrace
