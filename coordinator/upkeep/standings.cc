#include "coordinator/upkeep/standings.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr const char* kQuarantineClass = "crash";

constexpr Micros kAskedFor = std::chrono::minutes(5);

double Seconds(Micros micros) { return std::chrono::duration<double>(micros).count(); }

}  // namespace

StandingByType StandingOf(const WaitingOverview& waiting, std::span<const TaskTotals> totals,
                          const FailedOverview& failed) {
  StandingByType types;
  for (const HandlerOverview& part : waiting.handlers) {
    TypeStanding& type = types[part.handler];
    type.waiting += part.waiting.count + part.running.count;
    if (!part.oldest_due) continue;
    type.overdue = std::max(type.overdue.value_or(Micros(0)), waiting.now - *part.oldest_due);
  }
  for (const TaskTotals& counted : totals) types[counted.handler].failed += counted.failed;
  for (const FailedClass& part : failed.classes) {
    if (part.error_class == kQuarantineClass) types[part.handler].quarantined += part.count;
  }
  return types;
}

Result<ShardStanding> StandingReader::Read(std::span<const TableName> tables, const Config& config) {
  BOOST_OUTCOME_TRY(waiting, overview_->Waiting(tables));
  BOOST_OUTCOME_TRY(totals, operations_->TypeTotals());
  BOOST_OUTCOME_TRY(failed, overview_->Failed(tables, totals));
  ShardStanding standing{.types = StandingOf(waiting, totals, failed)};
  const auto schedules = schedules_->Rows();
  if (!schedules) {  // a schema from before there were any has none that could be late
    if (schedules.error().code == ErrorCode::NotFound) return standing;
    return Fail(schedules.error());
  }
  for (const ScheduleRow& row : schedules->rows) {
    const bool counts = row.moved_to.empty() && config.schedules.contains(row.name);
    const auto late = counts ? LateBy(row.state, schedules->now) : std::nullopt;
    standing.late_schedule = std::max(standing.late_schedule, late.value_or(Micros(0)));
  }
  return standing;
}

void Standings::Keep(const std::string& shard, ShardStanding seen, BootTime read) {
  MutexLock lock(mutex_);
  Standing& standing = shards_[shard];
  standing.seen = std::move(seen);
  standing.read = read;
}

void Standings::NotePruned(const std::string& shard, BootTime at) {
  MutexLock lock(mutex_);
  shards_[shard].pruned = at;
}

void Standings::Forget(const std::string& shard) {
  MutexLock lock(mutex_);
  shards_.erase(shard);
}

// What was due at the look is due since then, too: where it was run meanwhile the next look says so. Of a
// time in which nobody asked there was no look, and a backlog that is long gone would be told as the oldest
// of all: what was read so long ago is told no more.
void Standings::Measure(Gauges& gauges, BootTime now) const {
  MutexLock lock(mutex_);
  const bool had_pause = asked_ && now - *asked_ > kAskedFor;
  asked_ = now;
  for (auto& [shard, standing] : shards_) {
    if (had_pause && now - standing.read > kAskedFor) standing.seen.reset();
    if (standing.pruned) {
      gauges.Set("millrace_purge_lag_seconds", {{"shard", shard}}, Seconds(now - *standing.pruned));
    }
    if (!standing.seen) continue;
    gauges.Set("millrace_schedule_late_seconds", {{"shard", shard}}, Seconds(standing.seen->late_schedule));
    for (const auto& [handler, type] : standing.seen->types) {
      const MetricLabels labels{{"shard", shard}, {"handler", handler}};
      const Micros overdue = type.overdue ? *type.overdue + (now - standing.read) : Micros(0);
      gauges.Set("millrace_tasks_waiting", labels, static_cast<double>(type.waiting));
      gauges.Set("millrace_oldest_due_seconds", labels, Seconds(overdue));
      gauges.Set("millrace_tasks_failed", labels, static_cast<double>(type.failed));
      if (type.quarantined > 0) {
        gauges.Set("millrace_tasks_quarantined", labels, static_cast<double>(type.quarantined));
      }
    }
  }
}

bool Standings::Wanted(BootTime now) const {
  MutexLock lock(mutex_);
  return asked_ && now - *asked_ <= kAskedFor;
}

}  // namespace millrace::engine
