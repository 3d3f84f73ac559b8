// A modelled worker's side of one shard: heartbeat, scanner, lane, settler and tender.
#pragma once

#include <string>
#include <vector>

#include "coordinator/testing/modelled_beat.h"
#include "coordinator/testing/modelled_tender.h"
#include "coordinator/testing/simulated_ports.h"

namespace millrace::engine {

class ModelledMill {
 public:
  struct Parts {
    Timeline& timeline;
    ModelledDatabase& database;
    ModelledProcess& process;
    Journal& journal;
    const MillSettings& settings;
  };

  // `buried`: see ModelledTender.
  ModelledMill(Parts parts, MillRemit remit, std::vector<std::string> buried);
  ModelledMill(const ModelledMill&) = delete;

  // Its present life in the shard; empty: none.
  std::string Incarnation() const { return state_.life ? state_.life->incarnation() : ""; }

 private:
  MillState state_;
  const MillParts parts_;
  const LiveEngine engine_{EngineConfig{}};
  TimelineClock clock_;
  SimulatedSettle settle_port_;
  Settler settler_;
  ModelledLane lane_;
  ModelledScanner scanner_;
  ModelledTender tender_;
  ModelledBeat beat_;
  Step<> settle_;
};

}  // namespace millrace::engine
