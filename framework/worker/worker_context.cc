#include "framework/worker/worker_context.h"

#include <algorithm>

namespace millrace::engine {

WorkerContext::WorkerContext(const Clock& clock, std::span<const AttemptPtr> attempts,
                             TaskTransaction& transaction, BootTime deadline)
    : clock_(clock),
      attempts_(attempts),
      transaction_(transaction, attempts.size(), attempts.front()->task.key.table),
      deadline_(deadline) {}

bool WorkerContext::ShouldStop() const {
  if (attempts_.front()->host->StopAsked() || clock_.Now() >= deadline_) return true;
  // A batch is one transaction: it goes on while any of its tasks is still wanted.
  return std::all_of(attempts_.begin(), attempts_.end(), [](const AttemptPtr& attempt) {
    return attempt->cancel.load(std::memory_order_relaxed) || !attempt->lease->Alive();
  });
}

Micros WorkerContext::TimeLeft() const { return std::max(Micros(0), deadline_ - clock_.Now()); }

void WorkerContext::Log(LogLevel level, std::string_view message) {
  attempts_.front()->host->Log(*attempts_.front(), level, Shorten(message));
}

Status WorkerContext::SaveProgress(std::size_t index, std::string_view progress) {
  if (index >= attempts_.size()) {
    return Fail(ErrorCode::Invalid, "this call has no task " + std::to_string(index));
  }
  if (progress.size() > kMaxText) {
    return Fail(ErrorCode::Invalid, "progress is limited to " + std::to_string(kMaxText) + " bytes");
  }
  attempts_[index]->host->SaveProgress(*attempts_[index], std::string(progress));
  return {};
}

}  // namespace millrace::engine
