// From what a person typed to the tasks that are meant.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/commands.h"
#include "coordinator/app/shards.h"

namespace millrace {

// Shards that are open, with a desk for each.
struct Desks {
  Settings settings;
  Shards shards;
  std::map<std::string, std::unique_ptr<TaskDesk>> desks;  // by shard

  TaskDesk& Desk(const std::string& shard) { return *desks.at(shard); }
};

// Opens those of --shard, or all.
Result<Desks> OpenDesks(const CommonFlags& common, const std::string& shard);

// The tasks named, and the one that has --key. Invalid where a name is no name, a bare id is ambiguous, or
// there is nothing named; NotFound where no task has the key.
Result<std::vector<TaskName>> NamedTasks(Desks& desks, const TaskChoice& choice);

// The same where one is wanted: Invalid for more.
Result<TaskName> OneNamedTask(Desks& desks, const TaskChoice& choice);

// --state, --handler …; Invalid for an unknown state.
Result<TaskFilter> FilterOf(const TaskChoice& choice);
bool HasFilter(const TaskChoice& choice);

// The tables to look through: shard and table, in order; those of --shard and --table.
Result<std::vector<std::pair<std::string, std::string>>> TablesOf(Desks& desks, const TaskChoice& choice);

// `Get` with an error that says what to do.
Result<TaskRecord> GetTask(Desks& desks, const TaskName& name);

}  // namespace millrace
