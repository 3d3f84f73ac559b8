// Pruning of a memory shard. Thread-safe.
#pragma once

#include "framework/store/prune_store.h"
#include "framework/testing/memory_shard.h"

namespace millrace::engine {

class MemoryPruneStore final : public PruneStore {
 public:
  explicit MemoryPruneStore(MemoryShard& shard) : shard_(shard) {}

  Result<PruneStep> PruneEnded(const KeepRule& rule, const std::string& after, std::size_t limit) override;
  Result<PruneStep> PruneKeys(const std::string& after, std::size_t limit) override;
  Result<std::size_t> PruneIncarnations(Micros age, std::size_t limit) override;

 private:
  MemoryShard& shard_;
};

}  // namespace millrace::engine
