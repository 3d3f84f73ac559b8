#include "framework/handler_kit/local_transaction.h"

#include <algorithm>

namespace millrace::engine {

Result<SqlResult> LocalTransaction::Execute(std::string_view sql, std::span<const SqlValue> values) {
  if (inner_ == nullptr) return Fail(ErrorCode::Invalid, "this run has no database for SQL; " + without_);
  sent_ = true;
  auto result = inner_->Execute(sql, values);
  LocalStatement& noted = statements_.emplace_back();
  noted.sql = Shorten(sql);
  noted.values.assign(values.begin(), values.end());
  if (result) {
    noted.affected = result->affected;
    noted.rows = result->rows.size();
  } else {
    noted.error = result.error().message;
  }
  return result;
}

Result<SubmitReport> LocalTransaction::Submit(const TableName& table, std::span<const NewTask> tasks) {
  if (inner_ == nullptr)
    return Fail(ErrorCode::Invalid, "this run has no database for new tasks; " + without_);
  sent_ = true;
  BOOST_OUTCOME_TRY(report, inner_->Submit(table, tasks));
  for (std::size_t i = 0; i < report.ids.size(); ++i) {
    if (report.ids[i] != 0) submitted_.push_back({tasks[i]});
  }
  return report;
}

TransactionState LocalTransaction::state() const {
  return inner_ == nullptr ? TransactionState::Idle : inner_->state();
}

Status LocalTransaction::Mark() {
  if (inner_ == nullptr) return {};  // what follows is refused
  mark_ = submitted_.size();
  return inner_->Mark();
}

Status LocalTransaction::Undo() {
  if (inner_ == nullptr) return {};
  Status undone = inner_->Undo();
  if (undone) Drop(mark_);
  return undone;
}

CommitReport LocalTransaction::Commit(const std::string& incarnation, std::span<const Settlement>) {
  if (!commit_) {
    Rollback();
    return {};
  }
  CommitReport report = inner_->Commit(incarnation, {});
  const bool kept = report.verdict == CommitVerdict::Committed;
  for (std::size_t i = open_; i < submitted_.size(); ++i) submitted_[i].kept = kept;
  open_ = submitted_.size();
  return report;
}

void LocalTransaction::Rollback() {
  if (inner_ != nullptr) inner_->Rollback();
  open_ = submitted_.size();
}

// A task whose SQL was undone has added nothing.
void LocalTransaction::Drop(std::size_t from) {
  const auto begin = submitted_.begin() + static_cast<std::ptrdiff_t>(std::max(from, open_));
  submitted_.erase(begin, submitted_.end());
}

}  // namespace millrace::engine
