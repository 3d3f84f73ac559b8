// A cluster's tree, read once, and what the leader would make of it.
#pragma once

#include <set>
#include <string>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/cluster_tree.h"
#include "coordinator/leader/plan_duty.h"

namespace millrace::engine {

// What can't be read is named in `unreadable`; the rest is there.
Result<ClusterTree> ReadTree(ClusterClient& client);

// The tables as the shards tell them. One that does not answer is named to the user, and what is assigned of
// it is planned.
Result<TableCatalog> ReadCatalog(ClusterConnection& cluster);

// What the leader would decide on, were it quiet: draining workers and those of `without` give up their
// slices.
PlanState PlanStateOf(const ClusterTree& tree, const std::set<std::string>& without);

}  // namespace millrace::engine
