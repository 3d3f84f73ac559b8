// millrace cluster pause and resume: what the red button may be pressed on, as far as a
// command knows the cluster: a name that means nothing there would pause nothing, and say that it did.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/schema_store.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

struct PauseTargets {
  std::optional<std::set<std::string>> shards;           // nullopt: it is not known
  std::map<std::string, std::vector<TableInfo>> tables;  // by shard; of those that could be asked
  // Task types that somebody runs, that are configured, or that there were tasks of; nullopt: it is not
  // known.
  std::optional<std::set<std::string>> types;
  std::optional<std::set<std::string>> workers;  // that are there; nullopt: it is not known
};

// Pure. `names` are as framework/policy/pauses.h. Invalid for the first that means nothing, with the nearest
// one that does; what is not known is not held against a name.
Status CheckPauseTargets(const std::vector<std::string>& names, const PauseTargets& known);

// Invalid for a --reason that is too long to be kept.
Status CheckReason(const std::string& reason);

// What stands under the name of a pause, for people, and the command that takes it back.
struct PauseWords {
  std::string says;  // `paused: handler:a`
  std::string ends;
};
PauseWords WordsOfPause(const std::string& name);
// Of an open breaker that its type's tasks wait for: what closes it by hand.
std::string WordsOfClose(const std::string& type);
// {"what","by","since","reason"}: null for what is not known.
nlohmann::ordered_json PauseJson(const PauseRecord& pause);

}  // namespace millrace::engine
