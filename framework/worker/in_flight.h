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
#include "framework/mill/attempt.h"
#include "framework/store/task_store.h"
#include "framework/worker/memory_budget.h"

namespace millrace::engine {

// Thread-safe.
class InFlight {
 public:
  explicit InFlight(MemoryBudget& memory) : memory_(memory) {}
  ~InFlight() { Clear(); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  bool Contains(const TableName& table, std::uint64_t id) const;
  // Enters those ids that were not in; returns them.
  std::vector<std::uint64_t> Enter(const TableName& table, std::span<const std::uint64_t> ids);
  // The claim succeeded: the id stands for this attempt from now on.
  void Claimed(const AttemptPtr& attempt);
  void Leave(const TableName& table, std::span<const std::uint64_t> ids);
  // A claim's reply is known: what was asked for and not claimed leaves.
  void LeaveMissed(const ClaimRequest& request, std::span<const Task> claimed);
  // True once after Room was zero: there is room again.
  bool Leave(const TaskKey& key);

  // How many bytes (MemoryBudget::Of) the next claim may bring in. Zero: nothing more is claimed until some
  // tasks have left; so it is where the database does not take settles.
  std::size_t Room();

  bool Empty() const { return Size() == 0; }
  std::size_t Size() const;
  // Those from which it has ever claimed.
  std::vector<TableName> Tables() const;
  // Nothing of the shard is this worker's any more.
  void Clear();
  // Those whose claim has succeeded, started or not.
  std::vector<AttemptPtr> Attempts() const;

 private:
  using Ids = std::unordered_map<std::uint64_t, AttemptPtr>;  // null: a claim is under way
  void Erase(Ids& ids, std::uint64_t id) MILLRACE_REQUIRES(mutex_);
  void Uncount(const Attempt& attempt) MILLRACE_REQUIRES(mutex_);

  MemoryBudget& memory_;
  mutable Mutex mutex_;
  std::size_t bytes_ MILLRACE_GUARDED_BY(mutex_) = 0;  // of the attempts
  bool held_back_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::map<TableName, Ids> tables_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
