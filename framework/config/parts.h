// The readers of a document's parts, one file each.
#pragma once

#include <nlohmann/json.hpp>

#include "framework/config/config.h"
#include "framework/config/section.h"

namespace millrace {

EngineConfig ReadEngine(const nlohmann::json& value, Problems& problems);
std::map<std::string, HandlerConfig> ReadHandlers(const nlohmann::json& value, Problems& problems);
std::map<std::string, ShardConfig> ReadShards(const nlohmann::json& value, Problems& problems);

}  // namespace millrace
