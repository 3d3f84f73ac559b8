// A worker's side of one shard in virtual time: the product's mill, whose strands ask the modelled database
// and go on when its answers arrive.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/testing/modelled_runner.h"
#include "framework/mill/mill.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Planted bugs that show at the border of the mill.
struct MillBugs {
  bool marks_without_watching = false;  // one look in which a beat stands still is enough
  bool rescues_from_the_living = false;
};

struct MillSettings {
  EngineConfig engine = {.lease = std::chrono::seconds(4),
                         .poll = std::chrono::milliseconds(400),
                         .rewind = std::chrono::seconds(3)};
  HandlerModel handlers = {};
  MillBugs bugs = {};
};

// Not thread-safe.
class SimulatedMill {
 public:
  struct Parts {
    Timeline& timeline;
    ModelledDatabase& database;
    ModelledProcess& process;
    Journal& journal;
    const MillSettings& settings;
    ControlPlane& control;
    std::function<bool(const std::string& type)> runs;
  };

  // `dead`: lives of processes on this host whose flight recorders have lost their owner.
  SimulatedMill(Parts parts, std::vector<std::string> dead);
  ~SimulatedMill();

  // Its present life in the shard; empty: none.
  std::string Incarnation() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace millrace::engine
