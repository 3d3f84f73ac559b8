#include "coordinator/app/config/config_shards.h"

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/command/shards.h"

namespace millrace::engine {
namespace {

constexpr Micros kConnectWithin = std::chrono::seconds(3);

// None where it can't be read.
std::map<std::string, ShardConfig> ShardsOf(const std::string& text) {
  const auto config = ParseConfig("{\"shards\":" + text + "\n}", "config/shards");
  return config ? config->shards : std::map<std::string, ShardConfig>();
}

bool IsSamePlace(const ShardConfig& a, const ShardConfig& b) {
  return a.url == b.url && a.password_file == b.password_file;
}

Status TryShard(const std::string& name, const ShardConfig& config, const Settings& settings) {
  BOOST_OUTCOME_TRY(store,
                    MakeStore(AsStarted(config, settings), settings.config.engine.lease, kConnectWithin));
  if (Status reached = store->Ping(); !reached) {
    return Fail(reached.error().code, "shards." + name + ": " + reached.error().message +
                                          "; where only the workers can reach it, add --offline");
  }
  const auto tables = store->OpenSchema()->Tables();
  if (!tables && tables.error().code == ErrorCode::NotFound) {
    PrintNote("note: shards." + name + " has no task tables yet: millrace schema apply --store '" +
              config.url + "'");
  }
  return {};
}

}  // namespace

Status TryShards(const std::string& text, const std::string& known, const Settings& settings) {
  const auto before = ShardsOf(known);
  for (const auto& [name, config] : ShardsOf(text)) {
    const auto same = before.find(name);
    if (same != before.end() && IsSamePlace(same->second, config)) continue;
    BOOST_OUTCOME_TRYV(TryShard(name, config, settings));
  }
  return {};
}

}  // namespace millrace::engine
