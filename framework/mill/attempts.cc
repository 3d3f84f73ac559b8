#include "framework/mill/attempts.h"

#include <utility>

#include "framework/base/log.h"
#include "framework/mill/attempt.h"
#include "framework/mill/permits.h"

namespace millrace::engine {

std::vector<AttemptPtr> Attempts::Make(std::vector<Task> tasks, const std::shared_ptr<Lease>& life,
                                       bool solo) {
  const std::shared_ptr<AttemptHost> host(keeper_.lock(), this);
  std::vector<AttemptPtr> attempts;
  attempts.reserve(tasks.size());
  const std::uint64_t gates_at = parts_.admission.Version();  // read before the gates
  TypeCounters* type = nullptr;  // of the one before: neighbours are of one type, mostly
  std::shared_ptr<TypeGate> gate;
  for (Task& task : tasks) {
    if (type == nullptr || attempts.back()->task.handler != task.handler) {
      type = &parts_.counters.Of(parts_.shard, task.handler);
      gate = parts_.admission.Of(task.handler);
    }
    type->claimed.Add();
    attempts.push_back(std::make_shared<Attempt>(host, parts_.shard, std::move(task), life, solo));
    attempts.back()->counters = type;
    attempts.back()->gate_at = gates_at;
    if (gate) {
      gate->Claimed(1);
      attempts.back()->gate = gate;
    }
  }
  parts_.counters.claimed.Add(attempts.size());
  in_flight_.Claimed(attempts);
  parts_.settler.Coming(static_cast<std::int64_t>(attempts.size()));
  return attempts;
}

// Those of one claim are of one table and handler, mostly, and of few slices: the scope is asked once for
// each.
void Attempts::LookUpScope(std::span<const AttemptPtr> attempts) const {
  const std::uint64_t version = parts_.scope.Version();
  const Task* before = nullptr;
  std::unordered_map<std::uint32_t, bool> may_start;  // by the slice
  for (const AttemptPtr& attempt : attempts) {
    const Task& task = attempt->task;
    if (before != nullptr && (before->handler != task.handler || before->key.table != task.key.table))
      may_start.clear();
    before = &task;
    const auto [slice, is_new] = may_start.try_emplace(task.slice);
    if (is_new) {
      slice->second = parts_.scope.Owns(task.key.table, task.slice, task.handler) &&
                      !parts_.scope.Paused(task.key.table, task.slice, task.handler);
    }
    attempt->may_start_at = slice->second ? version : 0;
  }
}

void Attempts::Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo) {
  std::vector<AttemptPtr> made = Make(std::move(tasks), life, solo);
  LookUpScope(made);
  std::map<std::string, std::vector<AttemptPtr>> by_type;
  auto type = by_type.end();
  for (AttemptPtr& attempt : made) {
    // Paused since it was looked for; what has moved starts wherever it can first.
    if (attempt->may_start_at == 0 && StartDecisionOf(*attempt) == StartDecision::Withdrawn) {
      GiveBack(attempt);
      continue;
    }
    if (type == by_type.end() || type->first != attempt->task.handler) {
      type = by_type.try_emplace(attempt->task.handler).first;
    }
    type->second.push_back(std::move(attempt));
  }
  for (auto& [type, attempts] : by_type) {
    if (attempts.front()->gate && parts_.admission.permits() != nullptr &&
        parts_.admission.permits()->Take(type, attempts)) {
      continue;
    }
    if (parts_.runner.Take(type, attempts)) continue;
    for (const AttemptPtr& attempt : attempts) GiveBack(attempt);
  }
}

void Attempts::EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, const Outcome& outcome,
                         bool solo) {
  Ended({Make({task}, life, solo).front(), Settle({}, task, outcome, 0)});
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
  const StartDecision decision = DecisionBeforePermit(attempt);
  if (decision == StartDecision::Lost || !attempt.home) return decision;
  const bool kept =
      attempt.stop_by.load(std::memory_order_relaxed) == 0 && attempt.home->KeepsPermits(parts_.clock.Now());
  return kept ? decision : StartDecision::Withdrawn;
}

StartDecision Attempts::DecisionBeforePermit(const Attempt& attempt) const {
  if (!attempt.lease->Alive()) return StartDecision::Lost;
  const Task& task = attempt.task;
  if (retired_.load()) return StartDecision::Withdrawn;
  if (!attempt.has_start.load(std::memory_order_relaxed) && !attempt.pass.Given()) {
    const std::shared_ptr<TypeGate> gate = GateOf(attempt);
    if (gate != attempt.gate ||
        (gate && (gate->Withholds() || !gate->Open(parts_.clock.Now(), parts_.clock.WallNow()))))
      return StartDecision::Withdrawn;
  }
  if (attempt.may_start_at == parts_.scope.Version()) return StartDecision::Start;
  if (parts_.scope.Paused(task.key.table, task.slice, task.handler)) {
    return StartDecision::Withdrawn;
  }
  return parts_.scope.Owns(task.key.table, task.slice, task.handler) ? StartDecision::Start
                                                                     : StartDecision::Moved;
}

std::shared_ptr<TypeGate> Attempts::GateOf(const Attempt& attempt) const {
  return attempt.gate_at == parts_.admission.Version() ? attempt.gate
                                                       : parts_.admission.Of(attempt.task.handler);
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

// A parked task does not run: nobody who wants to be alone, or needs its permit, waits for it.
void Attempts::Park(AttemptPtr attempt) {
  if (stop_asked_.load() || attempt->solo || attempt->home || !attempt->lease->Alive()) {
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
  parts_.settler.Gone(1);
  LeaveGate(attempt);
  LeaveHand(attempt.task.key);
  ForgetProgress(attempt);
  LeavePolicies(attempt);
}

void Attempts::LeavePolicies(Attempt& attempt) {
  if (!attempt.gate) return;
  if (BreakerPolicy* breaker = attempt.gate->breaker()) breaker->Gone(attempt.pass, parts_.clock.Now());
  if (attempt.has_start.load(std::memory_order_relaxed)) {
    StartEnd end;
    end.called = attempt.started.load(std::memory_order_relaxed);
    end.took = Micros(std::max<Micros::rep>(attempt.ran.load(std::memory_order_relaxed), 0));
    end.permit = attempt.home != nullptr;
    attempt.gate->Ended(end, parts_.clock.Now());
  } else {
    attempt.gate->NeverStarted(1);
  }
  if (attempt.home) parts_.admission.permits()->Ended(attempt);  // the next may start
}

void Attempts::LeaveHand(const TaskKey& key) {
  const TaskKey* const one = &key;
  if (in_flight_.Leave(std::span(&one, 1))) RoomAgain();
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
  LeaveGate(*result.attempt);
  result.settlement.started = result.attempt->started.load();
  result.settlement.progress = UnsavedProgress(*result.attempt);
  ForgetProgress(*result.attempt);
  parts_.settler.Ended(std::move(result));
}

void Attempts::Settled(Attempt& attempt, const Settlement& settlement) {
  parts_.settler.Gone(1);
  LeaveGate(attempt);
  LeaveHand(attempt.task.key);
  ForgetProgress(attempt);
  LeavePolicies(attempt);
  Count(attempt, settlement);
  NoteIfReturned(attempt, settlement);
}

void Attempts::Known(std::span<const SettledAttempt> settled) {
  std::vector<const TaskKey*> keys;
  keys.reserve(settled.size());
  for (const auto& [attempt, settlement, verdict] : settled) {
    keys.push_back(&attempt->task.key);
    LeavePolicies(*attempt);
    if (verdict == SettleVerdict::Refused) {
      NoteRefused(*attempt, *settlement);
      continue;
    }
    Count(*attempt, *settlement);
    if (settlement->to != Settlement::To::Waiting || settlement->started) continue;
    MutexLock lock(mutex_);
    GoneBack& back = given_back_[attempt->task.handler];
    ++back.rows;
    back.due = std::max(back.due, parts_.clock.Now() + settlement->delay.value_or(Micros(0)));
  }
  const bool room_again = in_flight_.Leave(keys);
  // Not before: whoever looks for them passes what is in hand.
  for (const auto& [attempt, settlement, verdict] : settled) {
    if (verdict != SettleVerdict::Refused) NoteIfReturned(*attempt, *settlement);
  }
  if (room_again) RoomAgain();
}

// No delay leads to before the due time that it had.
void Attempts::NoteIfReturned(const Attempt& attempt, const Settlement& settlement) {
  if (settlement.to != Settlement::To::Waiting) return;
  const Task& task = attempt.task;
  const std::uint32_t failures = task.failures + (settlement.failed_attempt ? 1 : 0);
  NoteReturned({task.key.table, task.slice, task.handler, Urgency(task.priority, failures)},
               settlement.run_at.value_or(task.run_at));
}

void Attempts::NoteReturned(const DueGroup& group, WallTime due) {
  MutexLock lock(mutex_);
  const auto noted = returned_.emplace(GroupKeyOf(group), due).first;
  noted->second = std::min(noted->second, due);
}

Attempts::Returned Attempts::TakeReturned(const std::function<bool(const DueGroup&)>& of) {
  Returned taken;
  MutexLock lock(mutex_);
  for (auto noted = returned_.begin(); noted != returned_.end();) {
    const auto next = std::next(noted);
    if (of(GroupOf(noted->first, noted->second))) taken.insert(returned_.extract(noted));
    noted = next;
  }
  return taken;
}

std::map<std::string, Attempts::GoneBack> Attempts::TakeGivenBack() {
  MutexLock lock(mutex_);
  return std::exchange(given_back_, {});
}

// Its row is others' business; what it took of the worker's and the cluster's limits is not theirs to give
// back. Its id stays: nothing of it is claimed in this life.
void Attempts::Dropped(Attempt& attempt) { LeavePolicies(attempt); }

void Attempts::NoteRefused(const Attempt& attempt, const Settlement& settlement) {
  parts_.counters.refused.Add();
  // A replica in the database's place may remember an earlier attempt of this life as the one that runs.
  attempt.lease->DoubtWhatRuns();
  LogWarning("a late settle was refused: the attempt is no longer this worker's",
             {{"task", ToString(TaskName{parts_.shard, settlement.key})}, {"attempt", settlement.attempt}});
}

TypeCounters& Attempts::CountersOf(const Attempt& attempt) const {
  if (attempt.counters != nullptr) return *attempt.counters;
  return parts_.counters.Of(parts_.shard, attempt.task.handler);
}

// A replica's clock, or a due time that was changed after the claim, may be a little ahead: that is no wait.
AttemptTimes Attempts::TimesOf(const Attempt& attempt) const {
  AttemptTimes times;
  const Micros began(attempt.began.load(std::memory_order_relaxed));
  if (began == Micros(0)) return times;
  const Micros ahead(clock_ahead_.load(std::memory_order_relaxed));
  if (ahead != Micros(0)) times.waited = began + ahead - attempt.task.run_at.time_since_epoch();
  const Micros ran(attempt.ran.load(std::memory_order_relaxed));
  if (ran >= Micros(0)) times.ran = ran;
  return times;
}

void Attempts::Count(const Attempt& attempt, const Settlement& settlement) {
  parts_.counters.Count(CountersOf(attempt), settlement, TimesOf(attempt));
}

void Attempts::Close() {
  for (const AttemptPtr& attempt : TakeParked()) Dropped(*attempt);
  in_flight_.Clear();
  over_.store(true);
}

void Attempts::SaveProgress(Attempt& attempt, std::string progress) {
  attempt.saves.store(true);
  TaskProgress newest{attempt.task.key, attempt.task.attempt, std::move(progress)};
  MutexLock lock(mutex_);
  const auto [place, is_first] = progress_.try_emplace(newest.key, newest);
  if (!is_first && place->second.attempt <= newest.attempt) place->second = std::move(newest);
}

std::optional<std::string> Attempts::UnsavedProgress(const Attempt& attempt) const {
  if (!attempt.saves.load()) return std::nullopt;
  MutexLock lock(mutex_);
  const auto place = progress_.find(attempt.task.key);
  if (place == progress_.end() || place->second.attempt != attempt.task.attempt) return std::nullopt;
  return place->second.progress;
}

void Attempts::ForgetProgress(const Attempt& attempt) {
  if (!attempt.saves.load()) return;
  MutexLock lock(mutex_);
  const auto place = progress_.find(attempt.task.key);
  if (place != progress_.end() && place->second.attempt == attempt.task.attempt) progress_.erase(place);
}

std::vector<TaskProgress> Attempts::ProgressToWrite() const {
  MutexLock lock(mutex_);
  std::vector<TaskProgress> progress;
  for (const auto& [key, newest] : progress_) progress.push_back(newest);
  return progress;
}

void Attempts::Wrote(std::span<const TaskProgress> progress) {
  MutexLock lock(mutex_);
  for (const TaskProgress& written : progress) {
    const auto place = progress_.find(written.key);
    if (place != progress_.end() && place->second == written) progress_.erase(place);
  }
}

void Attempts::Log(const Attempt& attempt, LogLevel level, std::string_view message) {
  engine::Log(
      level, message,
      {{"task", ToString(TaskName{attempt.shard, attempt.task.key})}, {"handler", attempt.task.handler}});
}

}  // namespace millrace::engine
