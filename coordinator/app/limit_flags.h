// What --handlers and --load-balance ask for. A slip of the pen there would leave a worker idle without a
// word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/app/commands.h"
#include "coordinator/app/shards.h"
#include "framework/plugin/plugin_set.h"

namespace millrace::engine {

// Invalid for a type that is not among those that this worker can run, with the nearest one.
Status CheckTypes(const std::vector<std::string>& wanted, const std::vector<std::string>& types);

// Says which load-balance numbers no table of these shards has; nothing where a shard's tables are not known.
void TellNumbersBeyond(const std::vector<std::uint32_t>& numbers, const Shards& shards);

// Both for a worker of a cluster, whose configuration and tables are asked for. A cluster or shard that is
// away is no reason to refuse.
Status CheckLimits(const MillFlags& flags, const Settings& settings, const PluginSet& plugins);

}  // namespace millrace::engine
