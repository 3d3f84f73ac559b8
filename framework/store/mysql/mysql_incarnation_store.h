// Incarnations on a server. Its parts: incarnations.cc (register, beat, end) and crashes.cc.
#pragma once

#include "framework/store/incarnation_store.h"
#include "framework/store/mysql/session.h"

namespace millrace::engine::mysql {

class MysqlIncarnationStore final : public IncarnationStore {
 public:
  explicit MysqlIncarnationStore(const Endpoint& endpoint);

  Status Register(const Incarnation& incarnation) override;
  Result<bool> Renew(const std::string& id) override;
  Result<std::vector<PeerBeat>> Peers() override;
  Result<bool> MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) override;
  Result<bool> Retire(const std::string& id) override;
  Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override;

 private:
  // Deletes its beat, if that meets the condition, and marks its row. False, and nothing done: there were not
  // as many beats as expected (nullopt: 0 or 1), or the row is dead already.
  Result<bool> End(const std::string& id, const std::string& beat_condition,
                   std::optional<std::uint64_t> expected);

  const Endpoint endpoint_;
  Session session_;
};

}  // namespace millrace::engine::mysql
