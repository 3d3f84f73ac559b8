#include "framework/mill/attempts.h"

#include <utility>

#include "framework/base/log.h"
#include "framework/mill/attempt.h"

namespace millrace::engine {

AttemptPtr Attempts::Make(Task task, const std::shared_ptr<Lease>& life, bool solo) {
  claims_.Add();
  parts_.counters.claimed.Add();
  std::shared_ptr<AttemptHost> host(keeper_.lock(), this);
  auto attempt = std::make_shared<Attempt>(std::move(host), parts_.shard, std::move(task), life, solo);
  in_flight_.Claimed(attempt);
  return attempt;
}

void Attempts::Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo) {
  std::map<std::string, std::vector<AttemptPtr>> by_type;
  for (Task& task : tasks) {
    AttemptPtr attempt = Make(std::move(task), life, solo);
    by_type[attempt->task.handler].push_back(std::move(attempt));
  }
  for (auto& [type, attempts] : by_type) {
    if (parts_.runner.Take(type, attempts)) continue;
    for (const AttemptPtr& attempt : attempts) GiveBack(attempt);
  }
}

void Attempts::EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, const Outcome& outcome,
                         bool solo) {
  Ended({Make(task, life, solo), Settle({}, task, outcome, 0)});
}

void Attempts::Adopted(const std::vector<Task>& tasks, const std::shared_ptr<Lease>& life) {
  parts_.counters.adopted.Add(tasks.size());
  for (const Task& task : tasks) {
    // Back to waiting by the settler: the scan claims it in its turn, with all the checks of a claim.
    parts_.gate.EnterClaimed();
    EndAtOnce(task, life, GivenBack(), false);
  }
}

StartDecision Attempts::StartDecisionOf(const Attempt& attempt) const {
  if (!attempt.lease->Alive()) return StartDecision::Lost;
  const Task& task = attempt.task;
  if (retired_.load() || parts_.scope.Paused(task.key.table, task.slice, task.handler)) {
    return StartDecision::Withdrawn;
  }
  return parts_.scope.Owns(task.key.table, task.slice, task.handler) ? StartDecision::Start
                                                                     : StartDecision::Moved;
}

std::vector<AttemptPtr> Attempts::TakeParked() {
  MutexLock lock(mutex_);
  return std::exchange(parked_, {});
}

void Attempts::GiveBackParked() {
  for (const AttemptPtr& attempt : TakeParked()) {
    parts_.gate.EnterClaimed();
    GiveBack(attempt);
  }
}

// A parked task does not run: nobody who wants to be alone waits for it.
void Attempts::Park(AttemptPtr attempt) {
  if (stop_asked_.load() || attempt->solo || !attempt->lease->Alive()) {
    GiveBack(attempt);
    return;
  }
  LeaveGate(*attempt);
  MutexLock lock(mutex_);
  parked_.push_back(std::move(attempt));
}

void Attempts::Unpark() {
  for (AttemptPtr& attempt : TakeParked()) {
    const bool may_run = parts_.gate.EnterClaimed() && attempt->lease->Alive();
    std::vector<AttemptPtr> one{attempt};
    if (!may_run || !parts_.runner.Take(attempt->task.handler, one)) GiveBack(attempt);
  }
}

void Attempts::Drop(Attempt& attempt) {
  attempt.state.store(AttemptState::Known);
  LeaveGate(attempt);
  LeaveHand(attempt.task.key);
}

void Attempts::LeaveHand(const TaskKey& key) {
  if (in_flight_.Leave(key)) RoomAgain();
}

void Attempts::LeaveGate(const Attempt& attempt) {
  if (attempt.solo) {
    parts_.gate.LeaveAlone();
    RoomAgain();  // for the next of them, or for all the others
  } else {
    parts_.gate.Leave();
  }
}

void Attempts::Ended(AttemptResult result) {
  result.attempt->state.store(AttemptState::Concluding);
  LeaveGate(*result.attempt);
  result.settlement.started = result.attempt->started.load();
  parts_.settler.Ended(std::move(result));
}

void Attempts::Settled(Attempt& attempt, const Settlement& settlement) {
  attempt.state.store(AttemptState::Known);
  LeaveGate(attempt);
  LeaveHand(attempt.task.key);
  Count(settlement);
}

void Attempts::Known(Attempt& attempt, const Settlement& settlement, SettleVerdict verdict) {
  attempt.state.store(AttemptState::Known);
  LeaveHand(attempt.task.key);
  if (verdict != SettleVerdict::Refused) {
    Count(settlement);
    return;
  }
  parts_.counters.refused.Add();
  // A replica in the database's place may remember an earlier attempt of this life as the one that runs.
  attempt.lease->DoubtWhatRuns();
  LogWarning("a late settle was refused: the attempt is no longer this worker's",
             {{"task", ToString(TaskName{parts_.shard, settlement.key})}, {"attempt", settlement.attempt}});
}

void Attempts::Count(const Settlement& settlement) {
  settles_.Add();
  parts_.counters.Count(settlement);
}

void Attempts::Close() {
  TakeParked();
  in_flight_.Clear();
  over_.store(true);
}

void Attempts::SaveProgress(const Attempt& attempt, std::string progress) {
  MutexLock lock(mutex_);
  progress_.insert_or_assign(attempt.task.key,
                             TaskProgress{attempt.task.key, attempt.task.attempt, std::move(progress)});
}

void Attempts::Log(const Attempt& attempt, LogLevel level, std::string_view message) {
  engine::Log(
      level, message,
      {{"task", ToString(TaskName{attempt.shard, attempt.task.key})}, {"handler", attempt.task.handler}});
}

std::map<TaskKey, TaskProgress> Attempts::TakeProgress() {
  MutexLock lock(mutex_);
  return std::exchange(progress_, {});
}

void Attempts::KeepProgress(std::map<TaskKey, TaskProgress> progress) {
  MutexLock lock(mutex_);
  progress_.merge(progress);
}

}  // namespace millrace::engine
