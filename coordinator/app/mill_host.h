// Runs a worker in this process until it ends or is told to stop, and shows how it goes.
#pragma once

#include <string>

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/settings.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/worker_flags.h"

namespace millrace::engine {

// `shards` are prepared.
Result<ExitCode> HostMill(const MillFlags& flags, const Settings& settings, Shards& shards);

}  // namespace millrace::engine
