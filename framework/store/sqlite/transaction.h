// A handler's own transaction on an SQLite shard: it opens at the first SQL and holds up every other writer,
// so its time is limited. Where the time is over, a statement is interrupted, and a handler that sleeps
// between two statements is evicted by whoever waits to write; its next statement finds the transaction
// poisoned.
#pragma once

#include <algorithm>

#include "framework/base/mutex.h"
#include "framework/store/sqlite/session.h"
#include "framework/store/task_transaction.h"

namespace millrace::engine::sqlite {

inline constexpr Micros kLongestTransaction = std::chrono::seconds(5);

// One thread at a time, and beside it the threads that wait at the gate.
class SqliteTaskTransaction final : public TaskTransaction, private GateTenant {
 public:
  SqliteTaskTransaction(File& file, Micros limit) : limit_(std::min(limit, kLongestTransaction)), db_(file) {}
  ~SqliteTaskTransaction() override { Rollback(); }

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<std::size_t> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  TransactionState state() const override;
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  Status Mark() override;
  Status Undo() override;
  void Rollback() override;

 private:
  bool TryHold() override { return mutex_.TryLock(); }
  void Evict() override;

  Status Ready() MILLRACE_REQUIRES(mutex_);
  Error Poison(Error error) MILLRACE_REQUIRES(mutex_);
  Error Refused(Error error) MILLRACE_REQUIRES(mutex_);
  Error TimeIsUp() const;
  void Reset() MILLRACE_REQUIRES(mutex_);
  CommitReport End(CommitVerdict verdict, std::string message) MILLRACE_REQUIRES(mutex_);
  CommitReport Verdict(const Error& error) MILLRACE_REQUIRES(mutex_);

  const Micros limit_;
  mutable Mutex mutex_;  // held while the database is used: the connection belongs to one thread at a time
  Session db_ MILLRACE_GUARDED_BY(mutex_);
  TransactionState state_ MILLRACE_GUARDED_BY(mutex_) = TransactionState::Idle;
  BootTime deadline_ MILLRACE_GUARDED_BY(mutex_){};
  std::string why_ MILLRACE_GUARDED_BY(mutex_);  // what poisoned it
  bool marked_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::engine::sqlite
