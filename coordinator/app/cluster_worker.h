// `millrace worker --zk` and `millrace coordinator`: processes of a cluster.
#pragma once

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/settings.h"
#include "coordinator/app/worker_flags.h"

namespace millrace::engine {

Result<ExitCode> HostClusterWorker(const MillFlags& flags, const Settings& settings);

}  // namespace millrace::engine
