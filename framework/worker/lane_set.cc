#include "framework/worker/lane_set.h"

#include <set>
#include <utility>

#include "framework/base/log.h"
#include "framework/worker/handler_secrets.h"

namespace millrace::engine {
namespace {

constexpr Micros kSecretsAge = std::chrono::seconds(60);

}  // namespace

LaneSet::LaneSet(LaneParts parts, const PluginSet& plugins, std::shared_ptr<const Config> config, Rules rules)
    : parts_(parts),
      plugins_(plugins),
      rules_(rules),
      config_(std::move(config)),
      secrets_read_(parts.clock.Now()) {}

std::shared_ptr<const Config> LaneSet::Current() const {
  MutexLock lock(mutex_);
  return config_;
}

Result<LaneSet::Opening> LaneSet::Wanted(const std::string& type, const HandlerConfig& config) const {
  BOOST_OUTCOME_TRY(secrets, ReadSecrets(type, config));
  return Opening{config.uses.empty() ? type : config.uses, config.options, std::move(secrets)};
}

Result<std::shared_ptr<HandlerInstance>> LaneSet::Open(const std::string& type,
                                                       const Opening& opening) const {
  BOOST_OUTCOME_TRY(handler, plugins_.Open(opening.uses, type, opening.options, opening.secrets));
  return std::shared_ptr<HandlerInstance>(std::move(handler));
}

LaneSetup LaneSet::SetupOf(const HandlerConfig& config, std::shared_ptr<HandlerInstance> handler) const {
  HandlerConfig in_force = Over(handler->Defaults(), config);
  const std::uint32_t threads = rules_.concurrency.value_or(in_force.concurrency);
  return {std::move(in_force), std::move(handler), threads};
}

Result<LaneSet::Entry> LaneSet::NewEntry(const std::string& type, const HandlerConfig& config) const {
  BOOST_OUTCOME_TRY(wanted, Wanted(type, config));
  BOOST_OUTCOME_TRY(handler, Open(type, wanted));
  auto lane = std::make_unique<Lane>(parts_, type, SetupOf(config, handler));
  return Entry{std::move(lane), std::move(wanted), std::move(handler)};
}

std::string LaneSet::RefusalOf(const Error& error, bool configured) const {
  if (error.code != ErrorCode::NotFound) return error.message + "; it is asked again within a minute";
  return configured && !rules_.partial ? error.message : "";
}

OpenRetry LaneSet::RetryAfter(const Error& error, OpenRetry retry) const {
  if (error.code == ErrorCode::NotFound) return {};
  retry.Refused(parts_.clock.Now());
  return retry;
}

Status LaneSet::OpenConfigured() {
  const std::shared_ptr<const Config> config = Current();
  for (const auto& [type, handler_config] : config->handlers) {
    auto entry = NewEntry(type, handler_config);
    if (!entry && RefusalOf(entry.error(), true).empty()) continue;
    if (!entry) return Fail(entry.error());
    BOOST_OUTCOME_TRYV(entry->lane->Threads());
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

void LaneSet::LookAgain() {
  const BootTime now = parts_.clock.Now();
  const bool read_secrets = now >= secrets_read_ + kSecretsAge;
  if (read_secrets) secrets_read_ = now;
  std::vector<std::string> due;
  std::shared_ptr<const Config> config;
  {
    MutexLock lock(mutex_);
    config = config_;
    for (const auto& [type, entry] : entries_) {
      const bool may_be_new = read_secrets && entry.lane && !config->HandlerFor(type).secrets.empty();
      if (entry.retry.Due(now) || (may_be_new && !entry.retry.Waits())) due.push_back(type);
    }
  }
  for (const std::string& type : due) Refresh(type, *config, true);
}

std::optional<LaneSet::Entry> LaneSet::Known(const std::string& type) const {
  MutexLock lock(mutex_);
  const auto known = entries_.find(type);
  return known == entries_.end() ? std::nullopt : std::optional(known->second);
}

// Foreign code opens and closes handlers here: it may take its time, so nothing is locked meanwhile.
void LaneSet::Refresh(const std::string& type, const Config& config, bool again) {
  const HandlerConfig& wanted = config.HandlerFor(type);
  Entry entry = Known(type).value_or(Entry{});
  if (!again) {
    entry.refusal.clear();
    entry.retry = {};
  }
  if (entry.lane) {
    Reopen(type, wanted, entry);
    entry.lane->Follow(SetupOf(wanted, entry.handler));
  } else if (auto opened = NewEntry(type, wanted)) {
    entry = std::move(*opened);
    if (again) LogInfo("a handler that had refused to open is open now", {{"type", type}});
  } else {
    entry.refusal = RefusalOf(opened.error(), config.handlers.contains(type));
    entry.retry = RetryAfter(opened.error(), entry.retry);
  }
  MutexLock lock(mutex_);
  Entry& known = entries_[type];
  if (known.lane && known.lane != entry.lane) return;  // somebody needed it meanwhile, by this configuration
  known = std::move(entry);
}

void LaneSet::Reopen(const std::string& type, const HandlerConfig& config, Entry& entry) const {
  const std::string refused = std::exchange(entry.refusal, {});
  const OpenRetry retry = std::exchange(entry.retry, {});
  auto wanted = Wanted(type, config);
  if (wanted && *wanted == entry.opening) return;
  Result<std::shared_ptr<HandlerInstance>> opened =
      wanted ? Open(type, *wanted) : Result<std::shared_ptr<HandlerInstance>>(Fail(wanted.error()));
  if (opened) {
    entry.handler = std::move(*opened);
    entry.opening = std::move(*wanted);
    LogInfo("handler opened anew: its configuration or a secret has changed", {{"type", type}});
    return;
  }
  entry.retry = RetryAfter(opened.error(), retry);
  entry.refusal = opened.error().message + "; the former uses, options and secrets stay in force" +
                  (entry.retry.Waits() ? ", and it is asked again within a minute" : "");
  if (entry.refusal == refused) return;  // which was logged
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
    std::shared_ptr<const Config> config;
    {
      MutexLock lock(mutex_);
      const auto known = entries_.find(type);
      if (known != entries_.end()) return known->second.lane.get();
      config = config_;
    }
    auto entry = NewEntry(type, config->HandlerFor(type));  // foreign code: nobody else is to wait for it
    MutexLock lock(mutex_);
    if (config_ != config) continue;  // opened by what is no longer in force
    const auto [place, added] = entries_.try_emplace(type, entry ? *entry : Entry{});
    if (added && !entry) {
      place->second.refusal = RefusalOf(entry.error(), config->handlers.contains(type));
      place->second.retry = RetryAfter(entry.error(), {});
      LogWarning("tasks of this type can't be run here; they stay waiting",
                 {{"type", type}, {"why", entry.error().message}});
    }
    return place->second.lane.get();
  }
}

LaneRoom LaneSet::Room(const std::string& type, const AttemptHost& shard, std::uint32_t) {
  const Lane* lane = For(type);
  return {lane == nullptr ? 0 : lane->Room(shard)};
}

Micros LaneSet::BusyFor() {
  Micros longest{0};
  for (const Lane* lane : All()) longest = std::max(longest, lane->BusyFor(parts_.clock.Now()));
  return longest;
}

bool LaneSet::Take(const std::string& type, std::vector<AttemptPtr>& attempts) {
  Lane* lane = For(type);
  if (lane != nullptr) lane->Push(std::move(attempts));
  return lane != nullptr;
}

void LaneSet::StartsAgain(const std::string& type) const {
  if (const std::optional<Entry> known = Known(type); known && known->lane) known->lane->StartsAgain();
}

std::vector<Lane*> LaneSet::All() const {
  MutexLock lock(mutex_);
  std::vector<Lane*> lanes;
  for (const auto& [type, entry] : entries_) {
    if (entry.lane) lanes.push_back(entry.lane.get());
  }
  return lanes;
}

}  // namespace millrace::engine
