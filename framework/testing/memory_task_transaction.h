// A handler's transaction on a memory shard: submits and settles that take effect together. It runs no SQL.
#pragma once

#include "framework/store/task_transaction.h"
#include "framework/testing/memory_shard.h"

namespace millrace::engine {

// One thread at a time.
class MemoryTaskTransaction final : public TaskTransaction {
 public:
  explicit MemoryTaskTransaction(MemoryShard& shard) : shard_(shard) {}

  // Invalid, and the transaction is poisoned.
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<std::size_t> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  TransactionState state() const override { return state_; }
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  Status Mark() override;
  Status Undo() override;
  void Rollback() override;

 private:
  struct Staged {
    TableName table;
    std::vector<NewTask> tasks;
  };

  // Carries out what is staged on `state`; the number of tasks that the last batch added.
  Result<std::size_t> Replay(MemoryState& state) const;

  MemoryShard& shard_;
  TransactionState state_ = TransactionState::Idle;
  std::vector<Staged> staged_;
  std::size_t mark_ = 0;
};

}  // namespace millrace::engine
