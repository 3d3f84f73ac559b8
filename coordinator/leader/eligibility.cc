#include "coordinator/leader/eligibility.h"

#include <algorithm>

namespace millrace {
namespace {

bool Within(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool AcceptsNumber(const WorkerDocument& worker, std::uint32_t number) {
  const auto& numbers = worker.load_balance;
  return !numbers || std::binary_search(numbers->begin(), numbers->end(), number);
}

Obstacle ObstacleOfTable(const WorkerDocument& worker, const std::string& shard, const std::string& table) {
  if (worker.shards && !Within(*worker.shards, shard)) return Obstacle::Shard;
  const bool named =
      !worker.tables || Within(*worker.tables, table) || Within(*worker.tables, shard + "/" + table);
  return named ? Obstacle::None : Obstacle::Table;
}

Obstacle ObstacleOf(const WorkerDocument& worker, const SliceName& slice) {
  if (!AcceptsNumber(worker, slice.number)) return Obstacle::LoadBalance;
  return ObstacleOfTable(worker, slice.shard, slice.table);
}

const std::string* FirstRefused(const WorkerDocument& worker, const std::vector<std::string>& types) {
  if (!worker.handlers) return nullptr;
  const auto refused = std::find_if(types.begin(), types.end(),
                                    [&](const std::string& type) { return !Within(*worker.handlers, type); });
  return refused == types.end() ? nullptr : &*refused;
}

}  // namespace millrace
