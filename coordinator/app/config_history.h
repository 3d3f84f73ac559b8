// Who changed the cluster's configuration, and when: a node under history/<part> for each version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/cluster_client.h"

namespace millrace {

struct ConfigNode {
  std::string part;
  std::string text;
  std::optional<std::int32_t> version;  // nullopt: there is no node yet
};

struct ConfigChange {
  std::int32_t version = 0;
  std::string at;
  std::string by;
  std::string text;
};

// Sets the part and notes the change, both or neither. Conflict, with what to do, if somebody else has
// changed it since `node` was read. The new version. The last 50 changes are kept.
Result<std::int32_t> SetConfig(ClusterClient& client, const ConfigNode& node, const std::string& text,
                               const std::string& by);

// Oldest first. Versions that were set by other means than SetConfig are missing, but for the present one.
Result<std::vector<ConfigChange>> ReadHistory(ClusterClient& client, const std::string& part);

}  // namespace millrace
