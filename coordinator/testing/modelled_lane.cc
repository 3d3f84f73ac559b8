#include "coordinator/testing/modelled_lane.h"

namespace millrace::engine {
namespace {

constexpr std::uint64_t kLongestStep = 2'000;  // microseconds between the check and the handler's first line

}  // namespace

std::size_t ModelledLane::Room() const {
  const std::size_t queued = queue_.size() + parked_.size();
  return queued > parts_.settings.room / 2 ? 0 : parts_.settings.room - queued;
}

void ModelledLane::Push(std::vector<Task> tasks, const std::shared_ptr<Standing>& life) {
  for (Task& task : tasks) {
    queue_.push_back({std::move(task), life});
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
    Flight flight = std::move(queue_.front());
    queue_.pop_front();
    if (!ReadyToStart(flight)) continue;
    const Micros step(static_cast<std::int64_t>(parts_.timeline.random().Below(kLongestStep)));
    parts_.After(station.thread, step,
                 [this, &station, flight = std::move(flight)] { Run(station, flight); });
    return;
  }
  station.resting = true;
}

// The check before each start.
bool ModelledLane::ReadyToStart(const Flight& flight) {
  if (flight.life->MayStart(parts_.Now())) {
    if (!parts_.state.remit.Owns(flight.task.slice, flight.task.handler)) {  // its slice has moved
      GiveBack(flight.task, flight.life);
      return false;
    }
    if (!parts_.database.shard().IsAlive(flight.life->incarnation())) {
      parts_.journal.Violation("task " + std::to_string(flight.task.key.id) + " may start under " +
                               flight.life->incarnation() + ", which is marked dead");
    }
    return true;
  }
  if (flight.life->Alive()) {
    parked_.push_back(flight);
  } else {
    parts_.state.in_flight.Leave(flight.task.key);
  }
  return false;
}

void ModelledLane::Unpark() {
  std::vector<Flight> parked;
  parked.swap(parked_);
  for (Flight& flight : parked) {
    if (flight.life->Alive()) {
      queue_.push_back(std::move(flight));
      WakeOne();
    } else {
      parts_.state.in_flight.Leave(flight.task.key);
    }
  }
}

void ModelledLane::Run(Station& station, const Flight& flight) {
  const Micros took(
      static_cast<std::int64_t>(parts_.timeline.random().Below(parts_.settings.longest_run.count())));
  parts_.After(station.thread, took, [this, &station, flight] {
    Land(flight, Ran());
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

void ModelledLane::GiveBack(const Task& task, const std::shared_ptr<Standing>& life) {
  Outcome outcome;
  outcome.kind = OutcomeKind::GiveBack;
  Land({task, life}, outcome);
}

void ModelledLane::Land(const Flight& flight, const Outcome& outcome) {
  settler_.Land({Settle(parts_.settings.retry, flight.task, outcome, parts_.timeline.random().Unit()),
                 flight.life->incarnation()});
}

}  // namespace millrace::engine
