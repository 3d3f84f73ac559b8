// A change of the cluster's configuration, whichever command makes it: checked whole, guarded by the version
// that was read, kept in the history with who made it; at the end each worker's word on it is told.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/config/config_history.h"

namespace millrace::engine {

struct PartChange {
  bool dry_run = false;                 // it is checked and shown, and nothing is set
  bool offline = false;                 // new shards are not tried out
  bool yes = false;                     // nobody is asked
  bool assembled = false;               // the text is not the user's own: its lines mean nothing
  std::vector<std::string> lines = {};  // printed at the end
  nlohmann::ordered_json answer = nlohmann::ordered_json::object();  // the same, as keys of the JSON
};

// Sets the part that was read as `node` to `text`, and prints what came of it. Invalid, with the keys, for
// what the workers would refuse; Conflict where somebody else has changed it since. `restores`: of a
// rollback, the version whose text it is.
Result<ExitCode> SetPart(ClusterConnection& cluster, const ConfigNode& node, const std::string& text,
                         const CommonFlags& flags, const PartChange& change,
                         const ConfigChange* restores = nullptr);

}  // namespace millrace::engine
