// The readers of a document's parts, one file each, and what lists the same keys again.
#pragma once

#include <nlohmann/json.hpp>

#include "framework/config/config.h"
#include "framework/config/key_lister.h"
#include "framework/config/section.h"

namespace millrace::engine {

EngineConfig ReadEngine(const nlohmann::json& value, Problems& problems);
std::map<std::string, HandlerConfig> ReadHandlers(const nlohmann::json& value, Problems& problems);
std::map<std::string, ShardConfig> ReadShards(const nlohmann::json& value, Problems& problems);

void ListEngine(const EngineConfig& engine, KeyLister& keys);
void ListHandler(const HandlerConfig& handler, KeyLister& keys);
void ListShard(const ShardConfig& shard, KeyLister& keys);

}  // namespace millrace::engine
