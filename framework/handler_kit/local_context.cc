#include "framework/handler_kit/local_context.h"

#include <algorithm>

#include "framework/plugin/sql_guard.h"

namespace millrace {

LocalContext::LocalContext(const Clock& clock, Micros timeout, TaskTransaction* transaction,
                           std::string table)
    : clock_(clock), deadline_(clock.Now() + timeout), transaction_(transaction), table_(std::move(table)) {}

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
  if (transaction_ == nullptr) {
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
  if (transaction_ == nullptr) {
    return Fail(ErrorCode::Invalid, "this run has no database for new tasks; name one with --store");
  }
  const auto added = transaction_->Submit(table_, std::span(&task, 1));
  if (!added) return Fail(added.error());
  if (*added != 0) submitted_.push_back(task);
  return *added != 0;
}

}  // namespace millrace
