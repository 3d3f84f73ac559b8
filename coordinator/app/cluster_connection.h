// A command's way into the cluster: which one is meant, a session with it, and what it says of shards and
// configuration.
#pragma once

#include <memory>

#include "coordinator/app/cluster_client.h"
#include "coordinator/app/settings.h"
#include "coordinator/app/shards.h"
#include "coordinator/coordination/config_layers.h"

namespace millrace::engine {

struct ClusterConnection {
  Settings settings;
  std::unique_ptr<ClusterClient> client;
};

// The cluster that flags and environment name. Invalid, with what to type, where they name none. `make`: one
// that is not there is made.
Result<ClusterConnection> Connect(const CommonFlags& flags, bool make = false);

// The cluster's configuration under the file of these settings.
Result<ConfigLayers> ReadLayers(ClusterClient& client, const Settings& settings);

// The shards that the cluster plans: its own, or where it names none, the store that flags or environment
// name; touches none of them. Tells of a store that is ignored.
Result<Shards> OpenShards(ClusterConnection& cluster);

// ResolveSettings for a command on tasks. What --store names on its own command line is what it works on,
// with or without a cluster; else a cluster is asked for its shards and its configuration, as in OpenShards.
// Where it can't be asked, the store that the environment or a file names stands in, and a note says so;
// Invalid with what to type where nothing names one.
Result<Settings> ResolveShards(const CommonFlags& flags, const std::string& default_store);

}  // namespace millrace::engine
