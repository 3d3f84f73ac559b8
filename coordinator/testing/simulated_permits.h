// The permits of a simulated worker: the product's strand, which asks the modelled databases. It does what
// framework/worker/permit_driver.cc does with a thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/testing/modelled_process.h"
#include "coordinator/testing/simulated_port.h"
#include "framework/mill/mill.h"
#include "framework/mill/permits.h"

namespace millrace::engine {

// Not thread-safe.
class SimulatedPermits {
 public:
  struct Parts {
    Timeline& timeline;
    const Clock& clock;
    std::deque<ModelledDatabase>& databases;
    ModelledProcess& process;
    const std::vector<std::string>& shards;
    Runner& runner;
    Registry& metrics;
    std::function<Mill*(std::size_t shard)> mill;  // null: the shard is not served, or is let go of
  };

  explicit SimulatedPermits(const Parts& parts);
  ~SimulatedPermits();

  Permits& permits() { return permits_; }
  // Again and again. Starts the strand once it is needed.
  void Watch(BootTime now);
  bool Ended() const { return !strand_ || strand_->Done(); }

 private:
  class Port;

  const std::unique_ptr<Port> port_;
  Permits permits_;
  std::optional<Step<>> strand_;  // last: uses the others
};

}  // namespace millrace::engine
