// A task in this worker's hands: from before its claim is sent until the outcome of its settle is known.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/log.h"
#include "framework/base/time_text.h"
#include "framework/mill/admission.h"
#include "framework/mill/breaker_policy.h"
#include "framework/mill/lease.h"
#include "framework/store/task_transaction.h"
#include "framework/task/retry_ladder.h"
#include "framework/task/task.h"

namespace millrace::engine {

class AttemptHost;
struct TypeCounters;

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
  const std::shared_ptr<Lease> lease;   // the life under which it was claimed
  const bool solo;                      // it runs with nothing beside it
  TypeCounters* counters = nullptr;     // its type's; they outlive it. Null: whoever made it counts nothing
  std::shared_ptr<TypeGate> gate = {};  // of its type at its claim, if that had one: there it is counted
  std::uint64_t gate_at = 0;            // the version of its worker's admission at which that was so
  // The life in the home of permits that holds one for it; null: its type needs none.
  std::shared_ptr<Lease> home = {};
  std::uint64_t may_start_at = 0;  // the version of its shard's scope at which it might start; 0: unknown
  std::atomic<bool> cancel{false};
  std::atomic<bool> started{false};   // its handler was called, at least once
  std::atomic<bool> saves{false};     // its handler has saved progress
  std::atomic<Micros::rep> began{0};  // its first call, of the boot clock; 0: none
  std::atomic<Micros::rep> ran{-1};   // until its last call returned, or was given up; below 0: neither yet
  // Its permit can't be counted upon any more: it is to stop, and is given up at this moment; 0: it can.
  std::atomic<Micros::rep> stop_by{0};
  std::atomic<bool> given_up{false};   // it has ended, and its handler has not
  std::atomic<bool> has_start{false};  // its gate gave it a start
  std::atomic<bool> alone{false};      // it shares no call any more: one that it shared failed as a whole
  BreakerPass pass;                    // by its gate's breaker
};
using AttemptPtr = std::shared_ptr<Attempt>;

// How an attempt ended, on its way to the settler. `verify`: the COMMIT of its own transaction has an unknown
// outcome; the settlement is to be written only if the attempt still runs. `committed` is then what was sent.
struct AttemptResult {
  AttemptPtr attempt;
  Settlement settlement;
  bool verify = false;
  std::shared_ptr<const Settlement> committed = {};  // rare: it stands apart
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
  // The same of one that waits for its permit: it may get that meanwhile, so `home` is not looked at.
  virtual StartDecision DecisionBeforePermit(const Attempt& attempt) const {
    return StartDecisionOf(attempt);
  }
  // The gate that its type has now: the configuration may have changed since its claim.
  virtual std::shared_ptr<TypeGate> GateOf(const Attempt& attempt) const { return attempt.gate; }
  // The shard is served no more and nothing of it is in hand: whoever keeps a session of it closes it.
  virtual bool Over() const = 0;
  virtual std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) = 0;
  virtual void SaveProgress(Attempt& attempt, std::string progress) = 0;
  // What it has saved last, unless that is known to be written: its settlement brings it along.
  virtual std::optional<std::string> UnsavedProgress(const Attempt&) const { return std::nullopt; }
  // A line that the attempt's handler writes.
  virtual void Log(const Attempt& attempt, LogLevel level, std::string_view message) = 0;
  // A lane has room again for tasks of this shard. Never waits.
  virtual void RoomAgain() = 0;
  // What the database's clock says at this moment of ours; nullopt: not known.
  virtual std::optional<WallTime> StoreTime(BootTime) const { return std::nullopt; }
  // Not to be started for now: the shard's beat is late. It comes back to the lane once the beat has
  // succeeded.
  virtual void Park(AttemptPtr attempt) = 0;
  // The attempt has ended: to be settled. Never waits.
  virtual void Ended(AttemptResult result) = 0;
  // The attempt was settled by its own transaction.
  virtual void Settled(Attempt& attempt, const Settlement& settlement) = 0;
  // StartDecision::Lost.
  virtual void Drop(Attempt& attempt) = 0;
};

// The last look before a start, in a life that may start it: what it ends with instead; nothing: it starts,
// and its breaker knows of it.
std::optional<Outcome> InsteadOfStart(Attempt& attempt, const RetryPolicy& retry, BootTime now);
// The check before each start. What may not start is parked, or its attempt ended at once; others may have
// its start.
bool ReadyToStart(const AttemptPtr& attempt, const RetryPolicy& retry, BootTime now);

// What is to be written for an attempt that has ended now; `unit` is random in [0, 1). A failure that is not
// charged, since its breaker is open, gives the task back.
Settlement EndOf(Attempt& attempt, const RetryPolicy& retry, const Outcome& outcome, double unit,
                 BootTime now);

// Ends an attempt that has not started: its task waits again, in its old place or after `delay`; or, where
// its life is dead, is dropped.
void GiveBack(const AttemptPtr& attempt, std::string why = {}, std::optional<Micros> delay = std::nullopt);

// The class of a task that may have taken effect, though its attempt has failed.
inline constexpr const char* kEscapedClass = "escaped";

// Not run, or cut short by the engine: waiting again, in its old place of the due order or after `delay`.
inline Outcome GivenBack(std::string why = {}, std::optional<Micros> delay = std::nullopt) {
  Outcome outcome;
  outcome.kind = OutcomeKind::GiveBack;
  outcome.text = std::move(why);
  outcome.delay = delay;
  return outcome;
}

// A failed attempt, to be tried again after its ladder.
inline Outcome FailedOnce(std::string why, std::string error_class) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Retry;
  outcome.text = std::move(why);
  outcome.error_class = std::move(error_class);
  return outcome;
}

// Given up: it ran on after its time limit, and the grace behind that.
inline Outcome Overran(Micros limit) {
  return FailedOnce(
      "ran over its time limit of " + FormatDuration(limit) + " and ignored the request to stop", "timeout");
}

// To the failed pool at once.
inline Outcome FailedForGood(std::string why, std::string error_class) {
  Outcome outcome = FailedOnce(std::move(why), std::move(error_class));
  outcome.kind = OutcomeKind::Fail;
  return outcome;
}

// How much more may be claimed for a lane.
struct LaneRoom {
  std::size_t tasks = 0;
  std::size_t bytes = std::numeric_limits<std::size_t>::max();  // they may take, by MemoryBudget::Of
  bool gives_back = false;  // the lane is full: they come so that others, which wait in it, go back
};

// The seam to the run stage: takes claimed tasks, and reports through each attempt's host how it ended. In
// the product the lanes of this process. Thread-safe; no call waits for a handler.
class Runner {
 public:
  virtual ~Runner() = default;
  // Whether tasks of this type can be run here at all. The first question may open the type's handler.
  virtual bool Runs(const std::string& type) = 0;
  // How much more of this type, and of this urgency (framework/task/task.h), may be claimed in this shard;
  // zero until so much is free that claims stay large (AttemptHost::RoomAgain then says so). What is less
  // urgent and waits in the lane already leaves a part of it free.
  virtual LaneRoom Room(const std::string& type, const AttemptHost& shard, std::uint32_t urgency) = 0;
  // How long what runs now is expected to take yet; zero: nothing runs.
  virtual Micros BusyFor() = 0;
  // Takes claimed tasks of one type; never refuses one, since its callers ask for room first. False: the type
  // can't be run here any more, and the caller has them still.
  virtual bool Take(const std::string& type, std::vector<AttemptPtr>& attempts) = 0;
};

}  // namespace millrace::engine
