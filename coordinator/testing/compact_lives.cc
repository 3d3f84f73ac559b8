// The incarnations of a compact shard.
#include "coordinator/testing/compact_shard.h"

namespace millrace::engine {

bool CompactShard::IsAlive(const std::string& incarnation) const {
  const auto life = state_.lives.find(incarnation);
  return life != state_.lives.end() && !life->second.dead;
}

BootTime CompactShard::BeatAt(const std::string& incarnation) const {
  return state_.lives.at(incarnation).beat_at;
}

Micros CompactShard::LeaseOf(const std::string& incarnation) const {
  return state_.lives.at(incarnation).incarnation.lease;
}

Status CompactShard::Register(const Incarnation& incarnation) {
  const bool added =
      state_.lives.try_emplace(incarnation.id, Life{.incarnation = incarnation, .beat_at = clock_.Now()})
          .second;
  if (added) return {};
  return Fail(ErrorCode::Conflict, incarnation.id + " is registered already");
}

Result<bool> CompactShard::Renew(const std::string& id) {
  if (!IsAlive(id)) return false;
  Life& life = state_.lives.at(id);
  ++life.beat;
  life.beat_at = clock_.Now();
  return true;
}

Result<std::vector<PeerBeat>> CompactShard::Peers() const {
  std::vector<PeerBeat> peers;
  for (const auto& [id, life] : state_.lives) {
    if (!life.dead) peers.push_back({life.incarnation, life.beat});
  }
  return peers;
}

Result<bool> CompactShard::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  if (!IsAlive(id)) return false;
  Life& life = state_.lives.at(id);
  if (guards_.mark_needs_beat && life.beat != seen_beat) return false;
  life.dead = true;
  return true;
}

Result<bool> CompactShard::Retire(const std::string& id) {
  if (!IsAlive(id)) return false;
  state_.lives.at(id).dead = true;
  return true;
}

}  // namespace millrace::engine
