// Runs a worker in this process until it ends or is told to stop, and shows how it goes.
#pragma once

#include <string>

#include "coordinator/app/commands.h"
#include "coordinator/app/shards.h"

namespace millrace::engine {

// `shards` are prepared.
Result<ExitCode> HostMill(const MillFlags& flags, const Settings& settings, Shards& shards);

}  // namespace millrace::engine
