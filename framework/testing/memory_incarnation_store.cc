#include "framework/testing/memory_incarnation_store.h"

namespace millrace::engine {
namespace {

bool End(MemoryState& state, const std::string& id) {
  if (!state.IsAlive(id)) return false;
  state.incarnations[id].beat.reset();
  state.incarnations[id].dead = true;
  return true;
}

// Whether this attempt was running under `id`, or was rescued from it, and is not noted as ended otherwise.
bool IsChargeable(MemoryState& state, const std::string& id, const Crash& crash) {
  const auto& noted = state.attempts[crash.key];
  const auto found = noted.find(crash.attempt);
  if (found != noted.end()) return found->second.kind == "rescued" && found->second.incarnation == id;
  return state.Running(crash.key, id, crash.attempt) != nullptr;
}

}  // namespace

Status MemoryIncarnationStore::Register(const Incarnation& incarnation) {
  MutexLock lock(shard_.mutex);
  const bool added = shard_.state.incarnations
                         .try_emplace(incarnation.id, MemoryIncarnation{.incarnation = incarnation,
                                                                        .began = shard_.clock.WallNow()})
                         .second;
  if (added) return {};
  return Fail(ErrorCode::Conflict, "the incarnation " + incarnation.id + " is registered already");
}

Result<bool> MemoryIncarnationStore::Renew(const std::string& id) {
  MutexLock lock(shard_.mutex);
  if (!shard_.state.IsAlive(id)) return false;
  auto& beat = shard_.state.incarnations[id].beat;
  if (beat) ++*beat;
  return beat.has_value();
}

Result<std::vector<PeerBeat>> MemoryIncarnationStore::Peers() {
  MutexLock lock(shard_.mutex);
  std::vector<PeerBeat> peers;
  for (const auto& [id, row] : shard_.state.incarnations) {
    if (!row.dead) peers.push_back({row.incarnation, row.beat});
  }
  return peers;
}

Result<bool> MemoryIncarnationStore::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  MutexLock lock(shard_.mutex);
  if (!shard_.state.IsAlive(id) || shard_.state.incarnations[id].beat != seen_beat) return false;
  return End(shard_.state, id);
}

Result<bool> MemoryIncarnationStore::Retire(const std::string& id) {
  MutexLock lock(shard_.mutex);
  return End(shard_.state, id);
}

Result<std::size_t> MemoryIncarnationStore::ChargeCrashes(const std::string& id,
                                                          std::span<const Crash> crashes) {
  MutexLock lock(shard_.mutex);
  std::size_t charged = 0;
  for (const Crash& crash : crashes) {
    BOOST_OUTCOME_TRY(table, shard_.state.Table(crash.key.table));
    const auto row = table->tasks.find(crash.key.id);
    if (row == table->tasks.end() || !IsChargeable(shard_.state, id, crash)) continue;
    ++row->second.task.crashes;
    shard_.state.attempts[crash.key][crash.attempt] = {crash.attempt,
                                                       shard_.clock.WallNow(),
                                                       id,
                                                       "crashed",
                                                       "crash",
                                                       "the worker died while the handler was running"};
    ++charged;
  }
  return charged;
}

}  // namespace millrace::engine
