#include "framework/http/admission.h"

namespace millrace::engine {
namespace {

using Phase = HeldConnection::Phase;

const HeldConnection* OldestIn(std::span<const HeldConnection> held, Phase phase) {
  const HeldConnection* oldest = nullptr;
  for (const HeldConnection& one : held) {
    if (one.phase == phase && (oldest == nullptr || one.since < oldest->since)) oldest = &one;
  }
  return oldest;
}

}  // namespace

std::optional<std::uint64_t> WhoMakesRoom(std::span<const HeldConnection> held, BootTime now, Micros slow) {
  for (const Phase phase : {Phase::Idle, Phase::Reading}) {
    if (const HeldConnection* oldest = OldestIn(held, phase)) return oldest->id;
  }
  const HeldConnection* slowest = OldestIn(held, Phase::Writing);
  if (slowest == nullptr || now - slowest->since <= slow) return std::nullopt;
  return slowest->id;
}

std::optional<std::uint64_t> SlowestReader(std::span<const HeldConnection> held) {
  const HeldConnection* slowest = OldestIn(held, Phase::Writing);
  if (slowest == nullptr) return std::nullopt;
  return slowest->id;
}

}  // namespace millrace::engine
