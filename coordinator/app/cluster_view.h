// A cluster's tree as people ask about it, read once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/cluster_client.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/leader/plan_duty.h"

namespace millrace {

struct ClusterTree {
  EpochDocument epoch;
  std::vector<std::string> candidates;             // who would lead next; ids, in no order
  std::map<std::string, WorkerDocument> workers;   // present, by id
  std::map<std::string, AssignDocument> assigned;  // by worker id
  std::map<std::string, std::string> statuses;     // by worker id: JSON, as the worker wrote it
  std::set<std::string> draining;
  std::set<std::string> expected;
  std::vector<std::string> pauses;
  std::string plan;                     // JSON, as the leader wrote it; empty: none did yet
  std::vector<std::string> unreadable;  // `workers/x: …`
};

Result<ClusterTree> ReadTree(ClusterClient& client);

// What the leader would decide on, were it quiet: draining workers and those of `without` give up their
// slices.
PlanState PlanStateOf(const ClusterTree& tree, const std::set<std::string>& without);

}  // namespace millrace
