// Whether a worker may have a slice: by the limits in its document. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/coordination/worker_limits.h"
#include "coordinator/planner/slice_name.h"

namespace millrace::engine {

// Beyond the task types: what keeps the slice from the worker.
Obstacle ObstacleOf(const WorkerDocument& worker, const SliceName& slice);

// The first of these task types that the worker does not run; nullptr: it runs all.
const std::string* FirstRefused(const WorkerDocument& worker, const std::vector<std::string>& types);

}  // namespace millrace::engine
