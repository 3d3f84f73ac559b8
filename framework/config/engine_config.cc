#include "framework/config/parts.h"

namespace millrace {

using namespace std::chrono_literals;

EngineConfig ReadEngine(const nlohmann::json& value, Problems& problems) {
  EngineConfig engine;
  Section section(value, {"engine"}, problems);
  section.Duration("lease", engine.lease, 1s, 10min);
  section.Duration("poll", engine.poll, 1ms, 1min);
  section.Duration("rewind", engine.rewind, 100ms, 1h);
  section.Integer("batch", engine.batch, 1, static_cast<std::uint32_t>(kMaxBatchRows));
  section.Duration("stop_timeout", engine.stop_timeout, 0s, 1h);
  section.Integer("max_lost_threads", engine.max_lost_threads, 1, 1000);
  if (const auto choice = section.Choice("on_zookeeper_loss", {"continue", "stop"})) {
    engine.on_zookeeper_loss = *choice == 0 ? OnZooKeeperLoss::Continue : OnZooKeeperLoss::Stop;
  }
  section.Done();
  return engine;
}

}  // namespace millrace
