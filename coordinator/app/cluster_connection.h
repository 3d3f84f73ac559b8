// A command's way into the cluster: which one is meant, a session with it, and what it says of shards and
// configuration.
#pragma once

#include <memory>

#include "coordinator/app/cluster_client.h"
#include "coordinator/app/settings.h"
#include "coordinator/app/shards.h"
#include "coordinator/coordination/config_layers.h"

namespace millrace {

struct ClusterConnection {
  Settings settings;
  std::unique_ptr<ClusterClient> client;
};

// The cluster that flags and environment name. Invalid, with what to type, where they name none. `make`: one
// that is not there is made.
Result<ClusterConnection> Connect(const CommonFlags& flags, bool make = false);

// The cluster's configuration under the file of these settings.
Result<ConfigLayers> ReadLayers(ClusterClient& client, const Settings& settings);

// The cluster's shards, or those that the command line names; touches none of them.
Result<Shards> OpenShards(ClusterConnection& cluster);

// ResolveSettings, and where a cluster names the shards, those and its configuration; Invalid with what to
// type where it names none.
Result<Settings> ResolveShards(const CommonFlags& flags, const std::string& default_store);

}  // namespace millrace
