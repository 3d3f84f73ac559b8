// Incarnations on an SQLite shard. One thread at a time.
#pragma once

#include "framework/store/incarnation_store.h"
#include "framework/store/sqlite/connection.h"

namespace millrace::engine {

class SqliteIncarnationStore final : public IncarnationStore {
 public:
  explicit SqliteIncarnationStore(SqliteFile& file) : db_(file) {}

  Status Register(const Incarnation& incarnation) override;
  Result<bool> Renew(const std::string& id) override;
  Result<std::vector<PeerBeat>> Peers() override;
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override;
  Result<bool> Retire(const std::string& id) override;
  Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override;

 private:
  // Whether this attempt was running under `id`, or was rescued from it, and is not noted as ended otherwise.
  Result<bool> IsChargeable(const std::string& id, const Crash& crash);

  SqliteConnection db_;
};

}  // namespace millrace::engine
