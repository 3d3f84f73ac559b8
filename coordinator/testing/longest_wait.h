// How long the last of a simulated cluster's tasks may wait for what its configuration says, once everything
// works. Pure.
#pragma once

#include <cstddef>

#include "coordinator/testing/modelled_runner.h"
#include "framework/base/clock.h"
#include "framework/config/config.h"

namespace millrace::engine {

// Of a task type with this configuration: so many of its tasks have not ended at `now`, by the wall clock of
// the workers, and so many of all. Each bound alone, and their sum, since they may take effect one after
// another; as if all tasks were in one worker's slices.
Micros LongestWait(const HandlerConfig& handler, std::size_t of_type, std::size_t of_all,
                   const HandlerModel& model, WallTime now);

}  // namespace millrace::engine
