#include "framework/plugin/call_transaction.h"

#include "framework/store/sql_guard.h"

namespace millrace::engine {

CallTransaction::CallTransaction(TaskTransaction& transaction, std::size_t tasks, TableName table)
    : transaction_(transaction), table_(std::move(table)), tasks_(tasks) {}

template <class T>
Result<T> CallTransaction::Noted(Result<T> result) {
  if (!result && error_.empty()) error_ = result.error().message;
  return result;
}

// Before each statement: the first of a task that shares its call is preceded by a savepoint.
Status CallTransaction::Ready() {
  if (Alone()) return {};
  if (!current_) {
    unsaid_ = unsaid_ || !together_;
    return {};
  }
  TaskEnd& task = tasks_[*current_];
  if (task.sent) return {};
  Status marked = transaction_.Mark();
  task.sent = marked.has_value();
  return Noted(std::move(marked));
}

Result<SqlResult> CallTransaction::Execute(std::string_view sql, std::span<const SqlValue> values) {
  BOOST_OUTCOME_TRYV(Noted(GuardSql(sql)));
  BOOST_OUTCOME_TRYV(Ready());
  return Noted(transaction_.Execute(sql, values));
}

Result<bool> CallTransaction::Submit(const NewTask& task) {
  BOOST_OUTCOME_TRYV(Validate(task));
  BOOST_OUTCOME_TRYV(Ready());
  BOOST_OUTCOME_TRY(report, Noted(transaction_.Submit(table_, std::span(&task, 1))));
  return report.added == 1;
}

bool CallTransaction::BeginTask(std::size_t index) {
  if (Alone() || index >= tasks_.size()) return true;
  each_ = true;
  if (tasks_[index].sent) {  // what it sent before is behind another's savepoint, or undone
    threw_ = true;
    return false;
  }
  const TransactionState state = transaction_.state();
  if (state != TransactionState::Idle && state != TransactionState::Open) return false;
  current_ = index;
  return true;
}

void CallTransaction::BeginTogether() { together_ = true; }

void CallTransaction::EndTask(bool done) {
  if (!current_) return;
  TaskEnd& task = tasks_[*current_];
  current_.reset();
  if (!task.sent) return;
  const TransactionState state = transaction_.state();
  task.failed = task.failed || state == TransactionState::Poisoned;
  task.kept = done && state == TransactionState::Open;
  const bool can_undo = state == TransactionState::Open || state == TransactionState::Poisoned;
  if (!task.kept && can_undo) (void)Noted(transaction_.Undo());  // or the state says that all is lost
}

CallEnd CallTransaction::End(std::span<const Outcome> outcomes) const {
  CallEnd end;
  end.state = transaction_.state();
  end.tasks = tasks_;
  for (std::size_t i = 0; i < tasks_.size(); ++i) end.tasks[i].outcome = outcomes[i].kind;
  const bool told_apart = each_ && !together_ && !unsaid_;
  if (told_apart) end.style = CallStyle::Each;
  if (together_ && !each_ && !unsaid_) end.style = CallStyle::Together;
  end.threw = threw_ || (each_ && !told_apart);
  return end;
}

}  // namespace millrace::engine
