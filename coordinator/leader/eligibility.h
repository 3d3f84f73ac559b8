// Whether a worker may have a slice: the one place that reads the limits in its document. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/planner/slice_name.h"

namespace millrace {

enum class Obstacle { None, LoadBalance, Shard, Table };

// Beyond the task types: what keeps the slice from the worker.
Obstacle ObstacleOf(const WorkerDocument& worker, const SliceName& slice);
// Its parts: what is the same for every slice of a table, and for one number in every table.
Obstacle ObstacleOfTable(const WorkerDocument& worker, const std::string& shard, const std::string& table);
bool AcceptsNumber(const WorkerDocument& worker, std::uint32_t number);

// The first of these task types that the worker does not run; nullptr: it runs all.
const std::string* FirstRefused(const WorkerDocument& worker, const std::vector<std::string>& types);

}  // namespace millrace
