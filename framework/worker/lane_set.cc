#include "framework/worker/lane_set.h"

#include "framework/base/log.h"
#include "framework/worker/handler_secrets.h"

namespace millrace {

LaneSet::LaneSet(LaneParts parts, const PluginSet& plugins, std::shared_ptr<const Config> config,
                 std::optional<std::uint32_t> concurrency)
    : parts_(std::move(parts)), plugins_(plugins), config_(std::move(config)), concurrency_(concurrency) {}

Result<std::unique_ptr<Lane>> LaneSet::Open(const std::string& type) const {
  const HandlerConfig& config = config_->HandlerFor(type);
  auto secrets = ReadSecrets(type, config);
  if (!secrets) return Fail(secrets.error());
  auto handler = plugins_.Open(config.uses.empty() ? type : config.uses, type, config.options, *secrets);
  if (!handler) return Fail(handler.error());
  return std::make_unique<Lane>(parts_, type, config, std::move(*handler),
                                concurrency_.value_or(config.concurrency));
}

Status LaneSet::OpenConfigured() {
  for (const auto& [type, config] : config_->handlers) {
    auto lane = Open(type);
    if (!lane) return Fail(lane.error());
    MutexLock lock(mutex_);
    lanes_[type] = std::move(*lane);
  }
  return {};
}

Lane* LaneSet::For(const std::string& type) {
  {
    MutexLock lock(mutex_);
    const auto known = lanes_.find(type);
    if (known != lanes_.end()) return known->second.get();
  }
  auto lane = Open(type);  // foreign code: it may take its time, and nobody else is to wait for it
  MutexLock lock(mutex_);
  if (const auto known = lanes_.find(type); known != lanes_.end()) return known->second.get();
  if (!lane) {
    LogWarning("tasks of this type can't be run here; they stay waiting",
               {{"type", type}, {"why", lane.error().message}});
    lanes_[type] = nullptr;
    return nullptr;
  }
  return (lanes_[type] = std::move(*lane)).get();
}

std::vector<Lane*> LaneSet::All() const {
  MutexLock lock(mutex_);
  std::vector<Lane*> lanes;
  for (const auto& [type, lane] : lanes_) {
    if (lane) lanes.push_back(lane.get());
  }
  return lanes;
}

}  // namespace millrace
