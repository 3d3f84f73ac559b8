// The ids that this worker has in its hands in one shard. An id enters before its claim is sent and leaves
// when the claim's failure or the settle's outcome is known; what is in here is never claimed or dispatched
// again.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/store/task_store.h"
#include "framework/worker/flight.h"

namespace millrace {

// Thread-safe.
class InFlight {
 public:
  bool Contains(const std::string& table, std::uint64_t id) const;
  // Enters those ids that were not in; returns them.
  std::vector<std::uint64_t> Enter(const std::string& table, std::span<const std::uint64_t> ids);
  // The claim succeeded: the id stands for this flight from now on.
  void Claimed(const FlightPtr& flight);
  void Leave(const std::string& table, std::span<const std::uint64_t> ids);
  // A claim's reply is known: what was asked for and not claimed leaves.
  void LeaveMissed(const ClaimRequest& request, std::span<const Task> claimed);
  // Returns how many are left.
  std::size_t Leave(const TaskKey& key);

  // More than this is never in hand: while the database does not take settles, nothing more is claimed.
  static constexpr std::size_t kMost = 10 * kMaxBatchRows;

  bool Empty() const { return Size() == 0; }
  std::size_t Size() const;
  // Nothing of the shard is this worker's any more.
  void Clear();
  // Those whose claim has succeeded, started or not.
  std::vector<FlightPtr> Flights() const;

 private:
  using Ids = std::unordered_map<std::uint64_t, FlightPtr>;  // null: a claim is under way
  std::size_t Count() const MILLRACE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Ids> tables_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
