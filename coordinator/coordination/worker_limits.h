// What the limits in a worker's document allow, but for task types. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/coordination/documents.h"

namespace millrace::engine {

enum class Obstacle { None, LoadBalance, Shard, Table };

// What is the same for every slice of a table: None, Shard or Table.
Obstacle ObstacleOfTable(const WorkerDocument& worker, const std::string& shard, const TableName& table);
// And for one number in every table.
bool AcceptsNumber(const WorkerDocument& worker, std::uint32_t number);

}  // namespace millrace::engine
