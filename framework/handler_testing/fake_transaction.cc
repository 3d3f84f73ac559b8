#include "framework/handler_testing/fake_transaction.h"

#include <vector>

namespace millrace::engine {

millrace::SqlValue ToPublic(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

Status FakeTransaction::Ready() {
  if (state_ == TransactionState::Open) return {};
  if (state_ != TransactionState::Idle) {
    return Fail(ErrorCode::Invalid, "the transaction can only be rolled back: " + why_);
  }
  state_ = TransactionState::Open;
  open_ = marked_ = taken_;
  return {};
}

Result<SqlResult> FakeTransaction::Execute(std::string_view sql, std::span<const SqlValue> values) {
  if (!fake_) {
    return Fail(ErrorCode::Invalid, "this test has no database: call UseSqlite or UseFake before Run");
  }
  BOOST_OUTCOME_TRYV(Ready());
  std::vector<millrace::SqlValue> bound;
  for (const SqlValue& value : values) bound.push_back(ToPublic(value));
  SqlAnswer answer = fake_(sql, bound);
  ErrorCode code = ErrorCode::Invalid;
  switch (answer.fault) {
    case SqlAnswer::Fault::None:
      return SqlResult{std::move(answer.rows.columns), std::move(answer.rows.rows), answer.affected};
    case SqlAnswer::Fault::Refused:
      state_ = TransactionState::Poisoned;
      break;
    case SqlAnswer::Fault::Deadlock:
      state_ = TransactionState::Transient;
      code = ErrorCode::Conflict;
      break;
    case SqlAnswer::Fault::ConnectionLost:
      state_ = TransactionState::Lost;
      code = ErrorCode::Unavailable;
      break;
    case SqlAnswer::Fault::Ended:
      state_ = TransactionState::Escaped;
      code = ErrorCode::Internal;
      break;
  }
  why_ = answer.error;
  return Fail(code, answer.error);
}

Result<SubmitReport> FakeTransaction::Submit(const TableName&, std::span<const NewTask> tasks) {
  BOOST_OUTCOME_TRYV(Ready());
  SubmitReport report;
  for (const NewTask& task : tasks) {
    const bool added = task.biz_key.empty() || open_.emplace(task.handler, task.biz_key).second;
    report.added += added ? 1 : 0;
    report.ids.push_back(added ? 1 : 0);
    report.duplicates.emplace_back();
  }
  return report;
}

Status FakeTransaction::Mark() {
  BOOST_OUTCOME_TRYV(Ready());
  marked_ = open_;
  return {};
}

Status FakeTransaction::Undo() {
  if (state_ != TransactionState::Open && state_ != TransactionState::Poisoned) {
    return Fail(ErrorCode::Conflict, "only the rollback of all is left: " + why_);
  }
  open_ = marked_;
  state_ = TransactionState::Open;
  return {};
}

CommitReport FakeTransaction::Commit(const std::string&, std::span<const Settlement>) {
  const TransactionState state = state_;
  if (state == TransactionState::Open) taken_ = open_;
  Rollback();
  if (state == TransactionState::Escaped) return {CommitVerdict::Escaped, why_};
  return {state == TransactionState::Open ? CommitVerdict::Committed : CommitVerdict::Broken, why_};
}

void FakeTransaction::Rollback() { state_ = TransactionState::Idle; }

}  // namespace millrace::engine
