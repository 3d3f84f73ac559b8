#include "coordinator/leader/prune_duty.h"

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenWalks = std::chrono::hours(1);
constexpr Micros kLongestTurn = std::chrono::milliseconds(100);  // a second, about
constexpr std::size_t kRowsInAStep = 999;
constexpr Micros kIncarnationsKept = std::chrono::hours(24);

KeepRule RuleFor(const TableName& table, const Config& config) {
  KeepRule rule{table, {}, HandlerConfig{}.keep};
  for (const auto& [type, handler] : config.handlers) rule.by_handler[type] = handler.keep;
  return rule;
}

}  // namespace

void PruneDuty::Do(const std::vector<TableName>& tables, const Config& config, BootTime now) {
  if (now < next_walk_) return;
  while (Step(tables, config)) {
    if (BootClock::now() - now > kLongestTurn) return;
  }
  if (removed_ > 0) LogInfo("pruned what was kept long enough", {{"shard", shard_}, {"rows", removed_}});
  next_walk_ = now + kBetweenWalks;
  stage_ = 0;
  after_.clear();
  removed_ = 0;
}

// False: the walk is over, or the shard does not answer and it begins anew an hour later.
bool PruneDuty::Step(const std::vector<TableName>& tables, const Config& config) {
  if (stage_ > tables.size()) {
    const auto removed = store_->PruneIncarnations(kIncarnationsKept, kRowsInAStep);
    if (!removed) return false;
    removed_ += *removed;
    return *removed > 0;
  }
  const auto step = stage_ < tables.size()
                        ? store_->PruneEnded(RuleFor(tables[stage_], config), after_, kRowsInAStep)
                        : store_->PruneKeys(after_, kRowsInAStep);
  if (!step) return false;
  removed_ += step->removed;
  after_ = step->next;
  if (after_.empty()) ++stage_;
  return true;
}

}  // namespace millrace::engine
