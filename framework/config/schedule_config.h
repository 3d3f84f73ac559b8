// One schedule of the part `schedules`, as a value. conf/README.md describes its keys.
#pragma once

#include <optional>
#include <string>

#include "framework/schedule/firing.h"
#include "framework/schedule/key_template.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// What a zone that this machine's tzdata does not have makes bad: the whole document, as where a person
// writes it, or its schedule alone, as where it is in force already and another machine knows the zone.
enum class UnknownZones { Refused, Contained };

struct ScheduleConfig {
  ScheduleRule rule;  // when it fires
  std::string handler;
  std::string params = "{}";       // JSON object; of a fan-out each row's columns are the params
  std::string shard;               // where its tasks and its own row stand; empty: the first, by name
  std::optional<TableName> table;  // nullopt: the shard's first
  std::string from_query;          // a fan-out: a task for each of its rows; empty: one task
  std::optional<KeyTemplate> key;  // of a fan-out, which always has one
  std::string fault;               // why it can't fire on this machine; empty: it can
  bool operator==(const ScheduleConfig&) const = default;
};

}  // namespace millrace::engine
