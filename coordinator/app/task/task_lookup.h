// From what a person typed to the tasks that are meant.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/command/shards.h"

namespace millrace::engine {

// The flags by which tasks are chosen.
struct TaskChoice {
  CommonFlags common;
  std::string shard;
  std::string table;
  std::vector<std::string> names;
  std::string key;
  std::string state;
  std::string handler;
  std::string batch;
  std::string error_class;
  std::optional<std::uint32_t> slice;
  std::optional<std::uint32_t> priority;
  // Times, or how long ago.
  std::string since;
  std::string until;
  std::string older_than;  // how long; the same as --until
  std::string due_before;
};
void AddNames(CLI::App& app, TaskChoice& choice);
void AddChoice(CLI::App& app, TaskChoice& choice);  // of one task, and what narrows a listing
// Of many. `priority`: the flag's name, where --priority means another thing.
void AddFilters(CLI::App& app, TaskChoice& choice, const char* priority = "--priority");

// The shards, with what may be done in each.
struct TaskShards {
  Settings settings;
  Shards shards;
  std::map<std::string, Error> away;  // those of them that can't be read, and why
  std::map<std::string, std::unique_ptr<TaskOperations>> operations;  // by shard

  TaskOperations& Operations(const std::string& shard) { return *operations.at(shard); }
};

// Opens those of --shard, or all. Fails where none of them can be read; where some can't, the others are of
// use for what is asked of them alone.
Result<TaskShards> OpenTaskShards(const CommonFlags& common, const std::string& shard);

// For what must leave no shard out: the first that is away, as an error.
Status CheckAllThere(const TaskShards& open);

// The tasks named, and the one that has --key. Invalid where a name is no name, a bare id or the key is
// ambiguous, or there is nothing named; NotFound where no task has the key.
Result<std::vector<TaskName>> NamedTasks(TaskShards& open, const TaskChoice& choice);

// The same where one is wanted: Invalid for more.
Result<TaskName> OneNamedTask(TaskShards& open, const TaskChoice& choice);

// --state, --handler …; Invalid for an unknown state, and for what is no time.
Result<TaskFilter> FilterOf(const TaskChoice& choice);
// The same in words: `handler noop, state failed, since 2026-11-20T18:00:00Z`; with --shard and --table.
std::string FilterText(const TaskChoice& choice, const TaskFilter& filter);
bool HasFilter(const TaskChoice& choice);

// The tables to look through: shard and table, in order; those of --shard and --table, in shards that are
// there. Invalid where none of them has such a table.
Result<std::vector<std::pair<std::string, TableName>>> TablesOf(TaskShards& open, const TaskChoice& choice);

// `Get` with an error that says what to do.
Result<TaskRecord> GetTask(TaskShards& open, const TaskName& name);

}  // namespace millrace::engine
