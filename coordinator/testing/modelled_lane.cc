#include "coordinator/testing/modelled_lane.h"

#include "coordinator/testing/simulated_work.h"

namespace millrace::engine {
namespace {

constexpr std::uint64_t kLongestStep = 2'000;  // microseconds between the check and the handler's first line

}  // namespace

std::size_t ModelledLane::Room() const {
  const std::size_t queued = queue_.size() + parked_.size();
  return queued > parts_.settings.room / 2 ? 0 : parts_.settings.room - queued;
}

void ModelledLane::Push(std::vector<Task> tasks, const std::shared_ptr<Lease>& life) {
  for (Task& task : tasks) {
    queue_.push_back(Make(std::move(task), life));
    WakeOne();
  }
}

void ModelledLane::WakeOne() {
  for (Station& station : stations_) {
    if (!station.resting) continue;
    station.resting = false;
    parts_.After(station.thread, Micros(50), [this, &station] { Take(station); });
    return;
  }
}

void ModelledLane::Take(Station& station) {
  while (!queue_.empty()) {
    AttemptPtr attempt = std::move(queue_.front());
    queue_.pop_front();
    if (!ReadyToStart(attempt)) continue;
    const Micros step(static_cast<std::int64_t>(parts_.timeline.random().Below(kLongestStep)));
    parts_.After(station.thread, step,
                 [this, &station, attempt = std::move(attempt)] { Run(station, attempt); });
    return;
  }
  station.resting = true;
}

// The check before each start.
bool ModelledLane::ReadyToStart(const AttemptPtr& attempt) {
  if (attempt->lease->MayStart(parts_.Now())) {
    if (!parts_.state.remit.Owns(attempt->task.slice, attempt->task.handler)) {  // its slice has moved
      GiveBack(attempt->task, attempt->lease);
      return false;
    }
    if (!parts_.database.shard().IsAlive(attempt->lease->incarnation())) {
      parts_.journal.Violation("task " + std::to_string(attempt->task.key.id) + " may start under " +
                               attempt->lease->incarnation() + ", which is marked dead");
    }
    return true;
  }
  if (attempt->lease->Alive()) {
    parked_.push_back(attempt);
  } else {
    parts_.state.in_flight.Leave(attempt->task.key);
  }
  return false;
}

void ModelledLane::Unpark() {
  std::vector<AttemptPtr> parked;
  parked.swap(parked_);
  for (AttemptPtr& attempt : parked) {
    if (attempt->lease->Alive()) {
      queue_.push_back(std::move(attempt));
      WakeOne();
    } else {
      parts_.state.in_flight.Leave(attempt->task.key);
    }
  }
}

void ModelledLane::Run(Station& station, const AttemptPtr& attempt) {
  const Micros took(
      static_cast<std::int64_t>(parts_.timeline.random().Below(parts_.settings.longest_run.count())));
  parts_.After(station.thread, took, [this, &station, attempt] {
    Ended(attempt, Ran());
    Take(station);
  });
}

Outcome ModelledLane::Ran() {
  Outcome outcome;
  const auto dice = parts_.timeline.random().Below(100);
  if (dice < parts_.settings.retries) {
    outcome.kind = OutcomeKind::Retry;
  } else if (dice < parts_.settings.retries + parts_.settings.snoozes) {
    outcome.kind = OutcomeKind::Snooze;
    outcome.delay = std::chrono::milliseconds(500);
  }
  return outcome;
}

void ModelledLane::GiveBack(const Task& task, const std::shared_ptr<Lease>& life) {
  Outcome outcome;
  outcome.kind = OutcomeKind::GiveBack;
  Ended(Make(task, life), outcome);
}

void ModelledLane::Ended(const AttemptPtr& attempt, const Outcome& outcome) {
  settler_.Ended(
      {attempt, Settle(parts_.settings.retry, attempt->task, outcome, parts_.timeline.random().Unit())});
}

AttemptPtr ModelledLane::Make(Task task, const std::shared_ptr<Lease>& life) {
  return std::make_shared<Attempt>(nullptr, SimulatedWork::kShard, std::move(task), life, false);
}

}  // namespace millrace::engine
