#include "framework/worker/shard_mill.h"

#include <map>

#include "framework/base/log.h"
#include "framework/mill/engine_outcome.h"

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
      settle_port_(store_->OpenTasks()),
      settler_(parts_.clock, settle_port_, parts_.engine,
               [this](const Attempt& attempt, const Settlement& settlement, SettleVerdict verdict) {
                 Known(attempt, settlement, verdict);
               }),
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
  engine::Status started = settle_thread_.Start("settle", [this] { (void)settler_.Run(); });
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
  settler_.Stop();
  heartbeat_.RequestStop(true);
}

void ShardMill::End() {
  RequestEnd();
  scanner_.Stop();
  tender_.Stop();
  settle_thread_.Join();
  heartbeat_.Stop(true);
  TakeParked();
  in_flight_.Clear();
  over_.store(true);
}

Heartbeat::Events ShardMill::Events() {
  return {[this](std::shared_ptr<Lease> life) {
            SetLife(std::move(life));
            scanner_.Wake();
          },
          [this](std::shared_ptr<Lease>) { Unpark(); },
          [this](std::shared_ptr<Lease>) {
            SetLife(nullptr);
            changed_.store(true);  // what is queued was claimed by the dead life
            Unpark();
          },
          [this] { tender_.Wake(); }};
}

void ShardMill::SetLife(std::shared_ptr<Lease> life) {
  MutexLock lock(mutex_);
  life_ = std::move(life);
}

std::shared_ptr<Lease> ShardMill::Life() const {
  MutexLock lock(mutex_);
  return life_;
}

StartDecision ShardMill::StartDecisionOf(const Attempt& attempt) const {
  if (!attempt.lease->Alive()) return StartDecision::Lost;
  const Task& task = attempt.task;
  if (retired_.load() || remit_.Paused(task.key.table, task.slice, task.handler))
    return StartDecision::Withdrawn;
  return remit_.Owns(task.key.table, task.slice, task.handler) ? StartDecision::Start : StartDecision::Moved;
}

ShardStatus ShardMill::Status() const {
  const std::shared_ptr<Lease> life = Life();
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

void ShardMill::SaveProgress(const Attempt& attempt, std::string progress) {
  tender_.SaveProgress({attempt.task.key, attempt.task.attempt, std::move(progress)});
}

void ShardMill::Log(const Attempt& attempt, LogLevel level, std::string_view message) {
  engine::Log(
      level, message,
      {{"task", ToString(TaskName{attempt.shard, attempt.task.key})}, {"handler", attempt.task.handler}});
}

AttemptPtr ShardMill::Claimed(Task task, const std::shared_ptr<Lease>& life, bool solo) {
  claims_.Add();
  parts_.counters.claimed.Add();
  auto attempt = std::make_shared<Attempt>(shared_from_this(), shard_, std::move(task), life, solo);
  in_flight_.Claimed(attempt);
  return attempt;
}

void ShardMill::Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo) {
  std::map<std::string, std::vector<AttemptPtr>> by_type;
  for (Task& task : tasks) {
    AttemptPtr attempt = Claimed(std::move(task), life, solo);
    by_type[attempt->task.handler].push_back(std::move(attempt));
  }
  for (auto& [type, attempts] : by_type) {
    if (Lane* lane = parts_.lanes.For(type)) {
      lane->Push(std::move(attempts));
    } else {
      for (const AttemptPtr& attempt : attempts) engine::GiveBack(attempt);
    }
  }
}

void ShardMill::EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, Outcome outcome, bool solo) {
  Ended({Claimed(task, life, solo), Settle({}, task, outcome, 0)});
}

void ShardMill::Adopted(std::vector<Task> tasks, const std::shared_ptr<Lease>& life) {
  parts_.counters.adopted.Add(tasks.size());
  for (Task& task : tasks) {
    // Back to waiting by the settler: the scan claims it in its turn, with all the checks of a claim.
    parts_.gate.EnterClaimed();
    EndAtOnce(task, life, GivenBack(), false);
  }
}

void ShardMill::Rescued(std::size_t count) {
  parts_.counters.rescued.Add(count);
  scanner_.Wake();
}

std::vector<AttemptPtr> ShardMill::TakeParked() {
  MutexLock lock(mutex_);
  return std::exchange(parked_, {});
}

void ShardMill::GiveBackParked() {
  for (const AttemptPtr& attempt : TakeParked()) {
    parts_.gate.EnterClaimed();
    engine::GiveBack(attempt);
  }
}

// A parked task does not run: nobody who wants to be alone waits for it.
void ShardMill::Park(AttemptPtr attempt) {
  if (stop_asked_.load() || attempt->solo || !attempt->lease->Alive()) {
    engine::GiveBack(attempt);
    return;
  }
  LeaveGate(*attempt);
  MutexLock lock(mutex_);
  parked_.push_back(std::move(attempt));
}

// After each beat, and after a death: what is parked starts again, or is others' business now.
void ShardMill::Unpark() {
  for (AttemptPtr& attempt : TakeParked()) {
    const bool may_run = parts_.gate.EnterClaimed() && attempt->lease->Alive();
    Lane* lane = may_run ? parts_.lanes.For(attempt->task.handler) : nullptr;
    if (lane != nullptr) {
      lane->Push({std::move(attempt)});
    } else {
      engine::GiveBack(attempt);
    }
  }
}

void ShardMill::Drop(const Attempt& attempt) {
  LeaveGate(attempt);
  LeaveHand(attempt.task.key);
}

void ShardMill::LeaveHand(const TaskKey& key) {
  if (in_flight_.Leave(key)) scanner_.RoomAgain();
}

void ShardMill::LeaveGate(const Attempt& attempt) {
  if (attempt.solo) {
    parts_.gate.LeaveAlone();
    scanner_.RoomAgain();  // for the next of them, or for all the others
  } else {
    parts_.gate.Leave();
  }
}

void ShardMill::Ended(AttemptResult result) {
  LeaveGate(*result.attempt);
  result.settlement.started = result.attempt->started.load();
  settler_.Ended(std::move(result));
}

void ShardMill::Settled(const Attempt& attempt, const Settlement& settlement) {
  LeaveGate(attempt);
  LeaveHand(attempt.task.key);
  settles_.Add();
  parts_.counters.Count(settlement);
}

void ShardMill::Known(const Attempt& attempt, const Settlement& settlement, SettleVerdict verdict) {
  LeaveHand(attempt.task.key);
  if (verdict == SettleVerdict::Refused) {
    parts_.counters.refused.Add();
    // A replica in the database's place may remember an earlier attempt of this life as the one that runs.
    attempt.lease->DoubtWhatRuns();
    LogWarning("a late settle was refused: the attempt is no longer this worker's",
               {{"task", ToString(TaskName{shard_, settlement.key})}, {"attempt", settlement.attempt}});
    return;
  }
  settles_.Add();
  parts_.counters.Count(settlement);
}

}  // namespace millrace::engine
