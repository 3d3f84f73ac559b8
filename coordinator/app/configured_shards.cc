#include "coordinator/app/configured_shards.h"

#include "coordinator/app/shards.h"
#include "framework/base/log.h"
#include "framework/store/url.h"

namespace millrace::engine {
namespace {

bool SameStore(const ShardConfig& a, const ShardConfig& b) {
  return a.url == b.url && a.password_file == b.password_file && a.max_transactions == b.max_transactions;
}

Status CheckServer(const ShardConfig& shard) {
  BOOST_OUTCOME_TRY(url, ParseStoreUrl(shard.url));
  if (url.kind != StoreUrl::Kind::Sqlite) return {};
  return Fail(ErrorCode::Invalid, "a cluster's shard is on a server; SQLite files are for `millrace run`");
}

Result<std::unique_ptr<Store>> Open(const ShardConfig& shard, Micros lease) {
  BOOST_OUTCOME_TRYV(CheckServer(shard));
  return MakeStore(shard, lease);
}

}  // namespace

std::map<std::string, std::shared_ptr<Store>> ConfiguredShards::Shards() {
  const std::shared_ptr<const Config> config = config_.Current();
  MutexLock lock(mutex_);
  if (config != seen_) {
    Follow(*config);
    seen_ = config;
  }
  return stores_;
}

void ConfiguredShards::Follow(const Config& config) {
  std::map<std::string, ShardConfig> wanted = config.shards;
  refusals_.clear();
  std::erase_if(stores_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  for (auto& [name, shard] : wanted) {
    const ShardConfig named = shard;
    if (stores_.contains(name) && SameStore(opened_[name], named)) continue;
    if (shard.password_file.empty()) shard.password_file = password_file_;
    auto store = Open(shard, config.engine.lease);
    if (!store) {
      refusals_[name] = store.error().message;
      LogError("a shard is refused; the last good one stays",
               {{"shard", name}, {"why", store.error().message}});
      continue;
    }
    stores_[name] = std::move(*store);
    opened_[name] = named;
  }
}

std::vector<std::string> ConfiguredShards::Served(const Config& config) const {
  std::vector<std::string> served;
  for (const auto& [name, shard] : config.shards) {
    if (CheckServer(shard)) served.push_back(name);
  }
  return served;
}

std::map<std::string, std::string> ConfiguredShards::Refusals() const {
  MutexLock lock(mutex_);
  return refusals_;
}

}  // namespace millrace::engine
