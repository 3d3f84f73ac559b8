// The mill of one shard: its heartbeat, scanner, settler and tender, each with a thread and a connection of
// its own, so that a slow or dead shard holds up nobody else.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/metrics/registry.h"
#include "framework/store/store.h"
#include "framework/worker/heartbeat.h"
#include "framework/worker/scanner.h"
#include "framework/worker/settler.h"
#include "framework/worker/tender.h"

namespace millrace {

// The counters that the mills of a worker share.
struct MillCounters {
  explicit MillCounters(Registry& registry);
  Counter& claimed;
  Counter& succeeded;
  Counter& cancelled;
  Counter& failed;
  Counter& retried;
  Counter& returned;  // snoozed or given back
  Counter& refused;   // settles of attempts that were no longer ours
  Counter& adopted;
  Counter& rescued;
};

// Thread-safe.
class ShardMill final : public FlightHost, public ScannerHost, public TenderHost {
 public:
  struct Parts {
    const Clock& clock;
    std::string name;
    Store& store;
    SliceSource& slices;
    LaneSet& lanes;
    SoloGate& gate;
    FlightRecorder& recorder;
    DeadRecorders& dead_recorders;
    MillCounters& counters;
    EngineConfig engine;
    Incarnation self;
    bool watch_idle = false;
  };

  explicit ShardMill(Parts parts);
  ~ShardMill() override;

  void Start();
  void Wake() { scanner_.Wake(); }
  bool Idle() const { return scanner_.Idle(); }
  // Once it claims nothing more: nothing is in hand.
  bool Empty() const { return scanner_.Quiet() && in_flight_.Empty(); }

  void StopClaiming() { scanner_.StopClaiming(); }
  // Handlers are asked to end now.
  void AskToStop() { stop_asked_.store(true); }
  // Attempts that were claimed and never started go back.
  void GiveBack(std::vector<FlightPtr> flights);
  void GiveBackParked();
  // Ends the threads; signs off in the shard.
  void End();

  // FlightHost
  bool StopAsked() const override { return stop_asked_.load(std::memory_order_relaxed); }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override;
  void SaveProgress(const Flight& flight, std::string progress) override;
  void Park(FlightPtr flight) override;
  void Land(Landing landing) override;
  void Settled(const Flight& flight, const Settlement& settlement) override;

  // ScannerHost, TenderHost
  std::shared_ptr<Standing> Life() const override;
  std::shared_ptr<const std::set<std::string>> LivePeers() const override { return heartbeat_.LivePeers(); }
  void LandAtOnce(const Task& task, const std::shared_ptr<Standing>& life, Outcome outcome,
                  bool solo) override;
  void Dispatch(std::vector<Task> tasks, const std::shared_ptr<Standing>& life, bool solo) override;
  void Adopted(std::vector<Task> tasks, const std::shared_ptr<Standing>& life) override;
  void Rescued(std::size_t count) override;

 private:
  Heartbeat::Events Events();
  void Known(const Landing& landing, SettleVerdict verdict);
  void Count(const Settlement& settlement);
  void LeaveGate(const Flight& flight);
  void Drop(const FlightPtr& flight);
  void Unpark(const std::shared_ptr<Standing>& life);

  const Parts parts_;
  InFlight in_flight_;
  std::atomic<bool> stop_asked_{false};
  mutable Mutex mutex_;
  std::shared_ptr<Standing> life_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<FlightPtr> parked_ MILLRACE_GUARDED_BY(mutex_);

  Settler settler_;
  Scanner scanner_;
  Tender tender_;
  Heartbeat heartbeat_;
};

}  // namespace millrace
