// The transaction of one call, as its context uses it: refuses what a handler may not send, keeps apart whose
// SQL is whose, and tells the policy (task/transaction_policy.h) how it all ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/store/task_transaction.h"

namespace millrace::engine {

// On the handler's thread alone.
class CallTransaction {
 public:
  // For a call of so many tasks; new tasks go to `table`.
  CallTransaction(TaskTransaction& transaction, std::size_t tasks, TableName table);

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values);
  Result<bool> Submit(const NewTask& task);  // false: its key is taken

  // See CallContext.
  bool BeginTask(std::size_t index);
  void BeginTogether();
  void EndTask(bool done);
  void Throw() { threw_ = true; }

  // How the call ended with these outcomes, one a task.
  CallEnd End(std::span<const Outcome> outcomes) const;
  // The first error, for the attempt's message; empty if there was none.
  const std::string& error() const { return error_; }

 private:
  bool Alone() const { return tasks_.size() == 1; }
  Status Ready();
  template <class T>
  Result<T> Noted(Result<T> result);

  TaskTransaction& transaction_;
  const TableName table_;
  std::vector<TaskEnd> tasks_;
  std::optional<std::size_t> current_;  // the task whose SQL is told apart
  bool each_ = false;
  bool together_ = false;
  bool unsaid_ = false;  // something was sent, and nobody had said whose it is
  bool threw_ = false;
  std::string error_;
};

}  // namespace millrace::engine
