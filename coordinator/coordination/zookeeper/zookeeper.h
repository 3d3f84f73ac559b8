// Opens the tree on a ZooKeeper ensemble.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordination/session.h"
#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

struct ZookeeperOptions {
  std::string servers;  // `host:port,…/chroot`
  std::string cluster = "default";
  Micros session_timeout = std::chrono::seconds(10);  // asked for; the servers have limits of their own
  std::string auth_file;  // holds `user:password`, readable by its owner alone; empty: no digest
};

// Does not wait for a connection: Connected tells of it, and an ensemble that is away is tried until it is
// there. Invalid: an option is wrong.
Result<std::unique_ptr<TreeSession>> OpenZookeeper(const ZookeeperOptions& options);

// Makes `<chroot>/millrace/<cluster>` and its fixed nodes where they are missing. To be called before the
// first session: it finds out what is wrong and says what to do. Unavailable: no server was reached within
// `limit`, look-ups of host names not counted; Invalid: an option is wrong, the chroot is missing, the digest
// may not use these nodes, or it protects nothing, since the nodes were made without one: then
// ProtectZookeeper comes first.
Status PrepareZookeeper(const ZookeeperOptions& options, Micros limit);

// For whoever only looks. The first cluster of all is made, so that its status can be asked for before its
// first worker is there; beside others it is more likely a slip: Invalid, with the clusters that there are.
Status FindCluster(const ZookeeperOptions& options, Micros limit);

struct Protection {
  std::size_t nodes = 0;                         // of the cluster
  std::size_t closed = 0;                        // those that were open until now
  std::vector<std::string> without_digest = {};  // ids of workers that go on without it: they are cut off now
};

// Gives every node of a cluster that was made without a digest to that of these options alone. Whoever runs
// without it keeps its plan and hears of nothing new. May be called again at any time. Errors as above; a
// node of another digest is Invalid.
Result<Protection> ProtectZookeeper(const ZookeeperOptions& options, Micros limit);

}  // namespace millrace::engine
