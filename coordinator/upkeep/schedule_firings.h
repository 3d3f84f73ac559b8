// What the firings of schedules insert, and into which table of their shard.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/config.h"
#include "framework/store/store.h"

namespace millrace::engine {

// What a firing of the schedule inserts: a task with its key, or a fan-out.
ScheduledWork WorkOf(const std::string& name, const ScheduleConfig& schedule, WallTime time,
                     const TableName& table);

// The firings of one shard. One thread.
class ScheduleFirings {
 public:
  ScheduleFirings(std::string shard, std::unique_ptr<SchemaStore> schema)
      : shard_(std::move(shard)), schema_(std::move(schema)) {}

  // To be called first. The tables are read anew with each configuration, once one of them is wanted.
  void Follow(std::shared_ptr<const Config> config);
  // The firing of that time. NotFound: the shard has no table, or not the one that the schedule names.
  Result<ScheduledFiring> Of(const std::string& name, const ScheduleConfig& schedule, WallTime time);

 private:
  Status ReadTables();

  const std::string shard_;
  const std::unique_ptr<SchemaStore> schema_;
  std::shared_ptr<const Config> config_;
  std::vector<TableName> tables_;  // where they are known; sorted
};

}  // namespace millrace::engine
