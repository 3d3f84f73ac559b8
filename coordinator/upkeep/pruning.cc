#include "coordinator/upkeep/pruning.h"

#include <algorithm>
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

// What may be in trouble, beside the tables.
constexpr const char* kKeys = "the keys";
constexpr const char* kIncarnations = "what is known of former workers";
constexpr const char* kHeldIn = "what is held in ";
std::string HeldIn(const TableName& table) { return kHeldIn + std::string(table.text()); }

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
  cut_short_ = false;
  BootTime began = now;
  for (; Step(tables, config); began = now) {
    now = BootClock::now();
    if (pace_.Note(began, now)) return false;
  }
  if (cut_short_) {
    pace_.NoteCut(began, BootClock::now());
    next_walk_ = now + kShortestWalk;
    return false;
  }
  if (removed_ > 0) LogInfo("pruned what was kept long enough", {{"shard", shard_}, {"rows", removed_}});
  next_walk_ = now + BetweenWalks(config);
  stage_ = 0;
  after_.clear();
  removed_ = 0;
  exports_.EndWalk();
  std::erase_if(troubles_, [&](const auto& trouble) {
    return std::none_of(tables.begin(), tables.end(), [&](const TableName& table) {
      return trouble.first == kKeys || trouble.first == kIncarnations || trouble.first == table.text() ||
             trouble.first == HeldIn(table);
    });
  });
  return Troubles().empty();
}

std::vector<std::string> Pruning::Troubles() const {
  std::vector<std::string> troubles = exports_.Troubles();
  for (const auto& [what, why] : troubles_) troubles.push_back(what + " can't be pruned: " + why);
  return troubles;
}

bool Pruning::Skip(const std::string& what, const Error& error) {
  const ErrorCode code = error.code;
  const bool passes = code == ErrorCode::Unavailable || code == ErrorCode::Conflict ||
                      code == ErrorCode::Unknown || code == ErrorCode::Cancelled;
  if (passes) return false;
  if (troubles_.insert_or_assign(what, error.message).second)
    LogError("what nobody needs any more can't be pruned",
             {{"shard", shard_}, {"what", what}, {"error", error.message}});
  return true;
}

// False: the walk is over, or the shard does not answer and it begins anew with the next.
bool Pruning::EndHeld(const std::vector<TableName>& tables, const Config& config) {
  if (held_table_ >= tables.size()) return false;
  const HoldRule rule = HoldRuleFor(tables[held_table_], config);
  if (rule.by_handler.empty()) {
    std::erase_if(troubles_, [](const auto& trouble) { return trouble.first.starts_with(kHeldIn); });
    return false;
  }
  const auto step = store_->EndHeld(rule, held_after_, pace_.rows());
  const std::string what = HeldIn(rule.table);
  if (!step) {
    if (!Skip(what, step.error())) return false;
    held_after_.clear();
    ++held_table_;
    return true;
  }
  if (step->removed > 0) {
    LogInfo("tasks that were held for too long are cancelled",
            {{"shard", shard_}, {"table", rule.table}, {"tasks", step->removed}});
  }
  held_after_ = step->next;
  if (!held_after_.empty()) return true;
  troubles_.erase(what);
  ++held_table_;
  return true;
}

// False: the walk is over, or cut short.
bool Pruning::Step(const std::vector<TableName>& tables, const Config& config) {
  if (stage_ > tables.size()) {
    const auto removed = store_->PruneIncarnations(kIncarnationsKept, pace_.rows());
    if (!removed) {
      cut_short_ = !Skip(kIncarnations, removed.error());
      return false;
    }
    troubles_.erase(kIncarnations);
    removed_ += *removed;
    return *removed > 0;
  }
  const auto step = stage_ < tables.size()
                        ? store_->PruneEnded(RuleFor(tables[stage_], config), after_, pace_.rows())
                        : store_->PruneKeys(after_, pace_.rows());
  const std::string what = stage_ < tables.size() ? std::string(tables[stage_].text()) : std::string(kKeys);
  if (!step) {
    cut_short_ = !Skip(what, step.error());
    if (cut_short_) return false;
    after_.clear();
    ++stage_;
    return true;
  }
  troubles_.erase(what);
  removed_ += step->removed;
  after_ = step->next;
  if (after_.empty()) ++stage_;
  return true;
}

}  // namespace millrace::engine
