// The ids that this worker has in its hands in one shard. An id enters before its claim is sent and leaves
// when the claim's failure or the settle's outcome is known; what is in here is never claimed or dispatched
// again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/mill/attempt.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// How much memory the tasks in a worker's hands may take: so much in all, and a little in each shard in any
// case, so that what waits for a database that is away stops no other shard.
//
// What a claim will bring in is known before it is sent (ScanRow::bytes). Shards that claim at the same
// moment may exceed the whole by one claim each.
// Thread-safe; one for all shards of a worker.
class MemoryBudget {
 public:
  static constexpr std::size_t kInAll = std::size_t{24} << 20;
  static constexpr std::size_t kEachShard = std::size_t{2} << 20;

  // What a task counts as whose texts take so many bytes.
  static constexpr std::size_t Of(std::size_t texts) { return texts + kBesideTexts; }

  void Add(std::size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void Remove(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  // What the next claim may bring in, in a shard that has `in_shard` in hand; 0: too little to claim for.
  std::size_t Room(std::size_t in_shard) const {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    const std::size_t of_all = std::min(kInAll - std::min(used, kInAll), kMostInClaim);
    const std::size_t room = std::max(of_all, kEachShard - std::min(in_shard, kEachShard));
    return room < kLeastInClaim ? 0 : room;
  }

 private:
  static constexpr std::size_t kBesideTexts = 1024;
  // While its rows are read the client library holds them too.
  static constexpr std::size_t kMostInClaim = std::size_t{4} << 20;
  static constexpr std::size_t kLeastInClaim = std::size_t{1} << 20;

  std::atomic<std::size_t> used_{0};
};

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
