// The shards of a cluster: those that `config/shards` names, opened as it changes, or the one of --store.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "coordinator/app/settings.h"
#include "framework/base/mutex.h"
#include "framework/worker/ports.h"

namespace millrace {

// Thread-safe.
class ConfiguredShards final : public ShardSource {
 public:
  // `fixed`: the shards named on this command line; they go before those of the configuration.
  // `password_file` serves shards that name none.
  ConfiguredShards(ConfigSource& config, std::map<std::string, ShardConfig> fixed, std::string password_file);

  std::map<std::string, std::shared_ptr<Store>> Shards() override;
  // A SQLite file in the configuration of a cluster, an address that can't be read: by shard, for the status.
  std::map<std::string, std::string> Refusals() const;

 private:
  void Follow(const Config& config);

  ConfigSource& config_;
  const std::map<std::string, ShardConfig> fixed_;
  const std::string password_file_;
  mutable Mutex mutex_;
  std::shared_ptr<const Config> seen_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, ShardConfig> opened_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Store>> stores_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::string> refusals_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
