// The beat strand: registers this worker in one shard, renews its beat, and marks those dead whose beats
// stand still.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/random.h"
#include "framework/metrics/registry.h"
#include "framework/mill/live_engine.h"
#include "framework/mill/lives.h"
#include "framework/mill/step.h"
#include "framework/store/incarnation_store.h"

namespace millrace::engine {

// Whose beat has stood still for its whole lease? Decides, by what this process has itself observed, which
// incarnations of a shard may be marked dead. Pure: time is passed in.
//
// The rule (a lease without shared clocks, after Gray and Cheriton's leases with the roles turned round): the
// watcher counts only time in which it renewed its own beat in that shard without a gap, so an outage of the
// database, a pause of the watcher or a clock step kills nobody. Where its own beat has gone back it begins
// anew: a failover has lost commits, and a number that was seen may have come again. A beat that somebody has
// deleted stands still, too: its owner hears of it with its next renewal, unless it is gone.
//
// Not thread-safe.
class PeerWatch {
 public:
  // `gap` is the longest pause between two observations that still counts as watching without a break.
  explicit PeerWatch(Micros gap = Micros(0)) : gap_(gap) {}

  // Call after each successful renewal of one's own, with what Peers() then said. Returns those to mark dead.
  std::vector<PeerBeat> Observe(BootTime now, const std::string& self, std::span<const PeerBeat> peers);

 private:
  struct Sighting {
    std::optional<std::uint64_t> beat;
    BootTime since;
  };

  bool WentBack(const std::string& self, std::span<const PeerBeat> peers);

  Micros gap_;
  BootTime last_{};
  std::optional<std::uint64_t> own_beat_;
  std::map<std::string, Sighting> sightings_;
};

// What it asks of the shard; see IncarnationStore.
class BeatPort : public StrandPort {
 public:
  // Where it succeeds, this process's flight recorder names the life from then on.
  virtual Reply<Status> Register(const Incarnation& self) = 0;
  virtual Reply<Result<bool>> Renew(const std::string& id) = 0;
  virtual Reply<Result<std::vector<PeerBeat>>> Peers() = 0;
  virtual Reply<Result<bool>> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) = 0;
  virtual Reply<Result<bool>> Retire(const std::string& id) = 0;
};

// Run is the strand; Stop is thread-safe.
class Beat {
 public:
  enum class News {
    Born,      // registered: work may be claimed under the new life
    Renewed,   // a renewal succeeded
    Died,      // this life was found ended by others
    PeerGone,  // another was marked dead, by whomever
  };
  // Told by the strand, once `lives` says so.
  using Told = std::function<void(News)>;
  struct Parts {
    const Clock& clock;
    std::string address;  // of the store
    Incarnation self;     // its id is drawn anew for each life, its lease is the one then in force
    const LiveEngine& engine;
    Lives& lives;
    Counter& marked_dead;
    Random random;
  };

  Beat(Parts parts, BeatPort& port, Told told)
      : parts_(std::move(parts)), port_(port), told_(std::move(told)) {}

  // Until Stop.
  Step<> Run();
  // Where `retire` is set, ends this life, too, so that nobody waits for its lease.
  void Stop(bool retire);

 private:
  Step<bool> Register();
  Step<bool> Renew();
  Step<bool> BeginAnew();
  Step<> WatchPeers();
  Step<> Retire();
  bool Failed(const char* event, const std::string& error);

  Parts parts_;  // of `self` the strand's own
  BeatPort& port_;
  const Told told_;

  // The strand's own.
  PeerWatch watch_;
  std::shared_ptr<Lease> lease_;

  std::atomic<bool> stopping_{false};
  std::atomic<bool> retire_{false};
};

}  // namespace millrace::engine
