#include <atomic>
#include <set>
#include <thread>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
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

TEST_P(StoreContract, ADatabaseKeepsItsIdentityWhateverIsAppliedAgain) {
  const auto identity = store().OpenSchema()->Identity();
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_FALSE(identity->empty());
  ASSERT_TRUE(store().OpenSchema()->Apply({.tables = 1, .slices = 4}));
  ASSERT_TRUE(store().OpenSchema()->Upgrade(AtOnce()));
  EXPECT_EQ(*store().OpenSchema()->Identity(), *identity);
}

TEST_P(SqlStoreContract, DatabasesThatWereMadeApartHaveIdentitiesOfTheirOwn) {
  const auto other = GetParam().make({.tables = 1, .slices = 4});
  EXPECT_NE(*store().OpenSchema()->Identity(), *other->store().OpenSchema()->Identity());
}

TEST_P(SqlStoreContract, WhatIsNoTableNameIsNotPutIntoSql) {
  auto client = sql().NewClient();
  ASSERT_TRUE(
      client->Run("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES "
                  "('noop','k','tasks; DROP TABLE tasks',1,'2026-01-01 00:00:00.000000')"));
  EXPECT_EQ(operations().Find("tasks", "noop", "k").error().code, ErrorCode::NotFound);
  const Task task = ClaimOne(Add({.biz_key = "k"}));
  EXPECT_EQ(task.biz_key, "k") << "the entry is void, and the key this task's";
  ASSERT_TRUE(client->Run("UPDATE millrace_schema SET task_table='tasks x' WHERE task_table='tasks'"));
  const auto tables = store().OpenSchema()->Tables();
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, ErrorCode::Invalid) << tables.error().message;
}

TEST_P(SqlStoreContract, ATableOfSomebodyElsesIsNeitherTakenNorChanged) {
  ASSERT_TRUE(sql().NewClient()->Run("CREATE TABLE tasks_001 (x INTEGER)"));
  const Status applied = store().OpenSchema()->Apply({.tables = 2, .slices = 4});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, ErrorCode::Conflict);
  EXPECT_NE(applied.error().message.find("'tasks_001' that is not Millrace's"), std::string::npos)
      << applied.error().message;
  EXPECT_EQ(store().OpenSchema()->Tables()->size(), 1U);
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
  const auto operations = made->store().OpenOperations();
  EXPECT_TRUE(operations->Get({"tasks_001", *id}));
  EXPECT_FALSE(operations->Get({"tasks_002", *id}));
  const auto session = made->store().OpenTasks();
  const std::vector<TableSlices> all{{.table = "tasks_000"}, {.table = "tasks_001"}};
  auto due = session->Due(all);
  ASSERT_TRUE(due);
  ASSERT_EQ(due->groups.size(), 1U);
  EXPECT_EQ(due->groups[0].table, "tasks_001");
}

TEST_P(StoreContract, AFreshSchemaIsCurrentAndChecksClean) {
  const auto schema = store().OpenSchema();
  auto version = schema->Upgrade(AtOnce());
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, kSchemaVersion);
  auto findings = schema->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  for (const SchemaFinding& finding : *findings) ADD_FAILURE() << finding.what << ": " << finding.problem;
}

TableInfo InfoOf(SchemaStore& schema) {
  auto tables = schema.Tables();
  EXPECT_TRUE(tables) << tables.error().message;
  if (tables) {
    EXPECT_TRUE(schema.ReadBeyond(*tables));
  }
  return tables && tables->size() == 1 ? (*tables)[0] : TableInfo{kDefaultTable};
}

// Until nothing more moves; returns how many rows were moved.
std::size_t Renumber(SchemaStore& schema, std::size_t limit) {
  std::size_t moved = 0;
  while (true) {
    auto step = schema.RenumberStep("tasks", limit);
    EXPECT_TRUE(step) << step.error().message;
    if (!step || *step == 0) return moved;
    EXPECT_LE(*step, limit);
    moved += *step;
  }
}

TEST_P(StoreContract, MoreSlicesMoveNoRow) {
  const auto schema = store().OpenSchema();
  const auto id = Add({.slice = 3});
  const Status grown = schema->Resize("tasks", 16);
  ASSERT_TRUE(grown) << grown.error().message;
  EXPECT_EQ(InfoOf(*schema).slices, 16U);
  EXPECT_TRUE(InfoOf(*schema).beyond.empty());
  EXPECT_EQ(Renumber(*schema, 10), 0U);
  EXPECT_EQ(Get(id).task.slice, 3U);
  std::set<std::uint32_t> drawn;
  for (int i = 0; i < 200; ++i) drawn.insert(Get(Add()).task.slice);
  EXPECT_GT(*drawn.rbegin(), 3U) << "new rows use the new slices";
  EXPECT_LT(*drawn.rbegin(), 16U);
  const std::vector<NewTask> batch(200, NewTask{.handler = "a"});
  auto added = operations().Submit("tasks", batch);
  ASSERT_TRUE(added) << added.error().message;
  for (const auto one : added->ids) drawn.insert(Get(one).task.slice);
  EXPECT_EQ(drawn.size(), 16U);
  auto findings = schema->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  for (const SchemaFinding& finding : *findings) ADD_FAILURE() << finding.what << ": " << finding.problem;
}

TEST_P(StoreContract, FewerSlicesLeaveRowsBeyondUntilTheyAreRenumbered) {
  const auto schema = store().OpenSchema();
  const auto kept = Add({.slice = 1});
  const auto waiting = Add({.slice = 3});
  const auto held = Add({.slice = 2, .state = 3});
  const auto running = Add({.slice = 3, .run_at = Now() - std::chrono::hours(1)});
  const Task task = ClaimOne(running);
  ASSERT_TRUE(schema->Resize("tasks", 2));
  EXPECT_EQ(InfoOf(*schema).slices, 2U);
  EXPECT_EQ(InfoOf(*schema).beyond, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(Renumber(*schema, 1), 2U);
  EXPECT_EQ(Get(kept).task.slice, 1U);
  EXPECT_EQ(Get(waiting).task.slice, waiting % 2);
  EXPECT_EQ(Get(held).task.slice, held % 2);
  EXPECT_EQ(StateOf(held), TaskState::Held);
  EXPECT_EQ(InfoOf(*schema).beyond, std::vector<std::uint32_t>{3}) << "the running one is still there";
  Settlement again = End(task, Settlement::To::Waiting, "later");
  EXPECT_EQ(Settle({again}).verdicts[0], SettleVerdict::Settled);
  EXPECT_EQ(Renumber(*schema, 10), 1U);
  EXPECT_TRUE(InfoOf(*schema).beyond.empty());
  for (int i = 0; i < 50; ++i) EXPECT_LT(Get(Add()).task.slice, 2U);
}

TEST_P(StoreContract, ARowInASliceThatNoPlanKnowsIsFoundAndWorkedOff) {
  const auto schema = store().OpenSchema();
  const auto id = Add({.slice = 5000});
  EXPECT_EQ(InfoOf(*schema).beyond, std::vector<std::uint32_t>{5000});
  EXPECT_EQ(Renumber(*schema, 10), 1U);
  EXPECT_EQ(Get(id).task.slice, id % 4);
  EXPECT_EQ(ClaimOne(id).attempt, 1U);
}

TEST_P(StoreContract, ResizeRefusesWhatCannotBe) {
  const auto schema = store().OpenSchema();
  EXPECT_EQ(schema->Resize("tasks", 0).error().code, ErrorCode::Invalid);
  EXPECT_EQ(schema->Resize("tasks", kMaxSlices + 1).error().code, ErrorCode::Invalid);
  EXPECT_EQ(schema->Resize("nothing", 8).error().code, ErrorCode::NotFound);
  EXPECT_EQ(schema->RenumberStep("nothing", 8).error().code, ErrorCode::NotFound);
  EXPECT_TRUE(schema->Resize("tasks", kMaxSlices));
  EXPECT_TRUE(schema->Resize("tasks", 4));
}

// A worker in short: claims what it finds in every slice, and settles it.
class Drain {
 public:
  Drain(Store& store, std::string incarnation) : tasks_(store.OpenTasks()), me_(std::move(incarnation)) {}

  // One look at all groups; false: it found nothing.
  bool Look() {
    const TableSlices all{.table = "tasks"};
    auto map = tasks_->Due(std::span(&all, 1));
    bool any = false;
    for (const DueGroup& group : map ? map->groups : std::vector<DueGroup>{}) any = Work(group) || any;
    return any;
  }
  const std::vector<std::uint64_t>& ran() const { return ran_; }

 private:
  bool Work(const DueGroup& group) {
    auto rows = tasks_->Scan({.group = group, .limit = 20});
    ClaimRequest request{.table = "tasks", .incarnation = me_};
    for (const ScanRow& row : rows ? *rows : std::vector<ScanRow>{}) {
      if (row.state == TaskState::Waiting) request.ids.push_back(row.id);
    }
    if (request.ids.empty()) return false;
    auto claimed = tasks_->Claim(request);
    if (!claimed) return true;  // a lock wait: the same again
    std::vector<Settlement> ends;
    for (const Task& task : *claimed) {
      ran_.push_back(task.key.id);
      ends.push_back(End(task, Settlement::To::Succeeded));
    }
    while (!ends.empty()) {
      auto report = tasks_->Settle(me_, ends);
      if (!report) continue;
      for (std::size_t i = ends.size(); i-- > 0;) {
        EXPECT_NE(report->verdicts[i], SettleVerdict::Refused);
        if (report->verdicts[i] != SettleVerdict::Busy) ends.erase(ends.begin() + static_cast<long>(i));
      }
    }
    return true;
  }

  const std::unique_ptr<TaskStore> tasks_;
  const std::string me_;
  std::vector<std::uint64_t> ran_;
};

TEST_P(StoreContract, SlicesChangeUnderLoadWithoutLosingOrRepeatingARow) {
  const auto schema = store().OpenSchema();
  Register("w.2");
  Drain first(store(), "w.1");
  Drain second(store(), "w.2");
  std::atomic<bool> done{false};
  std::thread one([&] {
    while (!done.load() || first.Look()) first.Look();
  });
  std::thread two([&] {
    while (!done.load() || second.Look()) second.Look();
  });
  const auto resize = [&](std::uint32_t slices) {
    Status resized = schema->Resize("tasks", slices);
    while (!resized && resized.error().code == ErrorCode::Conflict) resized = schema->Resize("tasks", slices);
    EXPECT_TRUE(resized) << resized.error().message;
  };
  const std::vector<NewTask> batch(60, NewTask{.handler = "a"});
  std::set<std::uint64_t> added;
  for (const std::uint32_t slices : {6U, 2U, 5U, 1U}) {
    auto before = operations().Submit("tasks", batch);
    ASSERT_TRUE(before) << before.error().message;
    added.insert(before->ids.begin(), before->ids.end());
    resize(slices);
    auto step = schema->RenumberStep("tasks", 7);
    while (step && *step > 0) step = schema->RenumberStep("tasks", 7);
    EXPECT_TRUE(step || step.error().code == ErrorCode::Conflict) << step.error().message;
  }
  done.store(true);
  one.join();
  two.join();
  std::vector<std::uint64_t> ran = first.ran();
  ran.insert(ran.end(), second.ran().begin(), second.ran().end());
  EXPECT_EQ(ran.size(), added.size()) << "each exactly once";
  EXPECT_EQ(std::set<std::uint64_t>(ran.begin(), ran.end()), added);
  EXPECT_TRUE(InfoOf(*schema).beyond.empty());
}

TEST_P(StoreContract, TheStoreAnswersAPing) {
  const Status answered = store().Ping();
  EXPECT_TRUE(answered) << answered.error().message;
  EXPECT_FALSE(store().Describe().empty());
}

}  // namespace
}  // namespace millrace::engine
