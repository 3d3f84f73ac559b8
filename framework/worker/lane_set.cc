#include "framework/worker/lane_set.h"

#include <cstdlib>

#include "framework/base/log.h"
#include "framework/store/url.h"

namespace millrace {

LaneSet::LaneSet(LaneParts parts, const PluginSet& plugins, std::shared_ptr<const Config> config,
                 std::optional<std::uint32_t> concurrency)
    : parts_(std::move(parts)), plugins_(plugins), config_(std::move(config)), concurrency_(concurrency) {}

Result<Secrets> ReadSecrets(const std::string& type, const HandlerConfig& config) {
  Secrets secrets;
  for (const auto& [name, source] : config.secrets) {
    if (!source.file.empty()) {
      auto value = ReadPasswordFile(source.file);
      if (!value)
        return Fail(ErrorCode::Invalid,
                    "handlers." + type + ".secrets." + name + ": " + value.error().message);
      secrets.emplace_back(name, *value);
      continue;
    }
    const char* value = std::getenv(source.variable.c_str());
    if (value == nullptr) {
      return Fail(ErrorCode::Invalid, "handlers." + type + ".secrets." + name +
                                          ": the environment variable " + source.variable + " is not set");
    }
    secrets.emplace_back(name, value);
  }
  return secrets;
}

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
  MutexLock lock(mutex_);
  const auto known = lanes_.find(type);
  if (known != lanes_.end()) return known->second.get();
  auto lane = Open(type);
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
