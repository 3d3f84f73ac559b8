// What a command works on: flags before the environment before the file before defaults; and where things are
// by default on this machine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordination/config_layers.h"
#include "framework/base/result.h"
#include "framework/config/config.h"

namespace millrace::engine {

// The flags that every command takes, as given; empty: not given.
struct CommonFlags {
  std::string store;
  std::string config;
  std::string zk;
  std::string zk_auth_file;
  std::string cluster;
  std::string plugins;
  std::string state_dir;
  std::string log;  // text, json
  bool json = false;
  bool verbose = false;
};

// Which cluster is meant.
struct ClusterAddress {
  std::string servers;  // host:port,…/chroot
  std::string name = "default";
  std::string auth_file = {};  // empty: no digest
};

struct Settings {
  Config config;
  std::string config_file;  // empty: none was given
  std::string config_text;  // what stands in it
  OwnStore own_store;       // that a flag or the environment names
  // What a process without a cluster works on; of one with a cluster only where that names no shards.
  std::map<std::string, ShardConfig> shards;
  std::string store_from;  // where the shards are named: `--store`, `MILLRACE_STORE`, a file, `the default`
  std::string password_file;  // for shards that name none
  bool doorbell = false;  // follow the binary log of shards that name no account for it with the store's own
  std::optional<ClusterAddress> cluster;
};

inline constexpr const char* kDefaultStore = "sqlite:millrace.db";

using Environment = std::function<std::string(const char* name)>;  // empty: not set

// Reads the configuration file and checks every store's URL. Without any store named it is that of the
// cluster, or else `default_store`; where that is empty too, Invalid with what to type.
Result<Settings> ResolveSettings(const CommonFlags& flags, const Environment& environment,
                                 const std::string& default_store);
// The same for a command that works on a cluster: Invalid, with what to type, where none is named.
Result<Settings> ResolveCluster(const CommonFlags& flags, const Environment& environment);

// Where a key of the configuration file stands, `millrace.json:7`; where it does not, its nearest parent.
std::string PlaceInFile(const Settings& settings, const std::vector<std::string>& key);

// The command line names a store, and no cluster: that of the environment need not be the store's.
bool IsOtherStore(const CommonFlags& flags);

// A variable of the environment; empty where it is not set.
std::string Variable(const char* name);

// The folder of the shipped plugins: beside the binary in a build tree; where it is installed, the folder
// that the build was configured for, found from the binary's own.
std::string DefaultPluginFolder();

// $XDG_STATE_HOME/millrace, or ~/.local/state/millrace; a folder of its own under /tmp for a user without a
// home.
std::string DefaultStateFolder();

// The folder's real path; it is made where it is missing. Invalid where it can't be used, or where others
// could change what is in it (framework/files/trust.h): recorders and loaded plugins stand there.
Result<std::string> MakeStateFolder(const std::string& folder);

// user@host, for the audit.
std::string Actor();

// What a flag says; Invalid, with its name, where that can't be read.
Result<Micros> ReadDuration(const char* flag, const std::string& text);
Result<WallTime> ReadTime(const char* flag, const std::string& text);
// Reads a flag into `to`; nothing where it was not given.
template <class Value>
Status ReadIfGiven(const char* flag, const std::string& text,
                   Result<Value> (*read)(const char*, const std::string&), std::optional<Value>& to) {
  if (text.empty()) return {};
  BOOST_OUTCOME_TRY(value, read(flag, text));
  to = value;
  return {};
}
// Of --params; as CheckParams, with the flag's name.
Status CheckParamsFlag(const std::string& params);
// Of --load-balance, such as 0-31,40; empty where the flag is.
Result<std::vector<std::uint32_t>> ReadLoadBalance(const std::string& text);

}  // namespace millrace::engine
