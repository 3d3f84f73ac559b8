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
  Result<bool> MarkDead(const std::string& id, std::uint64_t seen_beat) override;
  Result<bool> Retire(const std::string& id) override;
  Result<std::size_t> ChargeCrashes(const std::string& id, std::span<const Crash> crashes) override;

 private:
  Result<bool> End(const std::string& id, const std::string& beat_condition, bool needs_beat);

  const Endpoint endpoint_;
  Session session_;
};

}  // namespace millrace::engine::mysql
