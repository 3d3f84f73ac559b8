// What a command works on: flags before the environment before the file before defaults.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "framework/base/result.h"
#include "framework/config/config.h"

namespace millrace {

// The flags that every command takes, as given; empty: not given.
struct CommonFlags {
  std::string store;
  std::string config;
  std::string zk;
  std::string cluster;
  std::string plugins;
  std::string state_dir;
  bool json = false;
  bool verbose = false;
};

struct Settings {
  Config config;
  std::map<std::string, ShardConfig> shards;  // never empty
  std::string store_from;  // where the shards are named: `--store`, `MILLRACE_STORE`, a file, `the default`
};

inline constexpr const char* kDefaultStore = "sqlite:millrace.db";

using Environment = std::function<std::string(const char* name)>;  // empty: not set

// Reads the configuration file and checks every store's URL. Without any store named it is `default_store`;
// where that is empty too, Invalid with what to type. Invalid for --zk: this version has no cluster.
Result<Settings> ResolveSettings(const CommonFlags& flags, const Environment& environment,
                                 const std::string& default_store);

}  // namespace millrace
