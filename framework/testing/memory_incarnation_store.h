// Incarnations on a memory shard. Thread-safe.
#pragma once

#include "framework/testing/memory_shard.h"

namespace millrace::engine {

class MemoryIncarnationStore final : public IncarnationStore {
 public:
  explicit MemoryIncarnationStore(MemoryShard& shard) : shard_(shard) {}

  Status Register(const Incarnation& incarnation) override;
  Result<bool> Renew(const std::string& id) override;
  Result<std::vector<PeerBeat>> Peers() override;
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override;
  Result<bool> Retire(const std::string& id) override;
  Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override;

 private:
  MemoryShard& shard_;
};

}  // namespace millrace::engine
