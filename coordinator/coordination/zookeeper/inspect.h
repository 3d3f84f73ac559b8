// What an ensemble and a cluster's nodes are like, for people who look after them. Reads alone.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordination/zookeeper/zookeeper.h"

namespace millrace::engine {

struct ServerWord {
  std::string address;  // host:port
  bool answers = false;
  std::string mode = {};     // leader, follower, observer, standalone; empty: it does not say
  std::string trouble = {};  // why not
};

// Asks each server of the address for its mode, one after the other, by the four letters `srvr`, which
// ZooKeeper allows unless its file says otherwise. At most `limit` for each. Invalid: the address is wrong.
Result<std::vector<ServerWord>> AskServers(const std::string& servers, Micros limit);

struct ClusterNodes {
  std::string name;
  std::size_t nodes = 0;  // that were looked at
  std::size_t workers = 0;
  WallTime last_write{};
};

struct TreeInspection {
  std::vector<ClusterNodes> clusters = {};                      // of this chroot, by name
  std::vector<std::pair<std::string, std::size_t>> large = {};  // the largest nodes: path, bytes
  std::vector<std::string> open =
      {};             // of this cluster: nodes that everybody may change. Not without a digest
  bool more = false;  // there are nodes that were not looked at
};

// Errors as those of FindCluster, but for nodes that are open where a digest is used: they are told.
Result<TreeInspection> InspectZookeeper(const ZookeeperOptions& options, Micros limit);

}  // namespace millrace::engine
