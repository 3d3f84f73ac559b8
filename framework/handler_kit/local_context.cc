#include "framework/handler_kit/local_context.h"

#include <algorithm>

#include "framework/plugin/sql_guard.h"

namespace millrace::engine {

LocalContext::LocalContext(const Clock& clock, Micros timeout, std::size_t tasks,
                           TaskTransaction* transaction, const TableName& table)
    : clock_(clock), deadline_(clock.Now() + timeout) {
  if (transaction != nullptr) transaction_.emplace(*transaction, tasks, table);
}

bool LocalContext::ShouldStop() const { return clock_.Now() >= deadline_; }

Micros LocalContext::TimeLeft() const { return std::max(Micros::zero(), deadline_ - clock_.Now()); }

void LocalContext::Log(LogLevel level, std::string_view message) {
  log_.push_back({level, std::string(message)});
}

Status LocalContext::SaveProgress(std::size_t index, std::string_view progress) {
  progress_.emplace_back(index, progress);
  return {};
}

Result<SqlResult> LocalContext::Execute(std::string_view sql, std::span<const SqlValue> values) {
  if (Status allowed = GuardSql(sql); !allowed) return Fail(allowed.error());
  if (!transaction_) {
    return Fail(ErrorCode::Invalid, "this run has no database for SQL; name one with --store");
  }
  auto result = transaction_->Execute(sql, values);
  LocalStatement& noted = statements_.emplace_back();
  noted.sql = Shorten(sql);
  if (result) {
    noted.affected = result->affected;
    noted.rows = result->rows.size();
  } else {
    noted.error = result.error().message;
  }
  return result;
}

Result<bool> LocalContext::Submit(const NewTask& task) {
  if (!transaction_) {
    return Fail(ErrorCode::Invalid, "this run has no database for new tasks; name one with --store");
  }
  const auto added = transaction_->Submit(task);
  if (added && *added) submitted_.push_back(task);
  return added;
}

bool LocalContext::BeginTask(std::size_t index) { return !transaction_ || transaction_->BeginTask(index); }

void LocalContext::EndTask(bool done) {
  if (transaction_) transaction_->EndTask(done);
}

void LocalContext::BeginTogether() {
  if (transaction_) transaction_->BeginTogether();
}

void LocalContext::Throw() {
  if (transaction_) transaction_->Throw();
}

}  // namespace millrace::engine
