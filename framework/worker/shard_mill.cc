#include "framework/worker/shard_mill.h"

#include "framework/base/log.h"

namespace millrace {
namespace {

Outcome GivenBack() {
  Outcome outcome;
  outcome.kind = OutcomeKind::GiveBack;
  return outcome;
}

Counter& Settles(Registry& registry, const char* outcome) {
  return registry.GetCounter("millrace_tasks_settled_total", {{"outcome", outcome}});
}

}  // namespace

MillCounters::MillCounters(Registry& registry)
    : claimed(registry.GetCounter("millrace_tasks_claimed_total")),
      succeeded(Settles(registry, "succeeded")),
      cancelled(Settles(registry, "cancelled")),
      failed(Settles(registry, "failed")),
      retried(Settles(registry, "retried")),
      returned(Settles(registry, "returned")),
      refused(registry.GetCounter("millrace_settles_refused_total")),
      adopted(registry.GetCounter("millrace_tasks_adopted_total")),
      rescued(registry.GetCounter("millrace_tasks_rescued_total")) {}

ShardMill::ShardMill(Parts parts)
    : parts_(std::move(parts)),
      settler_(parts_.store.OpenTasks(), parts_.engine.batch,
               [this](const Landing& landing, SettleVerdict verdict) { Known(landing, verdict); }),
      scanner_({parts_.clock, parts_.name, *this, parts_.slices, parts_.lanes, in_flight_, parts_.gate,
                parts_.engine, parts_.watch_idle},
               parts_.store.OpenTasks(), parts_.store.OpenDesk()),
      tender_({parts_.clock, parts_.name, *this, parts_.slices, in_flight_, parts_.engine.rewind},
              parts_.store.OpenTasks()),
      heartbeat_(parts_.clock, parts_.store.OpenIncarnations(), parts_.store.Describe(), parts_.self,
                 parts_.recorder, parts_.dead_recorders, Events()) {}

ShardMill::~ShardMill() { End(); }

void ShardMill::Start() {
  settler_.Start();
  heartbeat_.Start();
  scanner_.Start();
  tender_.Start();
}

void ShardMill::End() {
  scanner_.Stop();
  tender_.Stop();
  settler_.Stop();
  heartbeat_.Stop(true);
}

Heartbeat::Events ShardMill::Events() {
  return {[this](std::shared_ptr<Standing> life) {
            {
              MutexLock lock(mutex_);
              life_ = std::move(life);
            }
            scanner_.Wake();
          },
          [this](std::shared_ptr<Standing> life) { Unpark(life); },
          [this](std::shared_ptr<Standing> life) {
            {
              MutexLock lock(mutex_);
              life_.reset();
            }
            Unpark(life);
          },
          [this] { tender_.Wake(); }};
}

std::shared_ptr<Standing> ShardMill::Life() const {
  MutexLock lock(mutex_);
  return life_;
}

std::unique_ptr<TaskTransaction> ShardMill::OpenTransaction(Micros limit) {
  return parts_.store.OpenTransaction(limit);
}

void ShardMill::SaveProgress(const Flight& flight, std::string progress) {
  tender_.SaveProgress({flight.task.key, flight.task.attempt, std::move(progress)});
}

void ShardMill::Dispatch(std::vector<Task> tasks, const std::shared_ptr<Standing>& life, bool solo) {
  parts_.counters.claimed.Add(tasks.size());
  std::map<std::string, std::vector<FlightPtr>> by_type;
  for (Task& task : tasks) {
    auto flight = std::make_shared<Flight>(*this, parts_.name, std::move(task), life, solo);
    in_flight_.Claimed(flight);
    by_type[flight->task.handler].push_back(std::move(flight));
  }
  for (auto& [type, flights] : by_type) {
    Lane* lane = parts_.lanes.For(type);
    if (lane == nullptr) {
      GiveBack(std::move(flights));
    } else {
      lane->Push(std::move(flights));
    }
  }
}

void ShardMill::LandAtOnce(const Task& task, const std::shared_ptr<Standing>& life, Outcome outcome,
                           bool solo) {
  parts_.counters.claimed.Add();
  auto flight = std::make_shared<Flight>(*this, parts_.name, task, life, solo);
  in_flight_.Claimed(flight);
  Land({flight, Settle({}, task, outcome, 0)});
}

void ShardMill::Adopted(std::vector<Task> tasks, const std::shared_ptr<Standing>& life) {
  parts_.counters.adopted.Add(tasks.size());
  for (Task& task : tasks) {
    // Back to waiting by the settler: the scan claims it in its turn, with all the checks of a claim.
    parts_.gate.EnterClaimed();
    LandAtOnce(task, life, GivenBack(), false);
  }
}

void ShardMill::Rescued(std::size_t count) {
  parts_.counters.rescued.Add(count);
  scanner_.Wake();
}

void ShardMill::GiveBack(std::vector<FlightPtr> flights) {
  for (FlightPtr& flight : flights) {
    Settlement settlement = Settle({}, flight->task, GivenBack(), 0);
    Land({std::move(flight), std::move(settlement)});
  }
}

void ShardMill::GiveBackParked() {
  std::vector<FlightPtr> parked;
  {
    MutexLock lock(mutex_);
    parked.swap(parked_);
  }
  GiveBack(std::move(parked));
}

void ShardMill::Park(FlightPtr flight) {
  if (stop_asked_.load()) {
    GiveBack({std::move(flight)});
    return;
  }
  if (!flight->standing->Alive()) {
    Drop(flight);
    return;
  }
  MutexLock lock(mutex_);
  parked_.push_back(std::move(flight));
}

// After each beat, and after a death: what is parked starts again, or is others' business now.
void ShardMill::Unpark(const std::shared_ptr<Standing>&) {
  std::vector<FlightPtr> parked;
  {
    MutexLock lock(mutex_);
    parked.swap(parked_);
  }
  for (FlightPtr& flight : parked) {
    if (!flight->standing->Alive()) {
      Drop(flight);
    } else if (Lane* lane = parts_.lanes.For(flight->task.handler)) {
      lane->Push({std::move(flight)});
    }
  }
}

void ShardMill::Drop(const FlightPtr& flight) {
  LeaveGate(*flight);
  in_flight_.Leave(flight->task.key);
}

void ShardMill::LeaveGate(const Flight& flight) {
  if (flight.solo) {
    parts_.gate.LeaveAlone();
    scanner_.Wake();
  } else {
    parts_.gate.Leave();
  }
}

void ShardMill::Land(Landing landing) {
  landing.flight->running.store(false, std::memory_order_relaxed);
  LeaveGate(*landing.flight);
  settler_.Land(std::move(landing));
}

void ShardMill::Settled(const Flight& flight, const Settlement& settlement) {
  LeaveGate(flight);
  in_flight_.Leave(flight.task.key);
  Count(settlement);
}

void ShardMill::Known(const Landing& landing, SettleVerdict verdict) {
  if (in_flight_.Leave(landing.flight->task.key) == InFlight::kMost / 2) scanner_.Wake();
  if (verdict == SettleVerdict::Refused) {
    parts_.counters.refused.Add();
    LogWarning("a late settle was refused: the attempt is no longer this worker's",
               {{"task", ToString(TaskName{parts_.name, landing.settlement.key})},
                {"attempt", landing.settlement.attempt}});
    return;
  }
  Count(landing.settlement);
}

void ShardMill::Count(const Settlement& settlement) {
  MillCounters& counters = parts_.counters;
  switch (settlement.to) {
    case Settlement::To::Succeeded:
      counters.succeeded.Add();
      break;
    case Settlement::To::Cancelled:
      counters.cancelled.Add();
      break;
    case Settlement::To::Failed:
      counters.failed.Add();
      break;
    case Settlement::To::Waiting:
      (settlement.failed_attempt ? counters.retried : counters.returned).Add();
      break;
  }
}

}  // namespace millrace
