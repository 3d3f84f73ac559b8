// Rings the workers of a cluster for tasks that have just been added: they start at once, whether or not a
// worker follows the shard's log. A hint: whoever is not reached finds them by polling.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "framework/doorbell/datagram.h"

namespace millrace::engine {

class ClusterClient;

// Immutable; Ring may be called by any thread.
class WorkerBells {
 public:
  WorkerBells() = default;  // nobody's
  // `host`: where whoever rings runs. An address of the loopback means that host's own alone.
  WorkerBells(const std::map<std::string, WorkerDocument>& workers, const std::string& host);
  // Those that are there now; nobody's where ZooKeeper does not answer, or there are more than a hundred.
  static WorkerBells Of(ClusterClient& client);

  // Where they hear who may have a part in it.
  std::vector<std::string> AddressesFor(const ShardRing& ring) const;
  void Ring(const ShardRing& ring) const;

 private:
  struct Bell {
    std::string address;
    WorkerLimits limits;
  };
  std::vector<Bell> bells_;
};

}  // namespace millrace::engine
