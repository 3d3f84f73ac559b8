#include "framework/worker/station.h"

#include <algorithm>
#include <iterator>

namespace millrace::engine {

void Station::Call(const LaneSetupPtr& setup, const CallPart& part) {
  {
    MutexLock lock(mutex_);
    setup_ = setup;
  }
  KeepParts(runner_.Run(*setup, part, SessionFor(*part.attempts.front(), setup->config.timeout)));
}

void Station::KeepParts(std::vector<CallPart> parts) {
  MutexLock lock(mutex_);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->attempts.size() > 1) {
      parts_.push_front(std::move(*part));
    } else {
      part->attempts.front()->alone.store(true, std::memory_order_relaxed);
      waiting_.push_front(std::move(part->attempts.front()));
    }
  }
}

std::optional<CallPart> Station::NextPart() {
  MutexLock lock(mutex_);
  if (parts_.empty()) return std::nullopt;
  CallPart part = std::move(parts_.front());
  parts_.pop_front();
  return part;
}

TaskTransaction& Station::SessionFor(const Attempt& attempt, Micros limit) {
  Session& session = sessions_[attempt.host.get()];
  if (!session.transaction || session.limit != limit) {
    session.transaction.reset();
    session = {attempt.host, limit, attempt.host->OpenTransaction(limit)};
  }
  return *session.transaction;
}

void Station::CloseEndedSessions() {
  std::erase_if(sessions_, [](const auto& entry) { return entry.second.host->Over(); });
}

void Station::Begin(const std::vector<AttemptPtr>& attempts, BootTime deadline) {
  for (const AttemptPtr& attempt : attempts) {
    attempt->started.store(true);
    slots_.push_back(
        recorder_.Begin({attempt->lease->incarnation(), attempt->task.key, attempt->task.attempt}));
  }
  MutexLock lock(mutex_);
  attempts_ = attempts;
  deadline_ = deadline;
}

bool Station::Finish() {
  {
    MutexLock lock(mutex_);
    attempts_.clear();
  }
  for (std::size_t slot : slots_) recorder_.End(slot);
  slots_.clear();
  return !lost_.load();
}

void Station::Keep(std::vector<AttemptPtr> attempts) {
  MutexLock lock(mutex_);
  waiting_.insert(waiting_.begin(), std::make_move_iterator(attempts.begin()),
                  std::make_move_iterator(attempts.end()));
}

void Station::KeepFirst(AttemptPtr attempt) {
  MutexLock lock(mutex_);
  waiting_.push_front(std::move(attempt));
}

AttemptPtr Station::Next() {
  MutexLock lock(mutex_);
  if (waiting_.empty()) return nullptr;
  AttemptPtr next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

Station::Abandoned Station::GiveUp(BootTime now, bool whatever) {
  MutexLock lock(mutex_);
  if (attempts_.empty()) return {};
  if (!whatever && now < deadline_ + GraceAfter(setup_->config.timeout)) return {};
  lost_.store(true);
  Abandoned abandoned{setup_, std::move(attempts_), {}};
  for (CallPart& part : parts_) {
    std::move(part.attempts.begin(), part.attempts.end(), std::back_inserter(abandoned.waiting));
  }
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(abandoned.waiting));
  attempts_.clear();
  parts_.clear();
  waiting_.clear();
  return abandoned;
}

bool Station::HangsAt(BootTime now) const {
  MutexLock lock(mutex_);
  return !attempts_.empty() && attempts_.front()->lease->IsLate(now);
}

}  // namespace millrace::engine
