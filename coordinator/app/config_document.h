// The documents that `millrace config` reads and writes: a part's node in the cluster, a value as a person
// gives it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "coordinator/app/cluster_client.h"
#include "coordinator/app/config_history.h"

namespace millrace::engine {

// The part as it is now; {} where nobody has set it.
Result<ConfigNode> CurrentNode(ClusterClient& client, const std::string& part);

// What stands for a value on a command line: JSON itself, @FILE, or - for standard input. Invalid for a file
// that can't be read, and for one that is named without @.
Result<std::string> ReadValue(const std::string& value);

// A text that is no JSON by itself is meant as a string: `config set engine.poll 100ms`.
nlohmann::ordered_json AsJson(const std::string& text);

nlohmann::ordered_json::json_pointer PointerTo(const std::vector<std::string>& keys);

}  // namespace millrace::engine
