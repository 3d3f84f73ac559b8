#include "framework/worker/lane_set.h"

#include <set>

#include "framework/base/log.h"
#include "framework/worker/handler_secrets.h"

namespace millrace {

LaneSet::LaneSet(LaneParts parts, const PluginSet& plugins, std::shared_ptr<const Config> config, Rules rules)
    : parts_(parts), plugins_(plugins), rules_(rules), config_(std::move(config)) {}

std::shared_ptr<const Config> LaneSet::Current() const {
  MutexLock lock(mutex_);
  return config_;
}

Result<LaneSet::Opening> LaneSet::Wanted(const std::string& type, const HandlerConfig& config) const {
  auto secrets = ReadSecrets(type, config);
  if (!secrets) return Fail(secrets.error());
  return Opening{config.uses.empty() ? type : config.uses, config.options, std::move(*secrets)};
}

Result<std::shared_ptr<HandlerInstance>> LaneSet::Open(const std::string& type,
                                                       const Opening& opening) const {
  auto handler = plugins_.Open(opening.uses, type, opening.options, opening.secrets);
  if (!handler) return Fail(handler.error());
  return std::shared_ptr<HandlerInstance>(std::move(*handler));
}

LaneSetup LaneSet::SetupOf(const HandlerConfig& config, std::shared_ptr<HandlerInstance> handler) const {
  return {config, std::move(handler), rules_.concurrency.value_or(config.concurrency)};
}

Result<LaneSet::Entry> LaneSet::NewEntry(const std::string& type, const HandlerConfig& config) const {
  auto wanted = Wanted(type, config);
  if (!wanted) return Fail(wanted.error());
  auto handler = Open(type, *wanted);
  if (!handler) return Fail(handler.error());
  auto lane = std::make_unique<Lane>(parts_, type, SetupOf(config, *handler));
  return Entry{std::move(lane), std::move(*wanted), std::move(*handler), {}};
}

std::string LaneSet::RefusalOf(const Error& error) const {
  return rules_.partial && error.code == ErrorCode::NotFound ? "" : error.message;
}

Status LaneSet::OpenConfigured() {
  const std::shared_ptr<const Config> config = Current();
  for (const auto& [type, handler_config] : config->handlers) {
    auto entry = NewEntry(type, handler_config);
    if (!entry && RefusalOf(entry.error()).empty()) continue;
    if (!entry) return Fail(entry.error());
    MutexLock lock(mutex_);
    entries_[type] = std::move(*entry);
  }
  return {};
}

void LaneSet::Follow(std::shared_ptr<const Config> config) {
  std::set<std::string> types;
  for (const auto& [type, handler_config] : config->handlers) types.insert(type);
  {
    MutexLock lock(mutex_);
    config_ = config;
    for (const auto& [type, entry] : entries_) types.insert(type);
  }
  for (const std::string& type : types) Refresh(type, *config);
}

std::optional<LaneSet::Entry> LaneSet::Known(const std::string& type) const {
  MutexLock lock(mutex_);
  const auto known = entries_.find(type);
  return known == entries_.end() ? std::nullopt : std::optional(known->second);
}

// Foreign code opens and closes handlers here: it may take its time, so nothing is locked meanwhile.
void LaneSet::Refresh(const std::string& type, const Config& config) {
  const HandlerConfig& wanted = config.HandlerFor(type);
  Entry entry = Known(type).value_or(Entry{});
  if (entry.lane) {
    Reopen(type, wanted, entry);
    entry.lane->Follow(SetupOf(wanted, entry.handler));
  } else if (auto opened = NewEntry(type, wanted)) {
    entry = std::move(*opened);
  } else {
    entry.refusal = config.handlers.contains(type) ? RefusalOf(opened.error()) : "";
  }
  MutexLock lock(mutex_);
  Entry& known = entries_[type];
  if (known.lane && known.lane != entry.lane) return;  // somebody needed it meanwhile, by this configuration
  known = std::move(entry);
}

void LaneSet::Reopen(const std::string& type, const HandlerConfig& config, Entry& entry) const {
  entry.refusal.clear();
  auto wanted = Wanted(type, config);
  if (wanted && *wanted == entry.opening) return;
  Result<std::shared_ptr<HandlerInstance>> opened =
      wanted ? Open(type, *wanted) : Result<std::shared_ptr<HandlerInstance>>(Fail(wanted.error()));
  if (opened) {
    entry.handler = std::move(*opened);
    entry.opening = std::move(*wanted);
    LogInfo("handler opened anew: its configuration has changed", {{"type", type}});
    return;
  }
  entry.refusal = opened.error().message + "; the former uses, options and secrets stay in force";
  LogWarning("a handler refuses its new configuration", {{"type", type}, {"why", entry.refusal}});
}

std::vector<std::string> LaneSet::Refusals() const {
  MutexLock lock(mutex_);
  std::vector<std::string> refusals;
  for (const auto& [type, entry] : entries_) {
    if (!entry.refusal.empty()) refusals.push_back("handlers." + type + ": " + entry.refusal);
  }
  return refusals;
}

Lane* LaneSet::For(const std::string& type) {
  while (true) {
    if (const auto known = Known(type)) return known->lane.get();
    const std::shared_ptr<const Config> config = Current();
    auto entry = NewEntry(type, config->HandlerFor(type));  // foreign code: nobody else is to wait for it
    MutexLock lock(mutex_);
    if (config_ != config) continue;  // opened by what is no longer in force
    const auto [place, added] = entries_.try_emplace(type, entry ? *entry : Entry{});
    if (added && !entry) {
      LogWarning("tasks of this type can't be run here; they stay waiting",
                 {{"type", type}, {"why", entry.error().message}});
    }
    return place->second.lane.get();
  }
}

std::vector<Lane*> LaneSet::All() const {
  MutexLock lock(mutex_);
  std::vector<Lane*> lanes;
  for (const auto& [type, entry] : entries_) {
    if (entry.lane) lanes.push_back(entry.lane.get());
  }
  return lanes;
}

}  // namespace millrace
