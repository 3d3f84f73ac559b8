#include "coordinator/coordination/worker_limits.h"

#include <algorithm>

namespace millrace::engine {
namespace {

bool Within(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Obstacle ObstacleOfTable(const WorkerDocument& worker, const std::string& shard, const TableName& table) {
  if (worker.shards && !Within(*worker.shards, shard)) return Obstacle::Shard;
  const bool named =
      !worker.tables || Within(*worker.tables, table) || Within(*worker.tables, shard + "/" + table);
  return named ? Obstacle::None : Obstacle::Table;
}

bool AcceptsNumber(const WorkerDocument& worker, std::uint32_t number) {
  const auto& numbers = worker.load_balance;
  return !numbers || std::binary_search(numbers->begin(), numbers->end(), number);
}

}  // namespace millrace::engine
