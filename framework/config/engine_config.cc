#include "framework/config/parts.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestAddress = 300;

// Reads or lists them, as Section and KeyLister do.
template <class Keys, class Engine>
void EngineKeys(Keys& keys, Engine& engine) {
  keys.Duration("lease", engine.lease, 1s, 10min);
  keys.Duration("poll", engine.poll, 1ms, 1min);
  keys.Duration("rewind", engine.rewind, 100ms, 1h);
  keys.Integer("batch", engine.batch, 1, static_cast<std::uint32_t>(kMaxBatchRows));
  keys.Duration("stop_timeout", engine.stop_timeout, 0s, 1h);
  keys.Integer("max_lost_threads", engine.max_lost_threads, 1, 1000);
  keys.Choice("on_zookeeper_loss", engine.on_zookeeper_loss,
              {{"continue", OnZooKeeperLoss::Continue}, {"stop", OnZooKeeperLoss::Stop}});
  keys.Text("http", engine.http, kLongestAddress);
  PolicyKeys(keys, engine);
}

}  // namespace

EngineConfig ReadEngine(const nlohmann::json& value, Problems& problems) {
  EngineConfig engine;
  Section section(value, {"engine"}, problems);
  EngineKeys(section, engine);
  section.Done();
  return engine;
}

void ListEngine(const EngineConfig& engine, KeyLister& keys) { EngineKeys(keys, engine); }

}  // namespace millrace::engine
