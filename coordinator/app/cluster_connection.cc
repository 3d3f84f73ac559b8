#include "coordinator/app/cluster_connection.h"

#include "coordinator/app/paths.h"
#include "coordinator/app/terminal.h"

namespace millrace::engine {
namespace {

constexpr Micros kAskPatiently = std::chrono::seconds(20);
constexpr Micros kAskBriefly = std::chrono::seconds(2);  // where there is another answer

Status AskCluster(Settings& settings, ClusterClient& client) {
  BOOST_OUTCOME_TRY(layers, ReadLayers(client, settings));
  settings.config = *layers.Effective();
  settings.shards = settings.config.shards;
  if (const std::string ignored = layers.Ignored(); !ignored.empty()) PrintNote("note: " + ignored);
  if (settings.shards.empty()) {
    const auto refused = layers.Refusals().find("shards");
    if (refused != layers.Refusals().end()) return Fail(ErrorCode::Invalid, refused->second);
    return Fail(
        ErrorCode::Invalid,
        "no store is named: give --store mysql://user@host:port/database, or name the cluster's shards "
        "with millrace config set shards");
  }
  for (auto& [name, shard] : settings.shards) {
    if (shard.password_file.empty()) shard.password_file = settings.password_file;
  }
  return {};
}

}  // namespace

Result<ClusterConnection> Connect(const CommonFlags& flags, bool make) {
  BOOST_OUTCOME_TRY(settings, ResolveCluster(flags, Variable));
  BOOST_OUTCOME_TRY(client, ClusterClient::Open(*settings.cluster, std::chrono::seconds(20), make));
  return ClusterConnection{std::move(settings), std::move(client)};
}

Result<ConfigLayers> ReadLayers(ClusterClient& client, const Settings& settings) {
  ConfigLayers layers(settings.config_text, settings.config_file, settings.own_store);
  for (const char* part : kConfigParts) {
    BOOST_OUTCOME_TRY(node, client.Get(std::string("/config/") + part));
    layers.SetPart(part, node ? node->data : "");
  }
  return layers;
}

Result<Shards> OpenShards(ClusterConnection& cluster) {
  BOOST_OUTCOME_TRYV(AskCluster(cluster.settings, *cluster.client));
  return OpenShards(cluster.settings);
}

Result<Settings> ResolveShards(const CommonFlags& flags, const std::string& default_store) {
  auto settings = ResolveSettings(flags, Variable, default_store);
  if (!settings || !settings->cluster || !flags.store.empty()) return settings;
  const bool named = !settings->shards.empty();
  auto client = ClusterClient::Open(*settings->cluster, named ? kAskBriefly : kAskPatiently);
  if (!client && named) {
    PrintNote("the cluster can't be asked for its shards, so " + settings->store_from +
              " says where to look: " + client.error().message);
    return settings;
  }
  if (!client) return Fail(client.error());
  BOOST_OUTCOME_TRYV(AskCluster(*settings, **client));
  return settings;
}

}  // namespace millrace::engine
