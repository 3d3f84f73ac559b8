#include "coordinator/leader/table_reader.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace {

void TableReader::Update() {
  const Shards shards = parts_.shards.Shards();
  Retire(shards);
  (void)Reap();
  Hire(shards);
  Warn(shards.empty() && parts_.leading());
  Publish();
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
    auto& keeper = keepers_[name];
    if (keeper) continue;
    const std::string shard = name;
    keeper = std::make_unique<ShardKeeper>(ShardKeeper::Parts{shard, store, parts_.leading,
                                                              [this] { return parts_.config.Current(); },
                                                              parts_.ownership, parts_.round});
    keeper->Start();
  }
}

void TableReader::Warn(bool no_shard) {
  if (no_shard && !warned_) {
    LogWarning(
        "leading without a shard: nothing is planned; name the shards by millrace config set shards, or "
        "start this process with --store");
  }
  warned_ = no_shard;
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

void TableReader::Publish() {
  if (keepers_.empty()) return;  // the configuration is not known yet; a cluster has a shard
  TableCatalog catalog;
  std::vector<std::string> unrunnable;
  for (const auto& [shard, keeper] : keepers_) {
    for (const std::string& type : keeper->Unrunnable()) unrunnable.push_back(shard + ": " + type);
    const auto tables = keeper->Tables();
    if (!tables) {
      catalog.unread.insert(shard);
      continue;
    }
    for (const TableInfo& info : *tables)
      catalog.tables.push_back({shard, info.table, info.slices, info.beyond});
  }
  std::sort(catalog.tables.begin(), catalog.tables.end());
  {
    MutexLock lock(mutex_);
    unrunnable_ = std::move(unrunnable);
    if (catalog_ != nullptr && *catalog_ == catalog) return;
    catalog_ = std::make_shared<const TableCatalog>(std::move(catalog));
  }
  parts_.changed();
}

std::shared_ptr<const TableCatalog> TableReader::Catalog() const {
  MutexLock lock(mutex_);
  return catalog_;
}

std::vector<std::string> TableReader::Unrunnable() const {
  MutexLock lock(mutex_);
  return unrunnable_;
}

}  // namespace millrace
