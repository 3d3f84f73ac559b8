#include "framework/worker/lane_set.h"

#include <algorithm>
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
      secrets_read_(parts.clock.Now()) {
  Regroup(*config_);
}

LaneRules LaneSet::RulesOf(const Config& config) const {
  LaneRules rules{config.engine.queues, config.engine.aging, std::nullopt};
  if (rules.queues.by != QueuesConfig::By::Handler) rules.threads = rules_.concurrency;
  return rules;
}

std::shared_ptr<Lane> LaneSet::NewLane(const std::string& type, const Config& config) const {
  return shared_ ? shared_ : std::make_shared<Lane>(parts_, type, RulesOf(config));
}

// What is queued goes over to the new lanes; what runs ends in the old ones.
void LaneSet::Regroup(const Config& config) {
  std::vector<std::shared_ptr<Lane>> left;
  {
    MutexLock lock(mutex_);
    const bool shares = config.engine.queues.by != QueuesConfig::By::Handler;
    if (shares == (shared_ != nullptr)) return;
    if (shared_) left.push_back(shared_);
    for (const auto& [type, entry] : entries_) {
      if (shares && entry.lane) left.push_back(entry.lane);
    }
    for (const auto& lane : left) lane->Close();
    left_.insert(left_.end(), left.begin(), left.end());
    shared_ = shares ? std::make_shared<Lane>(parts_, "shared", RulesOf(config)) : nullptr;
    for (auto& [type, entry] : entries_) {
      if (!entry.lane) continue;
      entry.lane = NewLane(type, config);
      entry.lane->Follow(type, SetupOf(config.HandlerFor(type), entry.handler));
    }
    TellElsewhere();
  }
  for (const auto& lane : left) MoveQueued(*lane);
}

// A type has no more threads than its concurrency, those of its former lane among them.
void LaneSet::TellElsewhere() {
  std::map<std::string, std::size_t> busy;
  for (const auto& lane : left_) {
    for (const auto& [type, threads] : lane->CurrentLoad().busy) busy[type] += threads;
  }
  for (const auto& lane : InUse()) lane->FollowElsewhere(busy);
}

void LaneSet::MoveQueued(Lane& from) {
  for (const AttemptPtr& attempt : from.TakeQueued()) {
    std::vector<AttemptPtr> one{attempt};
    if (!Take(attempt->task.handler, one)) GiveBack(attempt);
  }
}

void LaneSet::Watch(BootTime now) {
  for (const auto& lane : All()) lane->Watch(now);
  std::vector<std::shared_ptr<Lane>> left;
  {
    MutexLock lock(mutex_);
    left = left_;
  }
  for (const auto& lane : left) MoveQueued(*lane);  // what a thread there took and did not start
  if (left.empty()) return;
  MutexLock lock(mutex_);
  std::erase_if(left_, [](const auto& lane) { return lane->Over(); });
  TellElsewhere();
}

LaneSet::Loads LaneSet::CurrentLoads() const {
  Loads loads;
  const std::shared_ptr<Lane> shared = [this] {
    MutexLock lock(mutex_);
    return shared_;
  }();
  for (const auto& lane : All()) {
    Lane::Load load = lane->CurrentLoad();
    loads.threads[lane->name()] += load.threads;
    for (const auto& [type, busy] : load.busy) loads.busy[type] += busy;
    loads.full.merge(load.full);
    if (lane == shared) loads.queues = std::move(load.queues);
  }
  return loads;
}

std::shared_ptr<const Config> LaneSet::Current() const {
  MutexLock lock(mutex_);
  return config_;
}

Result<LaneSet::Opening> LaneSet::Wanted(const std::string& type, const HandlerConfig& config) const {
  BOOST_OUTCOME_TRY(secrets, ReadSecrets(type, config));
  return Opening{config.ServedBy(type), config.options, std::move(secrets)};
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

std::shared_ptr<const Config> LaneSet::WithThreads(const Config& config) const {
  auto own = std::make_shared<Config>(config);
  const LaneRules rules = RulesOf(config);
  MutexLock lock(mutex_);
  const auto is_open = [](const auto& entry) { return entry.second.lane != nullptr; };
  const auto types = static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), is_open));
  for (auto& [type, handler] : own->handlers) {
    const auto entry = entries_.find(type);
    const std::size_t threads = entry != entries_.end() && entry->second.handler
                                    ? SetupOf(handler, entry->second.handler).threads
                                    : rules_.concurrency.value_or(handler.concurrency);
    handler.concurrency = static_cast<std::uint32_t>(rules.MostOf(threads, types));
  }
  return own;
}

Result<LaneSet::Entry> LaneSet::NewEntry(const std::string& type, const Config& config) const {
  BOOST_OUTCOME_TRY(wanted, Wanted(type, config.HandlerFor(type)));
  BOOST_OUTCOME_TRY(handler, Open(type, wanted));
  std::shared_ptr<Lane> lane;
  {
    MutexLock lock(mutex_);
    lane = NewLane(type, config);
  }
  lane->Follow(type, SetupOf(config.HandlerFor(type), handler));
  return Entry{std::move(lane), std::move(wanted), std::move(handler)};
}

std::string LaneSet::RefusalOf(const Error& error, bool configured) const {
  const bool elsewhere = error.code == ErrorCode::NotFound && (!configured || rules_.partial);
  return elsewhere ? "" : error.message;
}

OpenRetry LaneSet::RetryAfter(const Error& error, OpenRetry retry) const {
  if (error.code == ErrorCode::NotFound) return {};
  retry.Refused(parts_.clock.Now());
  return retry;
}

Status LaneSet::OpenConfigured() {
  const std::shared_ptr<const Config> config = Current();
  for (const auto& [type, handler_config] : config->handlers) {
    auto entry = NewEntry(type, *config);
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
    // What could not be opened and is configured no longer is asked again once there is a task of it.
    std::erase_if(entries_,
                  [&](const auto& one) { return !one.second.lane && !config->handlers.contains(one.first); });
    for (const auto& [type, entry] : entries_) types.insert(type);
  }
  Regroup(*config);
  for (const auto& lane : All()) lane->Follow(RulesOf(*config));
  for (const std::string& type : types) Refresh(type, *config);
}

bool LaneSet::LookAgain() {
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
  return !due.empty();
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
    entry.lane->Follow(type, SetupOf(wanted, entry.handler));
  } else if (auto opened = NewEntry(type, config)) {
    entry = std::move(*opened);
    if (again) LogInfo("a handler that had refused to open is open now", {{"type", type}});
  } else {
    entry.refusal = RefusalOf(opened.error(), config.handlers.contains(type));
    entry.retry = RetryAfter(opened.error(), entry.retry);
  }
  Entry former;  // goes once nothing is locked
  MutexLock lock(mutex_);
  Entry& known = entries_[type];
  if (known.lane && known.lane != entry.lane) return;  // somebody needed it meanwhile, by this configuration
  former = std::exchange(known, std::move(entry));
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

HandlerRefusals LaneSet::Refusals() const {
  MutexLock lock(mutex_);
  HandlerRefusals refusals;
  for (const auto& [type, entry] : entries_) {
    if (entry.refusal.empty()) continue;
    const bool asked_again = !entry.lane && entry.retry.Waits();
    refusals[type] = entry.refusal + (asked_again ? "; it is asked again within a minute" : "");
  }
  return refusals;
}

HandlerRefusals LaneSet::Unopened() const {
  MutexLock lock(mutex_);
  HandlerRefusals unopened;
  for (const auto& [type, entry] : entries_) {
    if (!entry.lane && !entry.refusal.empty()) unopened[type] = entry.refusal;
  }
  return unopened;
}

std::shared_ptr<Lane> LaneSet::For(const std::string& type) {
  while (true) {
    std::shared_ptr<const Config> config;
    std::shared_ptr<Lane> shared;
    {
      MutexLock lock(mutex_);
      const auto known = entries_.find(type);
      if (known != entries_.end()) return known->second.lane;
      config = config_;
      shared = shared_;
    }
    auto entry = NewEntry(type, *config);  // foreign code: nobody else is to wait for it
    MutexLock lock(mutex_);
    if (config_ != config || shared_ != shared) continue;  // opened by what is no longer in force
    const auto [place, added] = entries_.try_emplace(type, entry ? *entry : Entry{});
    if (added && !entry) {
      place->second.refusal = RefusalOf(entry.error(), config->handlers.contains(type));
      place->second.retry = RetryAfter(entry.error(), {});
      LogWarning("tasks of this type can't be run here; they stay waiting",
                 {{"type", type}, {"why", entry.error().message}});
    }
    return place->second.lane;
  }
}

LaneRoom LaneSet::Room(const std::string& type, const AttemptHost& shard, std::uint32_t urgency) {
  const auto lane = For(type);
  return lane ? lane->Room(type, shard, urgency) : LaneRoom{};
}

Micros LaneSet::BusyFor() {
  Micros longest{0};
  for (const auto& lane : All()) longest = std::max(longest, lane->BusyFor(parts_.clock.Now()));
  return longest;
}

// A lane that is closed has another in its place, or the worker has ended.
bool LaneSet::Take(const std::string& type, std::vector<AttemptPtr>& attempts) {
  for (auto lane = For(type); lane;) {
    if (lane->Push(type, attempts)) {
      if (rests_.load() == nullptr) return true;
      if (Signal* rests = rests_.exchange(nullptr)) rests->Notify();
      return true;
    }
    auto now = For(type);
    if (now == lane) return false;
    lane = std::move(now);
  }
  return false;
}

void LaneSet::StartsAgain(const std::string& type) const {
  std::shared_ptr<Lane> lane;
  {
    MutexLock lock(mutex_);
    if (const auto known = entries_.find(type); known != entries_.end()) lane = known->second.lane;
  }
  if (lane) lane->StartsAgain(type);
}

std::vector<std::shared_ptr<Lane>> LaneSet::All() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Lane>> lanes = left_;
  for (auto& lane : InUse()) lanes.push_back(std::move(lane));
  return lanes;
}

std::vector<std::shared_ptr<Lane>> LaneSet::InUse() const {
  std::vector<std::shared_ptr<Lane>> lanes;
  if (shared_) lanes.push_back(shared_);
  for (const auto& [type, entry] : entries_) {
    if (entry.lane && entry.lane != shared_) lanes.push_back(entry.lane);
  }
  return lanes;
}

}  // namespace millrace::engine
