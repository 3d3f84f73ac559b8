#include "framework/worker/station.h"

#include <algorithm>
#include <iterator>

namespace millrace::engine {

Micros GraceAfter(Micros timeout) {
  return std::clamp<Micros>(timeout / 10, std::chrono::seconds(1), std::chrono::seconds(10));
}

void Station::Call(const LaneSetupPtr& setup, const CallPart& part) {
  {
    MutexLock lock(mutex_);
    setup_ = setup;
  }
  KeepParts(runner_.Run(*setup, part, SessionFor(*part.flights.front(), setup->config.timeout)));
}

void Station::KeepParts(std::vector<CallPart> parts) {
  MutexLock lock(mutex_);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->flights.size() > 1) {
      parts_.push_front(std::move(*part));
    } else {
      part->flights.front()->alone.store(true, std::memory_order_relaxed);
      waiting_.push_front(std::move(part->flights.front()));
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

TaskTransaction& Station::SessionFor(const Flight& flight, Micros limit) {
  Session& session = sessions_[flight.host.get()];
  if (!session.transaction || session.limit != limit) {
    session.transaction.reset();
    session = {flight.host, limit, flight.host->OpenTransaction(limit)};
  }
  return *session.transaction;
}

void Station::CloseEndedSessions() {
  std::erase_if(sessions_, [](const auto& entry) { return entry.second.host->Over(); });
}

void Station::Begin(const std::vector<FlightPtr>& flights, BootTime deadline) {
  for (const FlightPtr& flight : flights) {
    flight->started.store(true);
    slots_.push_back(
        recorder_.Begin({flight->standing->incarnation(), flight->task.key, flight->task.attempt}));
  }
  MutexLock lock(mutex_);
  flights_ = flights;
  deadline_ = deadline;
}

bool Station::Finish() {
  {
    MutexLock lock(mutex_);
    flights_.clear();
  }
  for (std::size_t slot : slots_) recorder_.End(slot);
  slots_.clear();
  return !lost_.load();
}

void Station::Keep(std::vector<FlightPtr> flights) {
  MutexLock lock(mutex_);
  waiting_.insert(waiting_.begin(), std::make_move_iterator(flights.begin()),
                  std::make_move_iterator(flights.end()));
}

void Station::KeepFirst(FlightPtr flight) {
  MutexLock lock(mutex_);
  waiting_.push_front(std::move(flight));
}

FlightPtr Station::Next() {
  MutexLock lock(mutex_);
  if (waiting_.empty()) return nullptr;
  FlightPtr next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

Station::Abandoned Station::GiveUp(BootTime now, bool whatever) {
  MutexLock lock(mutex_);
  if (flights_.empty()) return {};
  if (!whatever && now < deadline_ + GraceAfter(setup_->config.timeout)) return {};
  lost_.store(true);
  Abandoned abandoned{setup_, std::move(flights_), {}};
  for (CallPart& part : parts_) {
    std::move(part.flights.begin(), part.flights.end(), std::back_inserter(abandoned.waiting));
  }
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(abandoned.waiting));
  flights_.clear();
  parts_.clear();
  waiting_.clear();
  return abandoned;
}

bool Station::HangsAt(BootTime now) const {
  MutexLock lock(mutex_);
  return !flights_.empty() && flights_.front()->standing->IsLate(now);
}

}  // namespace millrace::engine
