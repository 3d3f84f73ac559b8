#include "framework/worker/worker_context.h"

#include <algorithm>

namespace millrace::engine {

WorkerContext::WorkerContext(const Clock& clock, std::span<const FlightPtr> flights,
                             TaskTransaction& transaction, BootTime deadline)
    : clock_(clock),
      flights_(flights),
      transaction_(transaction, flights.size(), flights.front()->task.key.table),
      deadline_(deadline) {}

bool WorkerContext::ShouldStop() const {
  if (flights_.front()->host->StopAsked() || clock_.Now() >= deadline_) return true;
  // A batch is one transaction: it goes on while any of its tasks is still wanted.
  return std::all_of(flights_.begin(), flights_.end(), [](const FlightPtr& flight) {
    return flight->cancel.load(std::memory_order_relaxed) || !flight->standing->Alive();
  });
}

Micros WorkerContext::TimeLeft() const { return std::max(Micros(0), deadline_ - clock_.Now()); }

void WorkerContext::Log(LogLevel level, std::string_view message) {
  const Flight& first = *flights_.front();
  engine::Log(level, Shorten(message),
              {{"task", ToString(TaskName{first.shard, first.task.key})}, {"handler", first.task.handler}});
}

Status WorkerContext::SaveProgress(std::size_t index, std::string_view progress) {
  if (index >= flights_.size()) {
    return Fail(ErrorCode::Invalid, "this call has no task " + std::to_string(index));
  }
  if (progress.size() > kMaxText) {
    return Fail(ErrorCode::Invalid, "progress is limited to " + std::to_string(kMaxText) + " bytes");
  }
  flights_[index]->host->SaveProgress(*flights_[index], std::string(progress));
  return {};
}

}  // namespace millrace::engine
