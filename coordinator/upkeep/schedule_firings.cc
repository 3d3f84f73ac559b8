#include "coordinator/upkeep/schedule_firings.h"

#include <algorithm>
#include <utility>

namespace millrace::engine {

ScheduledWork WorkOf(const std::string& name, const ScheduleConfig& schedule, WallTime time,
                     const TableName& table) {
  if (!schedule.from_query.empty()) {
    return FanOut{.schedule = name,
                  .firing = time,
                  .handler = schedule.handler,
                  .table = table,
                  .query = schedule.from_query,
                  .key = schedule.key->text(),
                  .zone = schedule.rule.timing.zone.name()};
  }
  NewTask task;
  task.handler = schedule.handler;
  task.params = schedule.params;
  task.biz_key = FiringKey(name, time);
  return task;
}

void ScheduleFirings::Follow(std::shared_ptr<const Config> config) {
  if (config == config_) return;
  config_ = std::move(config);
  tables_.clear();
}

Result<ScheduledFiring> ScheduleFirings::Of(const std::string& name, const ScheduleConfig& schedule,
                                            WallTime time) {
  const auto known = [&](const TableName& table) {
    return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
  };
  if (tables_.empty() || (schedule.table && !known(*schedule.table))) {
    BOOST_OUTCOME_TRYV(ReadTables());
  }
  if (tables_.empty()) return Fail(ErrorCode::NotFound, "shard " + shard_ + " has no task table");
  const TableName table = schedule.table.value_or(tables_.front());
  if (known(table)) return ScheduledFiring{time, table, WorkOf(name, schedule, time, table)};
  return Fail(ErrorCode::NotFound, "shard " + shard_ + " has no table " + std::string(table.text()));
}

// Those that are served: the configuration may name some of those that are there.
Status ScheduleFirings::ReadTables() {
  BOOST_OUTCOME_TRY(infos, schema_->Tables());
  const auto shard = config_->shards.find(shard_);
  const auto served = shard == config_->shards.end() ? std::vector<TableName>() : shard->second.tables;
  tables_.clear();
  for (const TableInfo& info : infos) {
    const bool is_served =
        served.empty() || std::find(served.begin(), served.end(), info.table) != served.end();
    if (is_served) tables_.push_back(info.table);
  }
  std::sort(tables_.begin(), tables_.end());
  return {};
}

}  // namespace millrace::engine
