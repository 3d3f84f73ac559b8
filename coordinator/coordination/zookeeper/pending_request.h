// A request to the client library that is under way.
#pragma once

#include <zookeeper/zookeeper.h>

#include <vector>

#include "coordinator/coordination/zookeeper/client.h"

namespace millrace::engine {

// Owns what the library points to until the answer is there.
struct ZookeeperClient::PendingRequest {
  ZookeeperClient* client = nullptr;
  BootTime sent{};
  bool by_leader = false;  // the leader of the ensemble takes part in the answer
  bool is_sync = false;
  bool done = false;
  bool awaited = false;  // somebody will ask for the reply
  bool waits = false;    // somebody has begun to wait for it
  bool open = false;     // of a node's access list: everybody may change it
  TreeReply reply = {};
  std::vector<zoo_op_result_t> results = {};  // of a write
};

}  // namespace millrace::engine
