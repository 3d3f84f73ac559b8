#include "framework/policy/eligibility.h"

namespace millrace::engine {

WorkerLimits Both(const WorkerLimits& a, const WorkerLimits& b) {
  return {Both(a.handlers, b.handlers), Both(a.load_balance, b.load_balance), Both(a.shards, b.shards),
          Both(a.tables, b.tables)};
}

Obstacle ObstacleOfTable(const WorkerLimits& limits, const std::string& shard, const TableName& table) {
  if (!Allows(limits.shards, shard)) return Obstacle::Shard;
  const bool named = !limits.tables || Allows(limits.tables, std::string(table)) ||
                     Allows(limits.tables, shard + "/" + table);
  return named ? Obstacle::None : Obstacle::Table;
}

const std::string* FirstRefused(const WorkerLimits& limits, const std::vector<std::string>& types) {
  const auto refused = std::find_if(types.begin(), types.end(),
                                    [&](const std::string& type) { return !Allows(limits.handlers, type); });
  return refused == types.end() ? nullptr : &*refused;
}

Obstacle ObstacleOf(const WorkerLimits& limits, const SliceName& slice,
                    const std::vector<std::string>& types) {
  if (!Allows(limits.load_balance, slice.number)) return Obstacle::LoadBalance;
  const Obstacle table = ObstacleOfTable(limits, slice.shard, slice.table);
  if (table != Obstacle::None) return table;
  return FirstRefused(limits, types) == nullptr ? Obstacle::None : Obstacle::Handler;
}

}  // namespace millrace::engine
