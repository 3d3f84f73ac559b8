// A task in this worker's hands: from before its claim is sent until the outcome of its settle is known.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/log.h"
#include "framework/mill/lease.h"
#include "framework/store/task_transaction.h"
#include "framework/task/outcome.h"
#include "framework/task/task.h"

namespace millrace::engine {

class AttemptHost;

// Shared by the lane, the watchdog and the settler; what is not atomic is constant. It keeps its host alive:
// a thread that a handler has not given back still asks it.
struct Attempt {
  Attempt(std::shared_ptr<AttemptHost> shard_host, std::string shard_name, Task claimed,
          std::shared_ptr<Lease> life, bool runs_solo)
      : host(std::move(shard_host)),
        shard(std::move(shard_name)),
        task(std::move(claimed)),
        lease(std::move(life)),
        solo(runs_solo) {}

  const std::shared_ptr<AttemptHost> host;
  const std::string shard;
  const Task task;
  const std::shared_ptr<Lease> lease;  // the life under which it was claimed
  const bool solo;                     // it runs with nothing beside it
  std::atomic<bool> cancel{false};
  std::atomic<bool> started{false};  // its handler was called
  std::atomic<bool> alone{false};    // it shares no call any more: one that it shared failed as a whole
};
using AttemptPtr = std::shared_ptr<Attempt>;

// How an attempt ended, on its way to the settler. `verify`: the COMMIT of its own transaction has an unknown
// outcome; the settlement is to be written only if the attempt still runs. `committed` is then what was sent.
struct AttemptResult {
  AttemptPtr attempt;
  Settlement settlement;
  bool verify = false;
  std::optional<Settlement> committed = {};
};

// What is to become of a claimed task that has not started.
enum class StartDecision {
  Start,
  Moved,      // its slice is another worker's now: whoever can start it first should
  Withdrawn,  // it is paused, or its shard is served no more: give it back
  Lost,       // the life that claimed it is dead: it is others' business
};

// What an attempt needs of its shard. Every attempt ends in exactly one Ended, Settled or Drop. Thread-safe.
class AttemptHost {
 public:
  virtual ~AttemptHost() = default;
  // The worker asks its handlers to end now.
  virtual bool StopAsked() const = 0;
  virtual StartDecision StartDecisionOf(const Attempt& attempt) const = 0;
  // The shard is served no more and nothing of it is in hand: whoever keeps a session of it closes it.
  virtual bool Over() const = 0;
  virtual std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) = 0;
  virtual void SaveProgress(const Attempt& attempt, std::string progress) = 0;
  // A line that the attempt's handler writes.
  virtual void Log(const Attempt& attempt, LogLevel level, std::string_view message) = 0;
  // A lane has room again for tasks of this shard. Never waits.
  virtual void RoomAgain() = 0;
  // Not to be started for now: the shard's beat is late. It comes back to the lane once the beat has
  // succeeded.
  virtual void Park(AttemptPtr attempt) = 0;
  // The attempt has ended: to be settled. Never waits.
  virtual void Ended(AttemptResult result) = 0;
  // The attempt was settled by its own transaction.
  virtual void Settled(const Attempt& attempt, const Settlement& settlement) = 0;
  // StartDecision::Lost.
  virtual void Drop(const Attempt& attempt) = 0;
};

// Ends an attempt that has not started: its task waits again; or, where its life is dead, is dropped.
void GiveBack(const AttemptPtr& attempt);

}  // namespace millrace::engine
