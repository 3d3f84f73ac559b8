#include "coordinator/upkeep/pruning.h"

#include <utility>

#include "framework/base/log.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenWalks = std::chrono::hours(1);
constexpr Micros kShortestWalk = std::chrono::minutes(1);
constexpr Micros kBetweenLooksAtHeld = std::chrono::minutes(1);
constexpr Micros kIncarnationsKept = std::chrono::hours(24);

// What is kept for a shorter time than that is not to stay for an hour.
Micros BetweenWalks(const Config& config) {
  Micros least = kBetweenWalks;
  for (const auto& [type, handler] : config.handlers) least = std::min(least, handler.keep);
  return std::max(least, kShortestWalk);
}

HoldRule HoldRuleFor(const TableName& table, const Config& config) {
  HoldRule rule{table, {}};
  for (const auto& [type, handler] : config.handlers) {
    if (handler.held_for > Micros(0)) rule.by_handler[type] = handler.held_for;
  }
  return rule;
}

}  // namespace

Pruning::Pruning(const std::string& shard, Store& store)
    : shard_(shard), store_(store.OpenPruning()), exports_(shard, HostName()) {}

KeepRule Pruning::RuleFor(const TableName& table, const Config& config) {
  KeepRule rule{table, {}, HandlerConfig{}.keep, {}, {}};
  for (const auto& [type, handler] : config.handlers) {
    rule.by_handler[type] = handler.keep;
    if (!handler.export_to.empty()) rule.handed_out.insert(type);
  }
  exports_.KeepTroubles(rule.handed_out);
  rule.hand_out = [&](const std::string& type, std::span<const TaskRecord> tasks) {
    return exports_.Write(type, config.HandlerFor(type).export_to, tasks, SystemClock().WallNow());
  };
  return rule;
}

bool Pruning::Go(const std::vector<TableName>& tables, const Config& config, BootTime now) {
  if (pace_.Rests(now)) return false;
  if (now >= next_held_) {
    while (EndHeld(tables, config)) {
      const BootTime began = std::exchange(now, BootClock::now());
      if (pace_.Note(began, now)) return false;
    }
    held_table_ = 0;
    held_after_.clear();
    next_held_ = now + kBetweenLooksAtHeld;
  }
  if (now < next_walk_) return false;
  failed_ = false;
  for (BootTime began = now; Step(tables, config); began = now) {
    now = BootClock::now();
    if (pace_.Note(began, now)) return false;
  }
  if (removed_ > 0) LogInfo("pruned what was kept long enough", {{"shard", shard_}, {"rows", removed_}});
  next_walk_ = now + BetweenWalks(config);
  stage_ = 0;
  after_.clear();
  removed_ = 0;
  return !failed_;
}

// False: the walk is over, or the shard does not answer and it begins anew with the next.
bool Pruning::EndHeld(const std::vector<TableName>& tables, const Config& config) {
  if (held_table_ >= tables.size()) return false;
  const HoldRule rule = HoldRuleFor(tables[held_table_], config);
  if (rule.by_handler.empty()) return false;
  const auto step = store_->EndHeld(rule, held_after_, pace_.rows());
  if (!step) return false;
  if (step->removed > 0) {
    LogInfo("tasks that were held for too long are cancelled",
            {{"shard", shard_}, {"table", rule.table}, {"tasks", step->removed}});
  }
  held_after_ = step->next;
  if (held_after_.empty()) ++held_table_;
  return true;
}

// False: the walk is over, or the shard does not answer and it begins anew an hour later.
bool Pruning::Step(const std::vector<TableName>& tables, const Config& config) {
  if (stage_ > tables.size()) {
    const auto removed = store_->PruneIncarnations(kIncarnationsKept, pace_.rows());
    failed_ = !removed;
    if (!removed) return false;
    removed_ += *removed;
    return *removed > 0;
  }
  const auto step = stage_ < tables.size()
                        ? store_->PruneEnded(RuleFor(tables[stage_], config), after_, pace_.rows())
                        : store_->PruneKeys(after_, pace_.rows());
  failed_ = !step;
  if (!step) return false;
  removed_ += step->removed;
  after_ = step->next;
  if (after_.empty()) ++stage_;
  return true;
}

}  // namespace millrace::engine
