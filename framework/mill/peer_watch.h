// Whose beat has stood still for its whole lease? Decides, by what this process has itself observed, which
// incarnations of a shard may be marked dead. Pure: time is passed in.
//
// The rule (a lease without shared clocks, after Gray and Cheriton's leases with the roles turned round): the
// watcher counts only time in which it renewed its own beat in that shard without a gap, so an outage of the
// database, a pause of the watcher or a clock step kills nobody. A beat that somebody has deleted stands
// still, too: its owner hears of it with its next renewal, unless it is gone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/store/incarnation_store.h"

namespace millrace::engine {

// Not thread-safe.
class PeerWatch {
 public:
  // `gap` is the longest pause between two observations that still counts as watching without a break.
  explicit PeerWatch(Micros gap = Micros(0)) : gap_(gap) {}

  // Call after each successful renewal of one's own, with what Peers() then said. Returns those to mark dead.
  std::vector<PeerBeat> Observe(BootTime now, const std::string& self, std::span<const PeerBeat> peers);

 private:
  struct Sighting {
    std::optional<std::uint64_t> beat;
    BootTime since;
  };

  Micros gap_;
  BootTime last_{};
  std::map<std::string, Sighting> sightings_;
};

}  // namespace millrace::engine
