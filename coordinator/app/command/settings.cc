#include "coordinator/app/command/settings.h"

#include <pwd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "coordinator/app/input/json_row.h"
#include "framework/base/time_text.h"
#include "framework/config/position_map.h"
#include "framework/files/paths.h"
#include "framework/files/trust.h"
#include "framework/policy/load_balance.h"
#include "framework/store/url.h"

namespace millrace::engine {
namespace {

Result<std::optional<ClusterAddress>> FindCluster(const CommonFlags& flags, const Environment& environment) {
  ClusterAddress address;
  address.servers = flags.zk.empty() ? environment("MILLRACE_ZK") : flags.zk;
  const std::string name = flags.cluster.empty() ? environment("MILLRACE_CLUSTER") : flags.cluster;
  if (!name.empty()) address.name = name;
  address.auth_file = flags.zk_auth_file;
  if (!address.servers.empty()) return address;
  if (flags.cluster.empty() && flags.zk_auth_file.empty()) return std::nullopt;
  return Fail(ErrorCode::Invalid, std::string(flags.cluster.empty() ? "--zk-auth-file" : "--cluster") +
                                      " needs the servers too: give --zk host:port, or set MILLRACE_ZK");
}

Status ReadFile(Settings& settings, const std::string& file) {
  if (file.empty()) return {};
  BOOST_OUTCOME_TRY(text, ReadConfigFile(file));
  BOOST_OUTCOME_TRY(config, ParseConfig(text, file));
  settings.config = std::move(config);
  settings.config_file = file;
  settings.config_text = std::move(text);
  return {};
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
  if (url.empty() && settings.cluster) {
    settings.store_from = "the cluster";
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
  if (settings.store_from != "the default") settings.own_store = {url, settings.store_from};
  return {};
}

}  // namespace

Result<Settings> ResolveSettings(const CommonFlags& flags, const Environment& environment,
                                 const std::string& default_store) {
  Settings settings;
  BOOST_OUTCOME_TRY(cluster, FindCluster(flags, environment));
  settings.cluster = std::move(cluster);
  settings.password_file = environment("MILLRACE_PASSWORD_FILE");
  const std::string file = flags.config.empty() ? environment("MILLRACE_CONFIG") : flags.config;
  BOOST_OUTCOME_TRYV(ReadFile(settings, file));
  BOOST_OUTCOME_TRYV(UseStore(settings, flags, environment, default_store));
  for (auto& [name, shard] : settings.shards) {
    if (shard.password_file.empty()) shard.password_file = settings.password_file;
  }
  return settings;
}

Result<Settings> ResolveCluster(const CommonFlags& flags, const Environment& environment) {
  auto settings = ResolveSettings(flags, environment, kDefaultStore);
  if (!settings || settings->cluster) return settings;
  return Fail(ErrorCode::Invalid, "no cluster is named: give --zk host:port, or set MILLRACE_ZK");
}

std::string PlaceInFile(const Settings& settings, const std::vector<std::string>& key) {
  return settings.config_file + ":" + std::to_string(PositionMap::Read(settings.config_text).Line(key));
}

bool IsOtherStore(const CommonFlags& flags) { return !flags.store.empty() && flags.zk.empty(); }

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultPluginFolder() {
  const std::string folder = FolderOfProgram();
  const std::string built = folder + "/plugins";
  if (IsFolder(built).value_or(false)) return built;
  return folder + "/" MILLRACE_INSTALLED_PLUGINS;
}

std::string DefaultStateFolder() {
  if (const std::string state = Variable("XDG_STATE_HOME"); !state.empty()) return state + "/millrace";
  if (const std::string home = Variable("HOME"); !home.empty()) return home + "/.local/state/millrace";
  return "/tmp/millrace-" + std::to_string(getuid());
}

Result<std::string> MakeStateFolder(const std::string& folder) {
  auto trusted = MakeTrustedFolder(folder, "state folder");
  if (!trusted)
    return Fail(trusted.error().code,
                trusted.error().message + "; mend that, or name another with --state-dir");
  if (access(trusted->c_str(), W_OK | X_OK) == 0) return trusted;
  return Fail(ErrorCode::Invalid, "the state folder '" + folder + "' can't be written: " +
                                      std::strerror(errno) + "; name another with --state-dir");
}

std::string Actor() {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  // Several shards may be told at once, each by a thread.
  passwd entry{};
  passwd* user = nullptr;
  std::array<char, 16'384> texts{};
  if (getpwuid_r(getuid(), &entry, texts.data(), texts.size(), &user) != 0) user = nullptr;
  return (user == nullptr ? std::to_string(getuid()) : std::string(user->pw_name)) + "@" + host;
}

Result<Micros> ReadDuration(const char* flag, const std::string& text) {
  auto duration = ParseDuration(text);
  if (!duration) return Fail(ErrorCode::Invalid, flag + (": " + duration.error().message));
  return duration;
}

Result<WallTime> ReadTime(const char* flag, const std::string& text) {
  auto time = ParseTime(text);
  if (!time) return Fail(ErrorCode::Invalid, flag + (": " + time.error().message));
  return time;
}

Status CheckParamsFlag(const std::string& params) {
  if (const Status good = CheckParams(params); !good)
    return Fail(ErrorCode::Invalid, "--params: " + good.error().message);
  return {};
}

Result<std::vector<std::uint32_t>> ReadLoadBalance(const std::string& text) {
  if (text.empty()) return std::vector<std::uint32_t>();
  auto numbers = ParseLoadBalance(text);
  if (!numbers) return Fail(ErrorCode::Invalid, "--load-balance: " + numbers.error().message);
  return numbers;
}

}  // namespace millrace::engine
