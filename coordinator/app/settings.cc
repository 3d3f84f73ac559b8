#include "coordinator/app/settings.h"

#include "framework/store/url.h"

namespace millrace {
namespace {

Status RefuseZooKeeper(const CommonFlags& flags, const Environment& environment) {
  const bool flag = !flags.zk.empty();
  if (!flag && environment("MILLRACE_ZK").empty()) return {};
  return Fail(ErrorCode::Invalid,
              std::string(flag ? "--zk" : "MILLRACE_ZK") +
                  " is set, but this version runs without ZooKeeper; leave it out: a worker "
                  "without it owns all slices of its store, or those of --load-balance");
}

// The one store that a flag, the environment or the default names.
Status UseStore(Settings& settings, const CommonFlags& flags, const Environment& environment,
                const std::string& default_store) {
  std::string url = flags.store;
  settings.store_from = "--store";
  if (url.empty()) {
    url = environment("MILLRACE_STORE");
    settings.store_from = "MILLRACE_STORE";
  }
  if (url.empty() && !settings.config.shards.empty()) {
    settings.store_from = "the configuration";
    settings.shards = settings.config.shards;
    return {};
  }
  if (url.empty()) {
    url = default_store;
    settings.store_from = "the default";
  }
  if (url.empty()) {
    return Fail(ErrorCode::Invalid,
                "no store is named: give --store mysql://user@host:port/database, or set "
                "MILLRACE_STORE");
  }
  if (auto parsed = ParseStoreUrl(url); !parsed) {
    return Fail(ErrorCode::Invalid, settings.store_from + ": " + parsed.error().message);
  }
  settings.shards["main"].url = url;
  return {};
}

}  // namespace

Result<Settings> ResolveSettings(const CommonFlags& flags, const Environment& environment,
                                 const std::string& default_store) {
  if (auto zk = RefuseZooKeeper(flags, environment); !zk) return Fail(zk.error());
  Settings settings;
  const std::string file = flags.config.empty() ? environment("MILLRACE_CONFIG") : flags.config;
  if (!file.empty()) {
    auto config = LoadConfigFile(file);
    if (!config) return Fail(config.error());
    settings.config = std::move(*config);
  }
  if (auto used = UseStore(settings, flags, environment, default_store); !used) return Fail(used.error());
  for (auto& [name, shard] : settings.shards) {
    if (shard.password_file.empty()) shard.password_file = environment("MILLRACE_PASSWORD_FILE");
  }
  return settings;
}

}  // namespace millrace
