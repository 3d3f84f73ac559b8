#include "framework/worker/call.h"

#include <algorithm>

#include "framework/plugin/sql_guard.h"

namespace millrace {

Call::Call(const Clock& clock, std::span<const FlightPtr> flights, TaskTransaction& transaction,
           BootTime deadline)
    : clock_(clock), flights_(flights), transaction_(transaction), deadline_(deadline) {}

bool Call::ShouldStop() const {
  if (flights_.front()->host->StopAsked() || clock_.Now() >= deadline_) return true;
  // A batch is one transaction: it goes on while any of its tasks is still wanted.
  return std::all_of(flights_.begin(), flights_.end(), [](const FlightPtr& flight) {
    return flight->cancel.load(std::memory_order_relaxed) || !flight->standing->Alive();
  });
}

Micros Call::TimeLeft() const { return std::max(Micros(0), deadline_ - clock_.Now()); }

void Call::Log(LogLevel level, std::string_view message) {
  const Flight& first = *flights_.front();
  millrace::Log(level, Shorten(message),
                {{"task", ToString(TaskName{first.shard, first.task.key})}, {"handler", first.task.handler}});
}

Status Call::SaveProgress(std::size_t index, std::string_view progress) {
  if (index >= flights_.size()) {
    return Fail(ErrorCode::Invalid, "this call has no task " + std::to_string(index));
  }
  if (progress.size() > kMaxText) {
    return Fail(ErrorCode::Invalid, "progress is limited to " + std::to_string(kMaxText) + " bytes");
  }
  flights_[index]->host->SaveProgress(*flights_[index], std::string(progress));
  return {};
}

template <class T>
Result<T> Call::Noted(Result<T> result) {
  if (!result && sql_error_.empty()) sql_error_ = result.error().message;
  return result;
}

Result<SqlResult> Call::Execute(std::string_view sql, std::span<const SqlValue> values) {
  if (Status allowed = GuardSql(sql); !allowed) {
    if (sql_error_.empty()) sql_error_ = allowed.error().message;
    return millrace::Fail(allowed.error());
  }
  return Noted(transaction_.Execute(sql, values));
}

Result<bool> Call::Submit(const NewTask& task) {
  if (Status valid = Validate(task); !valid) return millrace::Fail(valid.error());
  auto added = Noted(transaction_.Submit(flights_.front()->task.key.table, std::span(&task, 1)));
  if (!added) return millrace::Fail(added.error());
  return *added == 1;
}

}  // namespace millrace
