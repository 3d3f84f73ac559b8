// `millrace worker --zk` and `millrace coordinator`: processes of a cluster.
#pragma once

#include "coordinator/app/commands.h"

namespace millrace::engine {

Result<ExitCode> HostClusterWorker(const MillFlags& flags, const Settings& settings);

}  // namespace millrace::engine
