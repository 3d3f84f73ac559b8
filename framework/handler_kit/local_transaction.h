// The transaction of a handler that is run without a worker: notes what passes through, and keeps or drops
// what would be committed.
#pragma once

#include <string>
#include <vector>

#include "framework/store/task_transaction.h"

namespace millrace::engine {

struct LocalStatement {
  std::string sql;
  std::vector<SqlValue> values;
  std::uint64_t affected = 0;
  std::size_t rows = 0;
  std::string error;  // empty: it went well
};

// A task that the handler adds. Kept: its transaction was committed.
struct LocalSubmission {
  NewTask task;
  bool kept = false;
};

// Forwards to another; to none, it refuses SQL and new tasks with a message that says what to do.
class LocalTransaction final : public TaskTransaction {
 public:
  // `commit`: otherwise what should be committed is rolled back, and said to be committed.
  LocalTransaction(TaskTransaction* inner, std::string without, bool commit)
      : inner_(inner), without_(std::move(without)), commit_(commit) {}

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  TransactionState state() const override;
  Status Mark() override;
  Status Undo() override;
  // The settlements are the caller's to note: there are no rows.
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  void Rollback() override;

  // Whether anything has been sent since the last ForgetSent.
  bool has_sent() const { return sent_; }
  void ForgetSent() { sent_ = false; }
  const std::vector<LocalStatement>& statements() const { return statements_; }
  const std::vector<LocalSubmission>& submitted() const { return submitted_; }

 private:
  void Drop(std::size_t from);

  TaskTransaction* const inner_;
  const std::string without_;
  const bool commit_;
  bool sent_ = false;
  std::vector<LocalStatement> statements_;
  std::vector<LocalSubmission> submitted_;
  std::size_t open_ = 0;  // of what is submitted: from here on it is neither committed nor dropped
  std::size_t mark_ = 0;
};

}  // namespace millrace::engine
