// millrace cluster limit: what becomes of a worker's limits, and whether they mean something in this cluster:
// a name or number that nobody has would take all its work away, and say that it was limited. A worker's own
// flags ask the same of shards and tables.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "framework/base/result.h"
#include "framework/policy/eligibility.h"
#include "framework/store/schema_store.h"

namespace millrace::engine {

using TablesOfShards = std::map<std::string, std::vector<TableInfo>>;

// Of each that is wanted and not there: `there is no shard 'mian' (did you mean 'main'?)`. A table is
// `shard/table`, or `table` of any shard.
std::vector<std::string> ShardsThatAreNotThere(const std::vector<std::string>& wanted,
                                               const TablesOfShards& tables);
std::vector<std::string> TablesThatAreNotThere(const std::vector<std::string>& wanted,
                                               const TablesOfShards& tables);

struct LimitTargets {
  // Task types that somebody runs or that are configured; nullopt: it is not known.
  std::optional<std::set<std::string>> types;
  // Those that are scanned in rounds; nullopt likewise.
  std::optional<std::set<std::string>> in_rounds = {};
  TablesOfShards tables;  // of those that could be read
  bool all_read = true;   // there are no other shards
};

// Pure. Invalid for the first limit that means nothing, with the nearest that does; what is not known is not
// held against it.
Status CheckLimits(const LimitsDocument& limits, const LimitTargets& known);

// What stands, with each kind of limit that is named (types, numbers, shards, tables, rows) in place of its
// own kind. Pure.
LimitsDocument WithNamed(LimitsDocument standing, const LimitsDocument& named);

// `load-balance numbers 0-31; task types send_mail; 500 rows of report in a round`; empty: there are none.
std::string LimitsText(const WorkerLimits& limits);
std::string LimitsText(const LimitsDocument& limits);

// `TYPE=N`, as many times as given. Invalid for one that is none.
Result<std::map<std::string, std::uint32_t>> ReadMaxRows(const std::vector<std::string>& texts);

}  // namespace millrace::engine
