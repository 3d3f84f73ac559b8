// Why a task is not running, in sentences. Pure: what is known is passed in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/config/config.h"
#include "framework/store/task_desk.h"

namespace millrace {

struct WhyFacts {
  std::string shard;
  TaskRecord record;
  WallTime now;
  std::string key_holder;            // the task that has its key, where it is another
  std::vector<std::string> workers;  // incarnations in the shard that are not marked dead
  std::vector<std::string> pauses;   // names of what is paused, as framework/policy/pauses.h
  // The handlers of the plugins at hand; nullopt: no plugin folder is at hand.
  std::optional<std::vector<std::string>> plugin_handlers;
  HandlerConfig config;
};

// The most telling first. Never empty.
std::vector<std::string> ExplainTask(const WhyFacts& facts);

}  // namespace millrace
