// A modelled worker's side of one shard: heartbeat, scanner, lane, settler and tender.
#pragma once

#include <string>
#include <vector>

#include "coordinator/testing/modelled_beat.h"
#include "coordinator/testing/modelled_tender.h"

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
  ModelledSettler settler_;
  ModelledLane lane_;
  ModelledScanner scanner_;
  ModelledTender tender_;
  ModelledBeat beat_;
};

}  // namespace millrace::engine
