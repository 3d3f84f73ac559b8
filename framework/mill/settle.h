// The settle strand: ends attempts of one shard in batches. Whatever has gathered while the last batch was
// written goes into the next, so that batches grow with the load and a lone task waits for nobody.
//
// What has just ended, what somebody else has locked, and what nobody knows the outcome of stand in queues of
// their own, and each has its statement in every round: a thousand locked rows hold up nothing fresh.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/mill/attempt.h"
#include "framework/mill/live_engine.h"
#include "framework/mill/step.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// What it asks of the shard; see TaskStore.
class SettlePort : public StrandPort {
 public:
  virtual Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                             std::span<const Settlement> batch) = 0;
  virtual Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                        std::span<const Settlement> batch) = 0;
};

// Run is the strand; Ended and Stop are thread-safe.
class Settler {
 public:
  // Told by the strand that what was written of an attempt is known: its id may leave the in-flight set.
  // `verdict` Refused: the attempt was no longer ours.
  using Known = std::function<void(Attempt&, const Settlement&, SettleVerdict verdict)>;

  Settler(const Clock& clock, SettlePort& port, const LiveEngine& engine, Known known)
      : clock_(clock), port_(port), engine_(engine), known_(std::move(known)) {}

  // Until Stop. What is still queued then, or ends from then on, is dropped.
  Step<> Run();
  void Stop();
  // Never waits: how much can be under way is bounded where tasks are claimed.
  void Ended(AttemptResult result);

 private:
  // Results of one life. Their settlements stand apart, as the store takes them.
  struct Batch {
    std::vector<AttemptResult> results;
    std::vector<Settlement> settlements;  // parallel

    bool empty() const { return results.empty(); }
    void Add(AttemptResult result);
    // Whole again; the batch has it no more.
    AttemptResult Take(std::size_t index);
  };
  struct Waiting {
    AttemptResult result;
    BootTime due{};
  };
  using Queue = std::deque<Waiting>;

  // One statement for each queue; false: the shard does not answer.
  Step<bool> Round();
  Step<bool> Settle(Queue& queue);
  Step<bool> Verify();
  void TakeEnded();
  // From the head: those of one life that are due.
  Batch TakeBatch(Queue& queue) const;
  static void PutBack(Batch batch, Queue& queue);
  void SetAside(AttemptResult result);
  void MendBroken(AttemptResult result, const std::string& error);
  void NoteTrouble(std::size_t tasks, const Error& error);
  Step<> PauseFor(Micros pause);
  Micros UntilDue() const;

  const Clock& clock_;
  SettlePort& port_;
  const LiveEngine& engine_;
  const Known known_;

  // The strand's own.
  Queue fresh_;
  Queue unknown_;          // their statement, or their own COMMIT, was lost
  Queue aside_;            // locked by others, or refused by the database; in the order of their times
  bool reported_ = false;  // the present trouble was logged

  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::vector<AttemptResult> ended_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
