#include "coordinator/leader/slice_kinds.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace millrace::engine {
namespace {

// By limit: whether it allows something.
using Pattern = std::vector<bool>;

std::vector<std::uint32_t> Classes(const std::vector<Pattern>& patterns) {
  std::map<Pattern, std::uint32_t> known;
  std::vector<std::uint32_t> classes;
  classes.reserve(patterns.size());
  for (const Pattern& pattern : patterns) {
    const auto next = static_cast<std::uint32_t>(known.size());
    classes.push_back(known.try_emplace(pattern, next).first->second);
  }
  return classes;
}

std::vector<std::uint32_t> TableClasses(const std::vector<PlannedTable>& tables,
                                        const std::map<std::string, WorkerDocument>& workers) {
  std::set<WorkerLimits> limits;
  for (const auto& [id, worker] : workers)
    limits.insert({.shards = worker.limits.shards, .tables = worker.limits.tables});
  std::vector<Pattern> patterns;
  patterns.reserve(tables.size());
  for (const PlannedTable& table : tables) {
    Pattern pattern;
    for (const WorkerLimits& limit : limits)
      pattern.push_back(ObstacleOfTable(limit, table.shard, table.info.table) == Obstacle::None);
    patterns.push_back(std::move(pattern));
  }
  return Classes(patterns);
}

// One more than any limit names: what is allowed to the numbers beyond all of them.
std::vector<std::uint32_t> NumberClasses(const std::map<std::string, WorkerDocument>& workers) {
  std::set<std::vector<std::uint32_t>> limits;
  std::size_t numbers = 1;
  for (const auto& [id, worker] : workers) {
    if (!worker.limits.load_balance) continue;
    const auto& [allowed, fresh] = limits.insert(*worker.limits.load_balance);
    if (!allowed->empty()) numbers = std::max<std::size_t>(numbers, allowed->back() + std::size_t{2});
  }
  std::vector<Pattern> patterns(numbers, Pattern(limits.size()));
  std::size_t at = 0;
  for (const auto& limit : limits) {
    for (const std::uint32_t number : limit) patterns[number][at] = true;
    ++at;
  }
  return Classes(patterns);
}

}  // namespace

SliceKinds::SliceKinds(const std::vector<PlannedTable>& tables, const std::vector<HandlerGroup>& groups,
                       const std::map<std::string, WorkerDocument>& workers)
    : tables_(tables),
      groups_(groups),
      table_classes_(TableClasses(tables, workers)),
      number_classes_(NumberClasses(workers)) {}

GroupIndex SliceKinds::Of(std::uint32_t table, std::uint32_t group, std::uint32_t number) {
  const std::size_t place = std::min<std::size_t>(number, number_classes_.size() - 1);
  const std::uint64_t key =
      (static_cast<std::uint64_t>(group) * tables_.size() + table_classes_[table]) * number_classes_.size() +
      number_classes_[place];
  const auto [found, fresh] = known_.try_emplace(key, static_cast<GroupIndex>(kinds_.size()));
  if (fresh) kinds_.push_back({table, group, number});
  return found->second;
}

std::optional<std::vector<GroupIndex>> SliceKinds::AcceptedBy(const WorkerLimits& limits) const {
  std::vector<bool> runs;
  for (const HandlerGroup& group : groups_) runs.push_back(FirstRefused(limits, group.handlers) == nullptr);
  std::vector<GroupIndex> accepted;
  for (GroupIndex kind = 0; kind < kinds_.size(); ++kind) {
    const Example& example = kinds_[kind];
    const PlannedTable& table = tables_[example.table];
    if (runs[example.group] && Eligible(limits, {table.shard, table.info.table, example.number}, {}))
      accepted.push_back(kind);
  }
  if (accepted.size() == kinds_.size()) return std::nullopt;
  return accepted;
}

}  // namespace millrace::engine
