// A transaction over a function of the test, and over keys instead of a table of tasks.
#pragma once

#include <millrace/testing.h>

#include <set>
#include <string>
#include <utility>

#include "framework/store/task_transaction.h"

namespace millrace::engine {

// One thread at a time. Keys that were committed are taken for all transactions after it.
class FakeTransaction final : public TaskTransaction {
 public:
  using Keys = std::set<std::pair<std::string, std::string>>;  // handler, key
  // Without a function SQL is refused, and new tasks are taken.
  FakeTransaction(const SqlFake& fake, Keys& taken) : fake_(fake), taken_(taken) {}

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  TransactionState state() const override { return state_; }
  Status Mark() override;
  Status Undo() override;
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  void Rollback() override;

 private:
  Status Ready();

  const SqlFake& fake_;
  Keys& taken_;
  Keys open_;  // as they will be where this commits
  Keys marked_;
  TransactionState state_ = TransactionState::Idle;
  std::string why_;
};

// As the public headers have it.
millrace::SqlValue ToPublic(const SqlValue& value);

}  // namespace millrace::engine
