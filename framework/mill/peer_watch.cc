#include "framework/mill/peer_watch.h"

namespace millrace::engine {

std::vector<PeerBeat> PeerWatch::Observe(BootTime now, const std::string& self,
                                         std::span<const PeerBeat> peers) {
  if (now - last_ > gap_) sightings_.clear();
  last_ = now;
  std::map<std::string, Sighting> seen;
  std::vector<PeerBeat> dead;
  for (const PeerBeat& peer : peers) {
    if (peer.incarnation.id == self) continue;
    const auto known = sightings_.find(peer.incarnation.id);
    const bool still = known != sightings_.end() && known->second.beat == peer.beat;
    const Sighting sighting = still ? known->second : Sighting{peer.beat, now};
    if (now - sighting.since >= peer.incarnation.lease && still) dead.push_back(peer);
    seen.emplace(peer.incarnation.id, sighting);
  }
  sightings_ = std::move(seen);
  return dead;
}

}  // namespace millrace::engine
