// A command's way into the cluster: which one is meant, its nodes, and what it says of shards and
// configuration.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/command/ring_workers.h"
#include "coordinator/app/command/shards.h"
#include "coordinator/coordination/config_layers.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/session.h"
#include "framework/base/result.h"

namespace millrace::engine {

// One request after the other, each with a clear error.
class ClusterClient {
 public:
  // Connects, and says clearly what is wrong: Unavailable (no server there within `limit`), Invalid (chroot,
  // digest, a cluster that is not there). An ensemble that has just lost its leading server takes a while to
  // choose another. A note tells who waits for long. `make`: a cluster that is not there is made.
  static Result<std::unique_ptr<ClusterClient>> Open(const ClusterAddress& address,
                                                     Micros limit = std::chrono::seconds(20),
                                                     bool make = false);

  // nullopt: there is no such node.
  Result<std::optional<TreeNode>> Get(const std::string& path);
  // Empty where there is no such node.
  Result<std::vector<std::string>> List(const std::string& path);
  // Conflict: a check or version failed, or a node exists; NotFound; Unknown: the connection was lost.
  Status Write(std::vector<TreeWrite> writes, std::size_t most_bytes = kMostBytes);
  // Makes the node or sets its data, whoever else does; a fixed node above it that has vanished is made
  // again.
  Status Put(const std::string& path, const std::string& data);
  // Whether it was there.
  Result<bool> Remove(const std::string& path);

 private:
  static Result<std::unique_ptr<ClusterClient>> TryToOpen(const ClusterAddress& address, Micros limit,
                                                          bool make);
  explicit ClusterClient(std::unique_ptr<TreeSession> session) : session_(std::move(session)) {}
  TreeReply Ask(const TreeRequest& request);

  std::unique_ptr<TreeSession> session_;
};

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
// Invalid with what to type where nothing names one. `bells`: whom to ring for new tasks, if a cluster was
// asked.
Result<Settings> ResolveShards(const CommonFlags& flags, const std::string& default_store,
                               WorkerBells* bells = nullptr);

// The workers that are there.
struct PresentWorkers {
  std::map<std::string, WorkerDocument> documents;  // by id
  bool all_read = true;                             // false: somebody's document can't be read
};
// Invalid, and none is read, where there are more than `most`.
Result<PresentWorkers> ReadWorkers(ClusterClient& client,
                                   std::size_t most = std::numeric_limits<std::size_t>::max());

// The task types that these workers say that they run; nullopt: one may run any, or there is no worker. Pure.
std::optional<std::set<std::string>> TypesOf(const std::map<std::string, WorkerDocument>& workers);
// The same of those that are there; nullopt, too: what one says can't be read.
Result<std::optional<std::set<std::string>>> TypesOfWorkers(ClusterClient& client);

// What a command leaves in a node that means something by being there:
// {"by":"user@host","at":"2026-11-20T18:00:00Z"}, and a "reason" where there is one.
std::string AuditStamp(const std::string& reason = {});

}  // namespace millrace::engine
