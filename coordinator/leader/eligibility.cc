#include "coordinator/leader/eligibility.h"

#include <algorithm>

namespace millrace::engine {
namespace {

bool Within(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

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

}  // namespace millrace::engine
