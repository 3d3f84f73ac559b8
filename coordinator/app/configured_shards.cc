#include "coordinator/app/configured_shards.h"

#include "coordinator/app/store_factory.h"
#include "framework/base/log.h"
#include "framework/store/url.h"

namespace millrace {
namespace {

bool SameServer(const ShardConfig& a, const ShardConfig& b) {
  return a.url == b.url && a.password_file == b.password_file;
}

Result<std::unique_ptr<Store>> Open(const ShardConfig& shard, Micros lease) {
  const auto url = ParseStoreUrl(shard.url);
  if (!url) return Fail(url.error());
  if (url->kind == StoreUrl::Kind::Sqlite) {
    return Fail(ErrorCode::Invalid, "a cluster's shard is on a server; SQLite files are for `millrace run`");
  }
  return MakeStore(shard, lease);
}

}  // namespace

ConfiguredShards::ConfiguredShards(ConfigSource& config, std::map<std::string, ShardConfig> fixed,
                                   std::string password_file)
    : config_(config), fixed_(std::move(fixed)), password_file_(std::move(password_file)) {}

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
  std::map<std::string, ShardConfig> wanted = fixed_.empty() ? config.shards : fixed_;
  refusals_.clear();
  std::erase_if(stores_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  for (auto& [name, shard] : wanted) {
    const ShardConfig named = shard;
    if (stores_.contains(name) && SameServer(opened_[name], named)) continue;
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

std::map<std::string, std::string> ConfiguredShards::Refusals() const {
  MutexLock lock(mutex_);
  return refusals_;
}

}  // namespace millrace
