// A thread that has the end of batches decided, for all shards: where this process leads or is alone, and
// where its worker asks, which is to end once nothing is left to do.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "coordinator/upkeep/batch_decider.h"
#include "framework/base/mutex.h"
#include "framework/mill/idle_span.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"

namespace millrace::engine {

class FanOutWatch;

// Thread-safe.
class Batches {
 public:
  explicit Batches(std::function<bool()> leading) : leading_(std::move(leading)) {}
  ~Batches();

  // From now on these are the shards. Starts the thread once it is needed. To be called twice a second, by
  // one thread.
  Status Follow(const StoresByShard& shards);
  // Asks it to stop, and does not wait. True: it has stopped.
  bool AskToStop();
  // Whether a worker that has been idle so long may end, as far as batches and fan-outs go: see README.md.
  // Never waits; it is asked again until it says so.
  bool MayEnd(const IdleSpan& idle);

 private:
  // A look that was wanted, and found nothing to decide and nothing to wait for.
  struct Quiet {
    BootTime begun;
    BootTime ended;
  };
  void Run();
  Micros Turn(BatchDecider& decider, FanOutWatch& fan_outs);
  void Note(const BatchLook& look, Quiet when, bool wanted);
  bool Wanted();

  const std::function<bool()> leading_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{true};
  Signal wake_;
  Mutex mutex_;
  StoresByShard shards_ MILLRACE_GUARDED_BY(mutex_);
  bool wanted_ MILLRACE_GUARDED_BY(mutex_) = false;    // a look, by MayEnd
  BootTime idle_since_ MILLRACE_GUARDED_BY(mutex_){};  // as it said last
  BootTime looked_ MILLRACE_GUARDED_BY(mutex_){};
  std::optional<Quiet> quiet_ MILLRACE_GUARDED_BY(mutex_);  // the first one since then
  bool any_ MILLRACE_GUARDED_BY(mutex_) = false;  // a closed batch, or a fan-out, was seen since the start
  Thread thread_;
};

}  // namespace millrace::engine
