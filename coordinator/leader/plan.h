// The plan: from what the tree shows to what the assignments should say. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/leader/membership.h"
#include "coordinator/upkeep/leftovers.h"
#include "coordinator/upkeep/table_catalog.h"
#include "framework/config/config.h"

namespace millrace::engine {

using HandlersByGroup = std::map<std::string, std::vector<std::string>>;

struct PlanState {
  std::map<std::string, WorkerDocument> workers;   // by id: present, or kept as they were seen last
  std::map<std::string, MemberRole> roles;         // of those, and of owners that are away
  std::map<std::string, AssignDocument> assigned;  // as read; one that can't be read is left out
  TableCatalog catalog;
  std::map<std::string, std::string> configured;  // task type → its group, where that is not the default one
};

struct SliceMove {
  std::string slice;
  std::string from;  // empty: nobody
  std::string to;
  bool voluntary = false;
};

struct PlanDecision {
  std::vector<SliceMove> moves;          // to be made now
  std::size_t waiting = 0;               // moves for balance that wait until it is quiet
  std::vector<std::string> unplaceable;  // no worker there accepts them; sorted
  HandlersByGroup groups;                // as in AssignDocument: empty where one group takes all
  // The whole assignment of every worker: what its document should hold once the moves are made.
  std::map<std::string, std::vector<std::string>> wanted;
};

// For PlanState::configured.
std::map<std::string, std::string> ConfiguredGroups(const Config& config);
// Adds the groups by which these slices are named, each with all types that it had anywhere.
void AddGroups(const AssignDocument& assigned, HandlersByGroup& groups);
// `quiet`: moves may be made that are for balance alone.
PlanDecision DecidePlan(const PlanState& state, bool quiet);
// Which rows that leaves to somebody, of the workers that are there.
Ownership OwnershipOf(const PlanDecision& decision, const std::map<std::string, WorkerDocument>& present);

}  // namespace millrace::engine
