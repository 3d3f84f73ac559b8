// A command's hand in the cluster's tree: one request after the other, each with a clear error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/settings.h"
#include "coordinator/coordination/session.h"
#include "framework/base/result.h"

namespace millrace::engine {

class ClusterClient {
 public:
  // Connects, and says clearly what is wrong: Unavailable (no server there within `limit`), Invalid (chroot,
  // digest, a cluster that is not there). An ensemble that has just lost its leading server takes a while to
  // choose another. `make`: a cluster that is not there is made.
  static Result<std::unique_ptr<ClusterClient>> Open(const ClusterAddress& address,
                                                     Micros limit = std::chrono::seconds(20),
                                                     bool make = false);

  // nullopt: there is no such node.
  Result<std::optional<TreeNode>> Get(const std::string& path);
  // Empty where there is no such node.
  Result<std::vector<std::string>> List(const std::string& path);
  // Conflict: a check or version failed, or a node exists; NotFound; Unknown: the connection was lost.
  Status Write(std::vector<TreeWrite> writes);
  // Makes the node or sets its data, whoever else does; a fixed node above it that has vanished is made
  // again.
  Status Put(const std::string& path, const std::string& data);
  // Whether it was there.
  Result<bool> Remove(const std::string& path);

 private:
  explicit ClusterClient(std::unique_ptr<TreeSession> session) : session_(std::move(session)) {}
  TreeReply Ask(const TreeRequest& request);

  std::unique_ptr<TreeSession> session_;
};

}  // namespace millrace::engine
