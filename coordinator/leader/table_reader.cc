#include "coordinator/leader/table_reader.h"

#include <set>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr const char* kNoShard =
    "no shard is known, so nothing is planned: name the shards with millrace config set shards, or start all "
    "workers and coordinators with one --store";

}  // namespace

void TableReader::Update() {
  const bool leading = parts_.leading();  // asked first: whoever leads knows the configuration
  const Shards shards = parts_.shards.Shards();
  Retire(shards);
  (void)Reap();
  Hire(shards);
  Warn(leading && shards.empty());
  Publish(Gather());
}

// Those of shards that are gone, or have another store now.
void TableReader::Retire(const Shards& staying) {
  for (auto it = keepers_.begin(); it != keepers_.end();) {
    const auto found = staying.find(it->first);
    if (found != staying.end() && found->second == it->second->store()) {
      ++it;
      continue;
    }
    retired_.push_back(std::move(it->second));
    it = keepers_.erase(it);
  }
}

// True: nobody is left who was to stop.
bool TableReader::Reap() {
  std::erase_if(retired_, [](const auto& keeper) { return keeper->AskToStop(); });
  return retired_.empty();
}

void TableReader::Hire(const Shards& shards) {
  for (const auto& [name, store] : shards) {
    if (keepers_.contains(name)) continue;
    auto keeper = std::make_unique<ShardKeeper>(
        ShardKeeper::Parts{name, store, parts_.leading, [this] { return parts_.config.Current(); },
                           parts_.ownership, parts_.round, parts_.standing});
    const Status started = keeper->Start();  // where it can't be, with the next look
    if (!started && !no_thread_) {
      LogError("a shard's tables can't be read yet; it is tried again until they can",
               {{"shard", name}, {"error", started.error().message}});
    }
    no_thread_ = !started;
    if (started) keepers_.emplace(name, std::move(keeper));
  }
}

void TableReader::Warn(bool no_shard) {
  if (no_shard == no_shard_) return;
  no_shard_ = no_shard;
  if (no_shard) LogWarning(kNoShard);
  if (!keepers_.empty())
    LogInfo("shards are known now; their slices are planned", {{"shards", keepers_.size()}});
}

bool TableReader::Stop() {
  Retire({});
  Signal never;
  for (int i = 0; i < 100; ++i) {
    if (Reap()) return true;
    never.WaitFor(std::chrono::milliseconds(10));
  }
  return false;
}

TableFindings TableReader::Gather() const {
  TableFindings findings;
  TableCatalog catalog;
  for (const auto& [shard, keeper] : keepers_) {
    for (const std::string& type : keeper->Unrunnable()) findings.unrunnable.push_back(shard + ": " + type);
    if (const std::string why = keeper->Trouble(); !why.empty()) {
      findings.troubles.push_back("shard " + shard + ": " + why);
    }
    const auto tables = keeper->Tables();
    catalog.Add(shard, tables ? &*tables : nullptr);
  }
  const UnopenedShards unopened = parts_.unopened();
  for (const auto& [shard, why] : unopened.refused) {
    findings.troubles.push_back("shard " + shard + " is refused: " + why);
    if (!keepers_.contains(shard)) catalog.Add(shard, nullptr);
  }
  catalog.others = unopened.others;
  findings.unread = Unread(unopened);
  if (no_shard_) findings.troubles.push_back(kNoShard);
  // Without a shard there is nothing to plan anew: a slip of the hand must not take all slices from all.
  if (!keepers_.empty()) findings.catalog = std::make_shared<const TableCatalog>(std::move(catalog));
  return findings;
}

std::optional<std::vector<std::string>> TableReader::Unread(const UnopenedShards& unopened) const {
  if (unopened.others || (keepers_.empty() && unopened.refused.empty())) return std::nullopt;
  std::set<std::string> unread;
  for (const auto& [shard, keeper] : keepers_) {
    const std::optional<bool> readable = keeper->Readable();
    if (!readable) return std::nullopt;
    if (!*readable) unread.insert(shard);
  }
  for (const auto& [shard, why] : unopened.refused) unread.insert(shard);
  return std::vector(unread.begin(), unread.end());
}

void TableReader::Publish(TableFindings findings) {
  {
    MutexLock lock(mutex_);
    const auto& known = findings_.catalog;
    const bool same = findings.catalog == nullptr || (known != nullptr && *known == *findings.catalog);
    if (same) findings.catalog = known;
    if (same && findings.unrunnable == findings_.unrunnable && findings.troubles == findings_.troubles &&
        findings.unread == findings_.unread)
      return;
    findings_ = std::move(findings);
  }
  parts_.changed();
}

TableFindings TableReader::Findings() const {
  MutexLock lock(mutex_);
  return findings_;
}

}  // namespace millrace::engine
