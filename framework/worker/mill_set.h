// The mills of a worker, one for each shard that is served now. A shard that is served no more keeps its mill
// until all of it that is in hand has ended.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/doorbell/datagram.h"
#include "framework/threads/thread.h"
#include "framework/worker/shard_driver.h"
#include "framework/worker/stop_times.h"

namespace millrace::engine {

// Thread-safe where it says so; the rest is the watch thread's.
class MillSet {
 public:
  using MillPtr = std::shared_ptr<ShardDriver>;

  explicit MillSet(ShardDriver::Parts parts) : parts_(std::move(parts)) {}

  // Follow, for the first time. Unavailable: a mill's thread can't be started.
  Status Start();
  // Starts mills for new shards, and tries those again whose threads could not be started; retires those
  // whose shard is gone, and lets each look at what is its own. True if anything that is queued may have to
  // go back.
  bool Follow();
  // Retired mills that have nothing in hand end, unless something that runs elsewhere goes by their life.
  // What they have is asked to stop towards the end of the stop timeout; after that they end with it.
  void EndRetired(const std::function<bool(const Lease&)>& is_needed);
  bool NothingInHand() const;
  bool AllEmpty() const;
  // Of all of them together; nullopt: not all are idle, or some are not at their end.
  std::optional<IdleSpan> Idleness() const;
  // Whoever started it to see its tables empty is told in the log why they are not.
  void TellLeftAside() const;
  std::set<std::string> HeldBack() const;

  // Thread-safe.
  std::vector<MillPtr> All() const;
  // Of what is paused in any shard; sorted.
  std::vector<std::string> PauseNames() const;
  // Somebody rings; for a shard that is not served nothing happens.
  void Rung(const ShardRing& ring) const;
  // Asks all mills to end, and returns at once.
  void RequestEnd();
  // Ends all mills; returns when their threads have ended.
  void End();

 private:
  struct Retired {
    MillPtr mill;
    StopTimes stops;
    std::atomic<bool> ended{false};
    Thread ending;  // last: uses the others
  };

  Status Begin(const std::vector<MillPtr>& fresh);
  void Retire(const MillPtr& mill);
  void BeginEnd(Retired& retired);

  const ShardDriver::Parts parts_;
  std::list<Retired> retired_;
  Status begun_;  // of the newest mills
  mutable Mutex mutex_;
  std::map<std::string, MillPtr> serving_ MILLRACE_GUARDED_BY(mutex_);  // written by the watch thread alone
  std::vector<MillPtr> all_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
