#include "coordinator/leader/table_reader.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace {

void TableReader::Update() {
  const auto shards = parts_.shards.Shards();
  std::erase_if(keepers_, [&](const auto& entry) {
    const auto found = shards.find(entry.first);
    return found == shards.end() || found->second != entry.second->store();
  });
  for (const auto& [name, store] : shards) {
    auto& keeper = keepers_[name];
    if (keeper) continue;
    const std::string shard = name;
    keeper = std::make_unique<ShardKeeper>(ShardKeeper::Parts{shard, store, parts_.leading,
                                                              [this] { return parts_.config.Current(); },
                                                              parts_.ownership, parts_.round});
    keeper->Start();
  }
  Warn(shards.empty() && parts_.leading());
  Publish();
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
  Signal never;
  for (int i = 0; i < 100; ++i) {
    bool idle = true;
    for (const auto& [name, keeper] : keepers_) idle = keeper->AskToStop() && idle;
    if (idle) {
      keepers_.clear();
      return true;
    }
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
