// One schedule of the part `schedules`, as a value. conf/README.md describes its keys.
#pragma once

#include <optional>
#include <string>

#include "framework/schedule/firing.h"
#include "framework/schedule/key_template.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

struct ScheduleConfig {
  ScheduleRule rule;  // when it fires
  std::string handler;
  std::string params = "{}";       // JSON object; of a fan-out each row's columns are the params
  std::string shard;               // where its tasks and its own row stand; empty: the first, by name
  std::optional<TableName> table;  // nullopt: the shard's first
  std::string from_query;          // a fan-out: a task for each of its rows; empty: one task
  std::optional<KeyTemplate> key;  // of a fan-out, which always has one
  bool operator==(const ScheduleConfig&) const = default;
};

}  // namespace millrace::engine
