// The attempts of one shard in this worker's hands, from their claim until the outcome of their settle is
// known: made here, handed to the run stage, and ended through here, whoever ends them.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/mill/attempt.h"
#include "framework/mill/in_flight.h"
#include "framework/mill/mill_counters.h"
#include "framework/mill/scope.h"
#include "framework/mill/settle.h"
#include "framework/mill/solo_gate.h"

namespace millrace::engine {

// Thread-safe.
class Attempts final : public AttemptHost {
 public:
  struct Parts {
    const std::string& shard;
    const Scope& scope;
    Runner& runner;
    SoloGate& gate;
    MemoryBudget& memory;
    MillCounters& counters;
    Settler& settler;
    StrandPort& scan;  // woken where there is room again
    std::function<std::unique_ptr<TaskTransaction>(Micros limit)> open_transaction;
  };

  explicit Attempts(Parts parts) : parts_(std::move(parts)), in_flight_(parts_.memory) {}

  // What lives as long as an attempt of the shard does: a thread that a handler has not given back still
  // asks. Once, before the first claim.
  void KeptBy(std::weak_ptr<void> keeper) { keeper_ = std::move(keeper); }

  InFlight& in_flight() { return in_flight_; }
  const InFlight& in_flight() const { return in_flight_; }

  // Claimed tasks, inside the gate and the in-flight set, on their way to the run stage. `solo`: one that
  // runs alone.
  void Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo);
  // Likewise, but it ends at once with this outcome.
  void EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, const Outcome& outcome, bool solo);
  // Rows of ours whose claim's reply was lost; they are in the in-flight set.
  void Adopted(const std::vector<Task>& tasks, const std::shared_ptr<Lease>& life);
  // What was written of an attempt is known.
  void Known(Attempt& attempt, const Settlement& settlement, SettleVerdict verdict);

  // After each beat, and after a death: what is parked starts again, or is others' business now.
  void Unpark();
  void GiveBackParked();

  // Handlers are asked to end now.
  void AskToStop() { stop_asked_.store(true); }
  // The shard is served no more: nothing is started.
  void Retire() { retired_.store(true); }
  bool Retired() const { return retired_.load(); }
  // Nothing of the shard is in hand any more, whatever it was.
  void Close();

  std::uint64_t Claims() const { return claims_.Value(); }
  std::uint64_t Settles() const { return settles_.Value(); }

  // Progress that is to be saved, the newest for each task. What could not be saved is kept, unless there is
  // newer.
  std::map<TaskKey, TaskProgress> TakeProgress();
  void KeepProgress(std::map<TaskKey, TaskProgress> progress);

  bool StopAsked() const override { return stop_asked_.load(std::memory_order_relaxed); }
  StartDecision StartDecisionOf(const Attempt& attempt) const override;
  bool Over() const override { return over_.load(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return parts_.open_transaction(limit);
  }
  void SaveProgress(const Attempt& attempt, std::string progress) override;
  void Log(const Attempt& attempt, LogLevel level, std::string_view message) override;
  void RoomAgain() override { parts_.scan.Wake(); }
  void Park(AttemptPtr attempt) override;
  void Ended(AttemptResult result) override;
  void Settled(Attempt& attempt, const Settlement& settlement) override;
  void Drop(Attempt& attempt) override;

 private:
  AttemptPtr Make(Task task, const std::shared_ptr<Lease>& life, bool solo);
  void Count(const Settlement& settlement);
  void LeaveGate(const Attempt& attempt);
  void LeaveHand(const TaskKey& key);
  std::vector<AttemptPtr> TakeParked();

  const Parts parts_;
  std::weak_ptr<void> keeper_;
  InFlight in_flight_;
  Counter claims_;
  Counter settles_;
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> retired_{false};
  std::atomic<bool> over_{false};
  Mutex mutex_;
  std::vector<AttemptPtr> parked_ MILLRACE_GUARDED_BY(mutex_);
  std::map<TaskKey, TaskProgress> progress_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
