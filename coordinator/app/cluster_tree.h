// A cluster's tree as people ask about it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/fixed_nodes.h"

namespace millrace::engine {

struct ClusterTree {
  EpochDocument epoch;
  std::vector<std::string> candidates;             // who would lead next; ids, in no order
  std::map<std::string, WorkerDocument> workers;   // present, by id
  std::map<std::string, AssignDocument> assigned;  // by worker id
  // By worker id: an object, as the worker wrote it; what is in it may be of any type.
  std::map<std::string, nlohmann::ordered_json> statuses;
  std::set<std::string> draining;
  std::set<std::string> expected;
  std::set<std::string> left;  // stopped in good order; what they owned is not yet another's
  std::vector<std::string> pauses;
  std::vector<std::string> missing;   // of the nodes that always exist
  std::vector<MadeAgain> made_again;  // since somebody had deleted them
  PlanDocument plan;
  nlohmann::ordered_json plan_json = nlohmann::ordered_json::object();  // as the leader wrote it
  std::vector<std::string> unreadable;                                  // `workers/x: …`
};

// NotFound, with the nearest known one, for an id that neither a worker nor an assignment has.
Status CheckWorkers(const ClusterTree& tree, const std::vector<std::string>& ids);

}  // namespace millrace::engine
