#include "coordinator/member/limited_slices.h"

#include <algorithm>
#include <iterator>

#include "coordinator/coordination/worker_limits.h"

namespace millrace::engine {
namespace {

template <class T>
std::vector<T> Both(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// False: nothing of the table is left.
bool Limit(TableSlices& table, const std::string& shard, const WorkerDocument& worker) {
  if (ObstacleOfTable(worker, shard, table.table) != Obstacle::None) return false;
  if (worker.handlers)
    table.handlers = table.handlers ? Both(*table.handlers, *worker.handlers) : worker.handlers;
  if (worker.load_balance) {
    table.slices = table.all ? *worker.load_balance : Both(table.slices, *worker.load_balance);
    table.all = false;
  }
  return (table.all || !table.slices.empty()) && (!table.handlers || !table.handlers->empty());
}

}  // namespace

std::shared_ptr<const SlicesByShard> WithinLimits(const std::shared_ptr<const SlicesByShard>& assigned,
                                                  const WorkerDocument& worker) {
  if (!worker.handlers && !worker.load_balance && !worker.shards && !worker.tables) return assigned;
  auto limited = std::make_shared<SlicesByShard>(*assigned);
  for (auto& [shard, tables] : *limited) {
    std::erase_if(tables, [&](TableSlices& table) { return !Limit(table, shard, worker); });
  }
  return limited;
}

}  // namespace millrace::engine
