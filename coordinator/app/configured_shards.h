// The shards of a cluster, opened as its configuration changes.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "framework/base/mutex.h"
#include "framework/worker/ports.h"

namespace millrace::engine {

// Thread-safe.
class ConfiguredShards final : public ShardSource {
 public:
  // `password_file` serves shards that name none.
  ConfiguredShards(ConfigSource& config, std::string password_file)
      : config_(config), password_file_(std::move(password_file)) {}

  std::map<std::string, std::shared_ptr<Store>> Shards() override;
  // Those of this configuration that this process can open; sorted.
  std::vector<std::string> Served(const Config& config) const;
  // A SQLite file in the configuration of a cluster, an address that can't be read: by shard, for the status.
  std::map<std::string, std::string> Refusals() const;

 private:
  void Follow(const Config& config);

  ConfigSource& config_;
  const std::string password_file_;
  mutable Mutex mutex_;
  std::shared_ptr<const Config> seen_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, ShardConfig> opened_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Store>> stores_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, std::string> refusals_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
