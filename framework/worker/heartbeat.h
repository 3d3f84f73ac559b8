// Registers this worker in one shard, renews its beat, and marks those dead whose beats stand still.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/base/random.h"
#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/metrics/registry.h"
#include "framework/mill/lease.h"
#include "framework/mill/live_engine.h"
#include "framework/store/incarnation_store.h"
#include "framework/worker/flight_recorder.h"
#include "framework/worker/peer_watch.h"

namespace millrace::engine {

class Heartbeat {
 public:
  // Told on the heartbeat's thread, in this order for each life.
  struct Events {
    std::function<void(std::shared_ptr<Lease>)> born;  // registered: work may be claimed under it
    std::function<void(std::shared_ptr<Lease>)> beat;  // a renewal succeeded
    std::function<void(std::shared_ptr<Lease>)> died;  // found its life ended by others
    std::function<void()> buried;                      // another was marked dead, by whomever
  };

  // `self` says who registers; its id is drawn anew for each life, its lease is the one then in force.
  Heartbeat(const Clock& clock, std::unique_ptr<IncarnationStore> store, std::string address,
            Incarnation self, const LiveEngine& engine, FlightRecorder& recorder, Counter& marked_dead,
            Events events);
  ~Heartbeat() { Stop(); }

  // Unavailable: its thread can't be started.
  Status Start();
  // Ends the thread; where `retire` is set, this life first, so that nobody waits for its lease.
  void Stop(bool retire = false);
  void RequestStop(bool retire);

  // The claimers known to be alive when the last beat succeeded; null before the first. Thread-safe.
  std::shared_ptr<const std::set<std::string>> LivePeers() const;
  // What they said of themselves. Thread-safe.
  std::vector<Incarnation> Peers() const;
  // Marked dead by another part of this process. Thread-safe.
  void Buried(const std::string& incarnation);
  // Does not wait for the next beat: a claim was refused as one of a dead life. Thread-safe.
  void BeatNow() { wake_.Notify(); }
  // Why the last beat failed; empty where it succeeded. Thread-safe.
  std::string Trouble() const;

 private:
  void Run();
  bool Register();
  bool Renew();
  bool BeginAnew();
  void WatchPeers();
  bool Failed(const char* event, const std::string& error);

  const Clock& clock_;
  const std::unique_ptr<IncarnationStore> store_;
  const std::string address_;
  Incarnation self_;
  const LiveEngine& engine_;
  FlightRecorder& recorder_;
  Counter& marked_dead_;
  const Events events_;

  // The heartbeat thread's own.
  PeerWatch watch_;
  Random random_;
  std::shared_ptr<Lease> lease_;

  Signal wake_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> retire_{false};
  mutable Mutex mutex_;
  std::string trouble_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Incarnation> peers_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const std::set<std::string>> live_ MILLRACE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace millrace::engine
