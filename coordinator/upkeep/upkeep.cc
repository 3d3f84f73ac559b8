#include "coordinator/upkeep/upkeep.h"

#include <set>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr const char* kNoShard =
    "no shard is known, so nothing is planned: name the shards with millrace config set shards, or start all "
    "workers and coordinators with one --store";

}  // namespace

void Upkeep::Update() {
  const bool leading = parts_.leading();  // asked first: whoever leads knows the configuration
  const StoresByShard shards = parts_.shards();
  Retire(shards);
  (void)Reap();
  Hire(shards);
  FollowConfig();
  if (const Status followed = batches_.Follow(shards); !followed && !no_batches_) {
    LogError("the ends of batches can't be decided yet; it is tried again until they can",
             {{"error", followed.error().message}});
    no_batches_ = true;
  }
  Warn(leading && shards.empty());
  Publish(Gather());
}

// Those of shards that are gone, or have another store now.
void Upkeep::Retire(const StoresByShard& staying) {
  for (auto it = shards_.begin(); it != shards_.end();) {
    const auto found = staying.find(it->first);
    if (found != staying.end() && found->second == it->second->store()) {
      ++it;
      continue;
    }
    retired_.push_back(std::move(it->second));
    it = shards_.erase(it);
  }
  std::erase_if(no_thread_, [&](const std::string& name) { return !staying.contains(name); });
}

// True: nobody is left who was to stop.
bool Upkeep::Reap() {
  std::erase_if(retired_, [](const auto& upkeep) { return upkeep->AskToStop(); });
  return retired_.empty();
}

void Upkeep::Hire(const StoresByShard& shards) {
  for (const auto& [name, store] : shards) {
    if (shards_.contains(name)) continue;
    auto upkeep = std::make_unique<ShardUpkeep>(ShardUpkeep::Parts{
        name, store, parts_.leading, parts_.config, parts_.ownership, parts_.round, parts_.standing,
        &standings_, parts_.schedules, parts_.breakers, &board_, parts_.divides, parts_.prunes});
    const Status started = upkeep->Start();  // where it can't be, with the next look
    if (started) {
      no_thread_.erase(name);
      shards_.emplace(name, std::move(upkeep));
    } else if (no_thread_.insert(name).second) {
      LogError("a shard's tables can't be read yet; it is tried again until they can",
               {{"shard", name}, {"error", started.error().message}});
    }
  }
}

void Upkeep::FollowConfig() {
  auto config = parts_.config();
  if (config == followed_) return;
  followed_ = std::move(config);
  for (const auto& [name, upkeep] : shards_) upkeep->LookNow();
}

void Upkeep::Warn(bool no_shard) {
  if (no_shard == no_shard_) return;
  no_shard_ = no_shard;
  if (no_shard) LogWarning(kNoShard);
  if (!shards_.empty())
    LogInfo("shards are known now; their slices are planned", {{"shards", shards_.size()}});
}

bool Upkeep::Stop() {
  Retire({});
  Signal never;
  for (int i = 0; i < 100; ++i) {
    const bool reaped = Reap();
    if (batches_.AskToStop() && reaped) return true;
    never.WaitFor(std::chrono::milliseconds(10));
  }
  return false;
}

TableFindings Upkeep::Gather() const {
  TableFindings findings;
  TableCatalog catalog;
  for (const auto& [shard, upkeep] : shards_) {
    for (const std::string& type : upkeep->Unrunnable()) findings.unrunnable.push_back(shard + ": " + type);
    for (std::string& trouble : upkeep->ScheduleTroubles()) findings.troubles.push_back(std::move(trouble));
    for (const std::string& why : upkeep->PruneTroubles())
      findings.troubles.push_back("shard " + shard + ": " + why);
    if (const std::string why = upkeep->Trouble(); !why.empty()) {
      findings.troubles.push_back("shard " + shard + ": " + why);
    }
    for (const std::string& why : upkeep->FanOutTroubles())
      findings.troubles.push_back("shard " + shard + ": " + why);
    const auto tables = upkeep->Tables();
    catalog.Add(shard, tables ? &*tables : nullptr);
    findings.lives[shard] = upkeep->Lives();
  }
  const UnopenedShards unopened = parts_.unopened();
  for (const auto& [shard, why] : unopened.refused) {
    findings.troubles.push_back("shard " + shard + " is refused: " + why);
    if (!shards_.contains(shard)) catalog.Add(shard, nullptr);
    findings.lives.try_emplace(shard);
  }
  catalog.others = unopened.others;
  if (unopened.others) findings.lives.try_emplace("");  // of shards that nobody here knows
  findings.unread = Unread(unopened);
  if (no_shard_) findings.troubles.push_back(kNoShard);
  // Without a shard there is nothing to plan anew: a slip of the hand must not take all slices from all.
  if (!shards_.empty()) findings.catalog = std::make_shared<const TableCatalog>(std::move(catalog));
  return findings;
}

std::optional<std::vector<std::string>> Upkeep::Unread(const UnopenedShards& unopened) const {
  if (unopened.others || (shards_.empty() && unopened.refused.empty())) return std::nullopt;
  std::set<std::string> unread;
  for (const auto& [shard, upkeep] : shards_) {
    const std::optional<bool> readable = upkeep->Readable();
    if (!readable) return std::nullopt;
    if (!*readable) unread.insert(shard);
  }
  for (const auto& [shard, why] : unopened.refused) unread.insert(shard);
  return std::vector(unread.begin(), unread.end());
}

void Upkeep::Publish(TableFindings findings) {
  {
    MutexLock lock(mutex_);
    const auto& known = findings_.catalog;
    const bool same = findings.catalog == nullptr || (known != nullptr && *known == *findings.catalog);
    if (same) findings.catalog = known;
    if (same && findings.unrunnable == findings_.unrunnable && findings.troubles == findings_.troubles &&
        findings.unread == findings_.unread && findings.lives == findings_.lives)
      return;
    findings_ = std::move(findings);
  }
  parts_.changed();
}

TableFindings Upkeep::Findings() const {
  MutexLock lock(mutex_);
  return findings_;
}

}  // namespace millrace::engine
