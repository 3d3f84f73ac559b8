// The mill of one shard: its heartbeat, scanner, settler and tender, each with a thread and a connection of
// its own, so that a slow or dead shard holds up nobody else.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/store/store.h"
#include "framework/worker/blocking_ports.h"
#include "framework/worker/heartbeat.h"
#include "framework/worker/mill_counters.h"
#include "framework/worker/ports.h"
#include "framework/worker/scanner.h"
#include "framework/worker/tender.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// What the mills of a worker share. Outlives them.
struct MillParts {
  const Clock& clock;
  SliceSource& slices;
  PauseSource& pauses;
  LaneSet& lanes;
  SoloGate& gate;
  MemoryBudget& memory;
  FlightRecorder& recorder;
  DeadRecorders& dead_recorders;
  MillCounters& counters;
  const LiveEngine& engine;
  Incarnation self;
  bool watch_idle = false;
};

// Thread-safe. Its attempts keep it, and with it its store, until the last of them has ended.
class ShardMill final : public AttemptHost,
                        public ScannerHost,
                        public TenderHost,
                        public std::enable_shared_from_this<ShardMill> {
 public:
  ShardMill(const MillParts& parts, std::string shard, std::shared_ptr<Store> store);
  ~ShardMill() override;

  const std::shared_ptr<Store>& store() const { return store_; }

  // Unavailable: a thread can't be started, and the mill has ended.
  engine::Status Start();
  // Asks what is its own and what is paused. True if that is new: what is queued may have to go back.
  bool Follow();
  // The shard is served no more: nothing is claimed or started, what is queued goes back.
  void Retire();
  bool Idle() const { return scanner_.Idle(); }
  // Once it claims nothing more: nothing is in hand.
  bool Empty() const { return scanner_.Quiet() && in_flight_.Empty(); }
  ShardStatus Status() const;
  std::vector<std::string> PauseNames() const { return remit_.PauseNames(); }

  void StopClaiming() { scanner_.StopClaiming(); }
  // Handlers are asked to end now.
  void AskToStop() { stop_asked_.store(true); }
  void GiveBackParked();
  // Ends the threads, and signs off in the shard; RequestEnd asks them to. What is still in hand is left to
  // whoever finds it.
  void RequestEnd();
  void End();

  // AttemptHost
  bool StopAsked() const override { return stop_asked_.load(std::memory_order_relaxed); }
  StartDecision StartDecisionOf(const Attempt& attempt) const override;
  bool Over() const override { return over_.load(); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override;
  void SaveProgress(const Attempt& attempt, std::string progress) override;
  void Log(const Attempt& attempt, LogLevel level, std::string_view message) override;
  void RoomAgain() override { scanner_.RoomAgain(); }
  void Park(AttemptPtr attempt) override;
  void Ended(AttemptResult result) override;
  void Settled(const Attempt& attempt, const Settlement& settlement) override;
  void Drop(const Attempt& attempt) override;

  // ScannerHost, TenderHost
  std::shared_ptr<Lease> Life() const override;
  const AttemptHost& LaneHost() const override { return *this; }
  void PausesChanged() override { changed_.store(true); }
  std::shared_ptr<const std::set<std::string>> LivePeers() const override { return heartbeat_.LivePeers(); }
  std::shared_ptr<const DueMap> LatestMap() const override { return scanner_.LatestMap(); }
  std::vector<Incarnation> Peers() const override { return heartbeat_.Peers(); }
  void Buried(const std::string& incarnation) override { heartbeat_.Buried(incarnation); }
  void EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, Outcome outcome, bool solo) override;
  void Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo) override;
  void FoundDead() override { heartbeat_.BeatNow(); }
  void Adopted(std::vector<Task> tasks, const std::shared_ptr<Lease>& life) override;
  void Rescued(std::size_t count) override;

 private:
  Heartbeat::Events Events();
  void SetLife(std::shared_ptr<Lease> life);
  AttemptPtr Claimed(Task task, const std::shared_ptr<Lease>& life, bool solo);
  void Known(const Attempt& attempt, const Settlement& settlement, SettleVerdict verdict);
  void LeaveGate(const Attempt& attempt);
  void LeaveHand(const TaskKey& key);
  std::vector<AttemptPtr> TakeParked();
  void Unpark();

  const MillParts parts_;
  const std::string shard_;
  const std::shared_ptr<Store> store_;
  Remit remit_;
  const std::unique_ptr<CoverageWatch> coverage_;  // where its numbers were given by hand
  InFlight in_flight_;
  Counter claims_;
  Counter settles_;
  std::atomic<bool> changed_{false};
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> retired_{false};
  std::atomic<bool> over_{false};
  mutable Mutex mutex_;
  std::shared_ptr<Lease> life_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<AttemptPtr> parked_ MILLRACE_GUARDED_BY(mutex_);

  BlockingSettle settle_port_;
  Settler settler_;
  Thread settle_thread_;
  Scanner scanner_;
  Tender tender_;
  Heartbeat heartbeat_;
};

}  // namespace millrace::engine
