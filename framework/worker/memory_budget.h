// How much memory the tasks in a worker's hands may take: so much in all, and a little in each shard in any
// case, so that what waits for a database that is away stops no other shard.
//
// What a claim will bring in is known before it is sent (ScanRow::bytes). Shards that claim at the same
// moment may exceed the whole by one claim each.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace millrace::engine {

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

}  // namespace millrace::engine
