// millrace task why: why a task is not running, in sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/task_lookup.h"
#include "framework/config/config.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

// What the cluster of the task's store says of it.
struct ClusterFacts {
  std::string slice = {};      // in which the task stands, by its name
  std::string unreached = {};  // why it could not be asked; empty: it was
  std::string owner = {};      // the worker that has it by the plan; empty: nobody
  bool owner_there = false;    // and is there
  bool type_runs = true;       // some worker that is there runs the task's type
};

struct WhyFacts {
  std::string shard;
  TaskRecord record;
  WallTime now;
  std::string key_holder;            // the task that has its key, where it is another
  std::vector<std::string> workers;  // incarnations in the shard that are not marked dead
  std::vector<std::string> pauses;   // names of what is paused, as framework/policy/pauses.h
  // The handlers of the plugins at hand; nullopt: no plugin folder is at hand.
  std::optional<std::vector<std::string>> plugin_handlers;
  HandlerConfig config;                 // over what its handler brings
  std::optional<ClusterFacts> cluster;  // nullopt: none is named
};

// The most telling first. Never empty. Pure.
std::vector<std::string> ExplainTask(const WhyFacts& facts);
// The same of a task by its name, as the store, the cluster and the plugins at hand have it now.
Result<std::vector<std::string>> ExplainTask(TaskShards& open, const CommonFlags& common,
                                             const TaskName& name);

}  // namespace millrace::engine
