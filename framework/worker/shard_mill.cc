#include "framework/worker/shard_mill.h"

#include <map>

#include "framework/base/log.h"
#include "framework/worker/engine_outcome.h"

namespace millrace::engine {

ShardMill::ShardMill(const MillParts& parts, std::string shard, std::shared_ptr<Store> store)
    : parts_(parts),
      shard_(std::move(shard)),
      store_(std::move(store)),
      remit_(shard_),
      coverage_(parts_.self.slices.empty()
                    ? nullptr
                    : std::make_unique<CoverageWatch>(parts_.clock, shard_, store_->OpenSchema())),
      in_flight_(parts_.memory),
      settler_(store_->OpenTasks(), parts_.engine,
               [this](const Landing& landing, SettleVerdict verdict) { Known(landing, verdict); }),
      scanner_({parts_.clock, shard_, *this, remit_, parts_.lanes, in_flight_, parts_.gate, parts_.engine,
                parts_.watch_idle},
               store_->OpenTasks(), store_->OpenDesk()),
      tender_(
          {parts_.clock, shard_, store_->Describe(), *this, in_flight_, parts_.dead_recorders, parts_.engine},
          store_->OpenTasks(), store_->OpenIncarnations()),
      heartbeat_(parts_.clock, store_->OpenIncarnations(), store_->Describe(), parts_.self, parts_.engine,
                 parts_.recorder, parts_.counters.marked_dead, Events()) {}

ShardMill::~ShardMill() { End(); }

engine::Status ShardMill::Start() {
  Follow();
  engine::Status started = settler_.Start();
  if (started) started = heartbeat_.Start();
  if (started) started = scanner_.Start();
  if (started) started = tender_.Start();
  if (!started) End();
  return started;
}

bool ShardMill::Follow() {
  const bool followed = remit_.Follow(parts_.slices.Slices(shard_), parts_.pauses.Paused());
  if (followed) scanner_.Wake();
  return changed_.exchange(false) || followed;
}

void ShardMill::Retire() {
  retired_.store(true);
  scanner_.StopClaiming();
}

void ShardMill::RequestEnd() {
  scanner_.RequestStop();
  tender_.RequestStop();
  settler_.RequestStop();
  heartbeat_.RequestStop(true);
}

void ShardMill::End() {
  RequestEnd();
  scanner_.Stop();
  tender_.Stop();
  settler_.Stop();
  heartbeat_.Stop(true);
  TakeParked();
  in_flight_.Clear();
  over_.store(true);
}

Heartbeat::Events ShardMill::Events() {
  return {[this](std::shared_ptr<Standing> life) {
            SetLife(std::move(life));
            scanner_.Wake();
          },
          [this](std::shared_ptr<Standing>) { Unpark(); },
          [this](std::shared_ptr<Standing>) {
            SetLife(nullptr);
            changed_.store(true);  // what is queued was claimed by the dead life
            Unpark();
          },
          [this] { tender_.Wake(); }};
}

void ShardMill::SetLife(std::shared_ptr<Standing> life) {
  MutexLock lock(mutex_);
  life_ = std::move(life);
}

std::shared_ptr<Standing> ShardMill::Life() const {
  MutexLock lock(mutex_);
  return life_;
}

Fate ShardMill::FateOf(const Flight& flight) const {
  if (!flight.standing->Alive()) return Fate::Lost;
  const Task& task = flight.task;
  if (retired_.load() || remit_.Paused(task.key.table, task.slice, task.handler)) return Fate::Withdrawn;
  return remit_.Owns(task.key.table, task.slice, task.handler) ? Fate::Start : Fate::Moved;
}

ShardStatus ShardMill::Status() const {
  const std::shared_ptr<Standing> life = Life();
  const ScanView view = scanner_.View();
  const std::string trouble = heartbeat_.Trouble();
  ShardStatus status;
  status.shard = shard_;
  status.incarnation = life ? life->incarnation() : "";
  status.error = trouble.empty() ? view.error : trouble;
  status.reachable = life && status.error.empty();
  status.claims = claims_.Value();
  status.settles = settles_.Value();
  status.lag = view.lag;
  status.map_cost = view.map_cost;
  status.poll = view.poll;
  status.unrunnable = view.unrunnable;
  if (coverage_) status.uncovered = coverage_->Uncovered();
  status.retiring = retired_.load();
  return status;
}

std::unique_ptr<TaskTransaction> ShardMill::OpenTransaction(Micros limit) {
  return store_->OpenTransaction(limit);
}

void ShardMill::SaveProgress(const Flight& flight, std::string progress) {
  tender_.SaveProgress({flight.task.key, flight.task.attempt, std::move(progress)});
}

FlightPtr ShardMill::Claimed(Task task, const std::shared_ptr<Standing>& life, bool solo) {
  claims_.Add();
  parts_.counters.claimed.Add();
  auto flight = std::make_shared<Flight>(shared_from_this(), shard_, std::move(task), life, solo);
  in_flight_.Claimed(flight);
  return flight;
}

void ShardMill::Dispatch(std::vector<Task> tasks, const std::shared_ptr<Standing>& life, bool solo) {
  std::map<std::string, std::vector<FlightPtr>> by_type;
  for (Task& task : tasks) {
    FlightPtr flight = Claimed(std::move(task), life, solo);
    by_type[flight->task.handler].push_back(std::move(flight));
  }
  for (auto& [type, flights] : by_type) {
    if (Lane* lane = parts_.lanes.For(type)) {
      lane->Push(std::move(flights));
    } else {
      for (const FlightPtr& flight : flights) engine::GiveBack(flight);
    }
  }
}

void ShardMill::LandAtOnce(const Task& task, const std::shared_ptr<Standing>& life, Outcome outcome,
                           bool solo) {
  Land({Claimed(task, life, solo), Settle({}, task, outcome, 0)});
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

std::vector<FlightPtr> ShardMill::TakeParked() {
  MutexLock lock(mutex_);
  return std::exchange(parked_, {});
}

void ShardMill::GiveBackParked() {
  for (const FlightPtr& flight : TakeParked()) {
    parts_.gate.EnterClaimed();
    engine::GiveBack(flight);
  }
}

// A parked task does not run: nobody who wants to be alone waits for it.
void ShardMill::Park(FlightPtr flight) {
  if (stop_asked_.load() || flight->solo || !flight->standing->Alive()) {
    engine::GiveBack(flight);
    return;
  }
  LeaveGate(*flight);
  MutexLock lock(mutex_);
  parked_.push_back(std::move(flight));
}

// After each beat, and after a death: what is parked starts again, or is others' business now.
void ShardMill::Unpark() {
  for (FlightPtr& flight : TakeParked()) {
    const bool may_run = parts_.gate.EnterClaimed() && flight->standing->Alive();
    Lane* lane = may_run ? parts_.lanes.For(flight->task.handler) : nullptr;
    if (lane != nullptr) {
      lane->Push({std::move(flight)});
    } else {
      engine::GiveBack(flight);
    }
  }
}

void ShardMill::Drop(const Flight& flight) {
  LeaveGate(flight);
  LeaveHand(flight.task.key);
}

void ShardMill::LeaveHand(const TaskKey& key) {
  if (in_flight_.Leave(key)) scanner_.RoomAgain();
}

void ShardMill::LeaveGate(const Flight& flight) {
  if (flight.solo) {
    parts_.gate.LeaveAlone();
    scanner_.RoomAgain();  // for the next of them, or for all the others
  } else {
    parts_.gate.Leave();
  }
}

void ShardMill::Land(Landing landing) {
  LeaveGate(*landing.flight);
  landing.settlement.started = landing.flight->started.load();
  settler_.Land(std::move(landing));
}

void ShardMill::Settled(const Flight& flight, const Settlement& settlement) {
  LeaveGate(flight);
  LeaveHand(flight.task.key);
  settles_.Add();
  parts_.counters.Count(settlement);
}

void ShardMill::Known(const Landing& landing, SettleVerdict verdict) {
  LeaveHand(landing.flight->task.key);
  if (verdict == SettleVerdict::Refused) {
    parts_.counters.refused.Add();
    // A replica in the database's place may remember an earlier attempt of this life as the one that runs.
    landing.flight->standing->DoubtWhatRuns();
    tender_.Wake();
    LogWarning("a late settle was refused: the attempt is no longer this worker's",
               {{"task", ToString(TaskName{shard_, landing.settlement.key})},
                {"attempt", landing.settlement.attempt}});
    return;
  }
  settles_.Add();
  parts_.counters.Count(landing.settlement);
}

}  // namespace millrace::engine
