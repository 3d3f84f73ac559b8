// The contract suite on the memory store. It speaks no SQL, so the suites that do are left out.
#include "framework/testing/manual_clock.h"
#include "framework/testing/memory_store.h"
#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

Task RowOf(const PlainRow& row, const MemoryTable& table, Random& random, WallTime now) {
  Task task;
  task.handler = row.handler;
  task.params = row.params;
  task.slice = row.slice.value_or(static_cast<std::uint32_t>(random.Below(table.slices)));
  task.state = static_cast<TaskState>(row.state.value_or(0));
  task.priority = static_cast<std::uint32_t>(row.priority.value_or(5));
  task.run_at = row.run_at.value_or(now);
  task.biz_key = row.biz_key.value_or("");
  task.batch = row.batch.value_or("");
  task.attempt = row.attempt.value_or(0);
  task.failures = row.failures.value_or(0);
  task.created_at = now;
  return task;
}

// A producer's open transaction: its id is drawn, its row is not there yet.
class LateInsert final : public StoreFixture::LateRow {
 public:
  LateInsert(MemoryStore& store, Task task) : store_(store), task_(std::move(task)) {}
  std::uint64_t id() const override { return task_.key.id; }
  Status Commit() override {
    BOOST_OUTCOME_TRYV(store_.Edit([&](MemoryState& state) { return state.Insert(task_.key.table, task_); }));
    return {};
  }

 private:
  MemoryStore& store_;
  const Task task_;
};

class MemoryFixture final : public StoreFixture {
 public:
  explicit MemoryFixture(const SchemaSpec& spec) { EXPECT_TRUE(store_.OpenSchema()->Apply(spec)); }

  Store& store() override { return store_; }

  Result<std::uint64_t> Insert(const TableName& table, const PlainRow& row) override {
    return store_.Edit([&](MemoryState& state) {
      return state.Insert(table, RowOf(row, state.tables[table], state.random, clock_.WallNow()));
    });
  }

  Result<bool> Change(const TableName& table, std::uint64_t id, const RowChange& change) override {
    return store_.Edit([&](MemoryState& state) -> Result<bool> {
      MemoryPool& rows = state.tables[table].tasks;
      const auto row = rows.find(id);
      if (row == rows.end() || row->second.task.state == TaskState::Running) return false;
      if (change.state) row->second.task.state = static_cast<TaskState>(*change.state);
      if (change.run_at) row->second.task.run_at = *change.run_at;
      return true;
    });
  }

  Status Remove(const TableName& table, std::uint64_t id) override {
    store_.Edit([&](MemoryState& state) {
      MemoryTable& pools = state.tables[table];
      return pools.tasks.erase(id) + pools.failed.erase(id) + pools.done.erase(id);
    });
    return {};
  }

  Status ExpireKeys() override {
    store_.Edit([&](MemoryState& state) {
      for (auto& [place, key] : state.keys) {
        if (key.keep_until) key.keep_until = WallTime{};
      }
      return true;
    });
    return {};
  }

  Status DeleteBeat(const std::string& incarnation) override {
    store_.Edit([&](MemoryState& state) {
      state.incarnations[incarnation].beat.reset();
      return true;
    });
    return {};
  }

  bool late_commits() const override { return true; }
  std::unique_ptr<LateRow> InsertLate(const TableName& table, const PlainRow& row) override {
    return store_.Edit([&](MemoryState& state) {
      Task task = RowOf(row, state.tables[table], state.random, clock_.WallNow());
      task.key = {table, state.tables[table].next_id++};
      return std::make_unique<LateInsert>(store_, std::move(task));
    });
  }

 private:
  ManualClock clock_;
  MemoryStore store_{clock_};
};

std::unique_ptr<StoreFixture> MakeFixture(const SchemaSpec& spec) {
  return std::make_unique<MemoryFixture>(spec);
}

INSTANTIATE_TEST_SUITE_P(Memory, StoreContract, testing::Values(StoreKind{"memory", MakeFixture}));

}  // namespace
}  // namespace millrace::engine
