#include "framework/worker/lane_thread.h"

#include <algorithm>
#include <iterator>

namespace millrace::engine {
namespace {

constexpr Micros kMoment = std::chrono::milliseconds(100);  // for what waits behind a short task
constexpr Micros kLongEnd =
    std::chrono::milliseconds(500);  // of a transaction: more than a healthy database takes

}  // namespace

void LaneThread::SetHome() {
  for (const std::size_t slot : slots_) recorder_.Release(slot);
  slots_.clear();
  home_.store(true);
}

void LaneThread::Call(const LaneSetupPtr& setup, const CallPart& part) {
  calls_ = &setup;
  std::vector<CallPart> parts =
      runner_.Run(*setup, part, SessionFor(*part.attempts.front(), setup->config.timeout));
  {
    MutexLock lock(mutex_);
    ended_.swap(attempts_);
  }
  ended_.clear();  // an attempt may be the last that keeps its shard
  if (!parts.empty()) KeepParts(std::move(parts));
}

void LaneThread::ForgetSetup() {
  MutexLock lock(mutex_);
  setup_.reset();
}

void LaneThread::NoteRan(BootTime now) {
  for (const AttemptPtr& attempt : attempts_) {
    const Micros::rep began = attempt->began.load(std::memory_order_relaxed);
    attempt->ran.store(now.time_since_epoch().count() - began, std::memory_order_relaxed);
  }
}

void LaneThread::KeepParts(std::vector<CallPart> parts) {
  has_parts_ = true;
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

std::optional<CallPart> LaneThread::NextPart() {
  if (!has_parts_) return std::nullopt;
  MutexLock lock(mutex_);
  has_parts_ = !parts_.empty();
  if (!has_parts_) return std::nullopt;
  CallPart part = std::move(parts_.front());
  parts_.pop_front();
  return part;
}

TaskTransaction& LaneThread::SessionFor(const Attempt& attempt, Micros limit) {
  Session& session = sessions_[attempt.host.get()];
  if (!session.transaction || session.limit != limit) {
    session.transaction.reset();
    session = {attempt.host, limit, attempt.host->OpenTransaction(limit)};
  }
  return *session.transaction;
}

void LaneThread::CloseEndedSessions() {
  std::erase_if(sessions_, [](const auto& entry) { return entry.second.host->Over(); });
}

void LaneThread::Begin(const std::vector<AttemptPtr>& attempts, BootTime now, BootTime deadline) {
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const Attempt& attempt = *attempts[i];
    if (!attempts[i]->started.exchange(true)) {
      attempts[i]->began.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    if (i == slots_.size()) slots_.push_back(recorder_.Reserve());
    recorder_.Begin(slots_[i], attempt.lease->incarnation(), attempt.task.key, attempt.task.attempt);
  }
  MutexLock lock(mutex_);
  if (setup_ != *calls_) setup_ = *calls_;
  attempts_ = attempts;
  deadline_ = deadline;
  since_ = now;
  state_ = CallState::Running;
}

bool LaneThread::Finish(BootTime ended) {
  {
    MutexLock lock(mutex_);
    NoteRan(ended);
    state_ = CallState::Concluding;
  }
  for (const std::size_t slot : slots_) recorder_.End(slot);
  while (slots_.size() > 1 || (!slots_.empty() && slots_.back() == FlightRecorder::kNoSlot)) {
    recorder_.Release(slots_.back());
    slots_.pop_back();
  }
  return !lost_.load();
}

void LaneThread::EndsTransaction() {
  MutexLock lock(mutex_);
  since_ = clock_.Now();
  state_ = CallState::Ending;
}

void LaneThread::Save(Attempt& attempt, std::string progress) {
  MutexLock lock(mutex_);
  if (!lost_.load()) CallWatch::Save(attempt, std::move(progress));
}

void LaneThread::Keep(std::vector<AttemptPtr> attempts) {
  MutexLock lock(mutex_);
  waiting_.insert(waiting_.begin(), std::make_move_iterator(attempts.begin()),
                  std::make_move_iterator(attempts.end()));
}

void LaneThread::KeepFirst(AttemptPtr attempt) {
  MutexLock lock(mutex_);
  waiting_.push_front(std::move(attempt));
}

AttemptPtr LaneThread::Next() {
  MutexLock lock(mutex_);
  if (waiting_.empty()) return nullptr;
  AttemptPtr next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

LaneThread::Abandoned LaneThread::GiveUp(BootTime now, bool whatever) {
  MutexLock lock(mutex_);
  if (attempts_.empty() || state_ != CallState::Running) return {};
  const bool stopped = std::any_of(attempts_.begin(), attempts_.end(), [&](const AttemptPtr& attempt) {
    const Micros::rep by = attempt->stop_by.load(std::memory_order_relaxed);
    return by != 0 && now >= BootTime(Micros(by));
  });
  if (!whatever && !stopped && now < deadline_ + GraceAfter(setup_->config.timeout)) return {};
  for (const AttemptPtr& attempt : attempts_) attempt->given_up.store(true);
  lost_.store(true);
  if (!whatever) NoteRan(now);
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

bool LaneThread::HangsAt(BootTime now) const {
  MutexLock lock(mutex_);
  if (attempts_.empty()) return false;
  return attempts_.front()->lease->IsLate(now) || (state_ == CallState::Ending && now - since_ > kLongEnd);
}

std::vector<AttemptPtr> LaneThread::TakeKept(BootTime now) {
  MutexLock lock(mutex_);
  if (attempts_.empty() || now - since_ < kMoment) return {};
  std::vector<AttemptPtr> kept(std::make_move_iterator(waiting_.begin()),
                               std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return kept;
}

// One that takes longer than usual may take as long again.
Micros LaneThread::BusyFor(BootTime now, Micros each) const {
  MutexLock lock(mutex_);
  if (attempts_.empty()) return Micros(0);
  const Micros usual = each * static_cast<Micros::rep>(attempts_.size());
  const Micros ran = now - since_;
  return std::clamp(ran < usual ? usual - ran : ran, Micros(1), std::max(deadline_ - now, Micros(1)));
}

}  // namespace millrace::engine
