// The databases that a part `shards` names, tried out before anybody is sent to them.
#pragma once

#include <string>

#include "coordinator/app/command/settings.h"
#include "framework/base/result.h"

namespace millrace::engine {

// Connects to each shard of `text`, which is valid, that is not the same in `known`: for a few seconds, with
// what this process knows of passwords. Unavailable or Invalid, with the shard and what to do, where one
// can't be used. One without task tables is told of.
Status TryShards(const std::string& text, const std::string& known, const Settings& settings);

}  // namespace millrace::engine
