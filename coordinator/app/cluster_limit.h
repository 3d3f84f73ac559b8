// millrace cluster limit: whether what a worker is to be limited to means something in this cluster: a name
// or number that nobody has would take all its work away, and say that it was limited.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/policy/eligibility.h"
#include "framework/store/schema_store.h"

namespace millrace::engine {

struct LimitTargets {
  // Task types that somebody runs or that are configured; nullopt: it is not known.
  std::optional<std::set<std::string>> types;
  std::map<std::string, std::vector<TableInfo>> tables;  // by shard; of those that could be read
  bool all_read = true;                                  // there are no other shards
};

// Pure. Invalid for the first limit that means nothing, with the nearest that does; what is not known is not
// held against it.
Status CheckLimits(const WorkerLimits& limits, const LimitTargets& known);

}  // namespace millrace::engine
