// The cluster's configuration as commands change it, and what was changed before.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/command/cluster_client.h"
#include "coordinator/coordination/config_change.h"

namespace millrace::engine {

struct ConfigNode {
  std::string part;
  std::string text;
  std::optional<std::int32_t> version;  // nullopt: there is no node yet
  std::string set_at = {};              // as in ConfigChange
  std::int64_t made = 0;                // the transaction that made the node
};

// ZooKeeper takes a text and its note in the history in one write, where a note has each quote and line break
// as two characters.
inline constexpr std::size_t kLongestPart = kMostBytesAtOnce / 3 - 20 * 1024;

// Invalid, with both sizes, for a text that is longer.
Status CheckSize(const std::string& part, const std::string& text);

// Sets the part and notes the change, both or neither. Conflict, with what to do, if somebody else has
// changed it since `node` was read. The new version. `restores`: of a rollback, the version that it restores.
Result<std::int32_t> SetConfig(ClusterClient& client, const ConfigNode& node, const std::string& text,
                               const std::string& by, std::optional<std::int32_t> restores = {});

// Oldest first. Of what was set by other means than SetConfig, those versions that the leader has seen, and
// the present one.
Result<std::vector<ConfigChange>> ReadHistory(ClusterClient& client, const std::string& part);

// The one of that version; nullptr where there is none.
const ConfigChange* FindVersion(const std::vector<ConfigChange>& history, std::int32_t version);

// The part as it is now; {} where nobody has set it.
Result<ConfigNode> CurrentNode(ClusterClient& client, const std::string& part);

}  // namespace millrace::engine
