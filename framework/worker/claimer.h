// Claims the rows that a scan has found and sees them on their way: keys confirmed, suspects picked out, the
// rest to the lanes. A claim whose outcome is unknown is kept until it is resolved; a row whose claim the
// database refuses is split out, and goes to the failed pool.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/mill/live_engine.h"
#include "framework/worker/in_flight.h"
#include "framework/worker/solo_gate.h"
#include "framework/worker/suspects.h"

namespace millrace::engine {

// Where claimed tasks go. Thread-safe.
class ClaimHost {
 public:
  virtual ~ClaimHost() = default;
  // Makes an attempt of the task and ends it at once with this outcome.
  virtual void EndAtOnce(const Task& task, const std::shared_ptr<Lease>& life, Outcome outcome,
                         bool solo) = 0;
  // Makes attempts of these tasks and hands them to their lanes. `solo`: it runs alone.
  virtual void Dispatch(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo) = 0;
  // The shard refused a claim, since this worker's life there is over.
  virtual void FoundDead() = 0;
};

// Not thread-safe: the scanner's. Errors are those of the store.
class Claimer {
 public:
  struct Parts {
    const std::string& shard;
    ClaimHost& host;
    InFlight& in_flight;
    SoloGate& gate;
    const LiveEngine& engine;
  };

  Claimer(Parts parts, TaskStore& store, Suspects& suspects)
      : parts_(parts), store_(store), suspects_(suspects) {}

  // Claims these rows, as far as nobody has them in hand. Nothing happens while somebody wants to be alone.
  Status Claim(ClaimRequest request, const std::shared_ptr<Lease>& life);
  // Claims the suspect whose turn it is, if any, of a group that may be claimed.
  Status ClaimSuspect(const std::shared_ptr<Lease>& life, const Suspects::MayClaim& may_claim);

  // Resolves claims whose outcome is unknown. Stops at the first error.
  Status Resolve();
  bool HasUnknown() const { return !unknown_.empty(); }

 private:
  using Sent = std::pair<ClaimRequest, std::shared_ptr<Lease>>;

  // Claims rows that are in the in-flight set and inside the gate; all that can't be claimed leave both.
  Status ClaimEntered(ClaimRequest request, const std::shared_ptr<Lease>& life);
  // Likewise, but the gate is the caller's; and after Invalid, of several rows, so is the set.
  Result<std::vector<Task>> Send(ClaimRequest request, const std::shared_ptr<Lease>& life);
  Result<std::vector<Task>> FailUnclaimed(const ClaimRequest& request, const std::string& why);
  void AcceptResolved(std::vector<Task> tasks, const std::shared_ptr<Lease>& life);
  Status Accept(std::vector<Task> tasks, const std::shared_ptr<Lease>& life, bool solo);
  Status SkipDuplicates(std::vector<Task>& tasks, const std::shared_ptr<Lease>& life, bool solo);

  const Parts parts_;
  TaskStore& store_;
  Suspects& suspects_;
  std::vector<Sent> unknown_;
};

}  // namespace millrace::engine
