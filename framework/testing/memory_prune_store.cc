#include "framework/testing/memory_prune_store.h"

#include <cstdlib>

namespace millrace::engine {

Result<PruneStep> MemoryPruneStore::PruneEnded(const KeepRule& rule, const std::string& after,
                                               std::size_t limit) {
  MutexLock lock(shard_.mutex);
  BOOST_OUTCOME_TRY(table, shard_.state.Table(rule.table));
  const WallTime now = shard_.clock.WallNow();
  MemoryPool& done = table->done;
  PruneStep step;
  std::size_t seen = 0;
  auto row = done.upper_bound(std::strtoull(after.c_str(), nullptr, 10));
  for (; row != done.end() && seen < limit; ++seen) {
    const auto own = rule.by_handler.find(row->second.task.handler);
    const auto keep = own == rule.by_handler.end() ? rule.otherwise : std::optional<Micros>(own->second);
    const bool overdue = keep && row->second.finished_at && *row->second.finished_at < now - *keep;
    step.next = std::to_string(row->first);
    if (overdue) shard_.state.attempts.erase(row->second.task.key);
    step.removed += overdue;
    row = overdue ? done.erase(row) : std::next(row);
  }
  if (seen < limit) step.next.clear();
  return step;
}

Result<PruneStep> MemoryPruneStore::PruneKeys(const std::string& after, std::size_t limit) {
  MutexLock lock(shard_.mutex);
  const WallTime now = shard_.clock.WallNow();
  auto& keys = shard_.state.keys;
  const std::size_t colon = std::min(after.find(':'), after.size());
  PruneStep step;
  std::size_t seen = 0;
  auto entry =
      after.empty() ? keys.begin() : keys.upper_bound({after.substr(0, colon), after.substr(colon + 1)});
  for (; entry != keys.end() && seen < limit; ++seen) {
    const bool overdue = entry->second.keep_until && *entry->second.keep_until <= now;
    step.next = entry->first.first + ":" + entry->first.second;
    step.removed += overdue;
    entry = overdue ? keys.erase(entry) : std::next(entry);
  }
  if (seen < limit) step.next.clear();
  return step;
}

Result<std::size_t> MemoryPruneStore::PruneIncarnations(Micros age, std::size_t limit) {
  MutexLock lock(shard_.mutex);
  const WallTime before = shard_.clock.WallNow() - age;
  std::size_t removed = 0;
  for (auto one = shard_.state.incarnations.begin(); one != shard_.state.incarnations.end();) {
    const bool old = one->second.dead && one->second.began < before && removed < limit;
    removed += old;
    one = old ? shard_.state.incarnations.erase(one) : std::next(one);
  }
  return removed;
}

}  // namespace millrace::engine
