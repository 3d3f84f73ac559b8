// A handler's own transaction on an SQLite shard: it opens at the first SQL and holds up every other writer,
// so its time is limited. One thread at a time.
#pragma once

#include <algorithm>

#include "framework/store/sqlite/connection.h"
#include "framework/store/task_transaction.h"

namespace millrace {

inline constexpr Micros kLongestTransaction = std::chrono::seconds(5);

class SqliteTaskTransaction final : public TaskTransaction {
 public:
  SqliteTaskTransaction(SqliteFile& file, Micros limit)
      : db_(file), limit_(std::min(limit, kLongestTransaction)) {}

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<std::size_t> Submit(const std::string& table, std::span<const NewTask> tasks) override;
  TransactionState state() const override { return state_; }
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  // The handler's SQL is guarded, and SQLite has no procedures that could end it.
  bool Intact() override { return true; }
  void Rollback() override;

 private:
  Status Ready();
  Error Poison(Error error);
  CommitReport End(CommitVerdict verdict, std::string message);
  CommitReport Verdict(const Error& error);

  SqliteConnection db_;
  const Micros limit_;
  TransactionState state_ = TransactionState::Idle;
  BootTime deadline_{};
  std::string why_;  // what poisoned it
};

}  // namespace millrace
