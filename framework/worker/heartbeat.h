// Registers this worker in one shard, renews its beat, and marks those dead whose beats stand still, or whose
// flight recorders on this host have lost their owner.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "framework/base/mutex.h"
#include "framework/base/random.h"
#include "framework/exec/signal.h"
#include "framework/exec/thread.h"
#include "framework/store/incarnation_store.h"
#include "framework/worker/dead_recorders.h"
#include "framework/worker/peer_watch.h"
#include "framework/worker/standing.h"

namespace millrace {

class Heartbeat {
 public:
  // Told on the heartbeat's thread, in this order for each life.
  struct Events {
    std::function<void(std::shared_ptr<Standing>)> born;  // registered: work may be claimed under it
    std::function<void(std::shared_ptr<Standing>)> beat;  // a renewal succeeded
    std::function<void(std::shared_ptr<Standing>)> died;  // found itself marked dead
    std::function<void()> buried;                         // another was marked dead
  };

  // `self` says who registers; its id is drawn anew for each life.
  Heartbeat(const Clock& clock, std::unique_ptr<IncarnationStore> store, std::string address,
            Incarnation self, FlightRecorder& recorder, DeadRecorders& dead_recorders, Events events);
  ~Heartbeat() { Stop(); }

  void Start();
  // Ends the thread; where `retire` is set, this life first, so that nobody waits for its lease.
  void Stop(bool retire = false);

  // The claimers known to be alive when the last beat succeeded; null before the first.
  std::shared_ptr<const std::set<std::string>> LivePeers() const;
  std::uint64_t MarkedDead() const { return marked_dead_.load(); }

 private:
  void Run();
  bool Register();
  bool Renew();
  void WatchPeers();
  void ChargeTheDead();
  bool Charge(const Burial& burial);

  const Clock& clock_;
  const std::unique_ptr<IncarnationStore> store_;
  const std::string address_;
  Incarnation self_;
  FlightRecorder& recorder_;
  DeadRecorders& dead_recorders_;
  const Events events_;

  // The heartbeat thread's own.
  PeerWatch watch_;
  Random random_;
  std::shared_ptr<Standing> standing_;
  bool reported_ = false;

  Signal stop_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> retire_{false};
  std::atomic<std::uint64_t> marked_dead_{0};
  mutable Mutex mutex_;
  std::shared_ptr<const std::set<std::string>> live_ MILLRACE_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace millrace
