// The steps of Heartbeat: registers, renews, marks those dead whose beats stand still.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coordinator/testing/mill_parts.h"
#include "framework/worker/peer_watch.h"

namespace millrace::engine {

class ModelledBeat {
 public:
  // `beat` is told after each renewal and after each death of this life.
  ModelledBeat(MillParts parts, std::function<void()> beat);

  void Run();

 private:
  void Register();
  void Renew();
  void WatchPeers();
  void MarkNext();
  void Next();
  std::vector<PeerBeat> Dead(const std::vector<PeerBeat>& peers);

  const MillParts parts_;
  const Micros interval_;
  const std::function<void()> beat_;
  PeerWatch watch_;
  BootTime began_{};
  std::vector<PeerBeat> to_mark_;
  std::set<std::string> live_;
  std::map<std::string, std::optional<std::uint64_t>> last_look_;  // for the planted bug
};

}  // namespace millrace::engine
