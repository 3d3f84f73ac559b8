// The leader's first duty: from what the tree shows to what the assignments should say. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/leader/membership.h"

namespace millrace {

// A task table whose slices are to be owned: the numbers 0 … slices-1, and those beyond that have rows.
struct PlannedTable {
  std::string shard;
  std::string table;
  std::uint32_t slices = 0;
  std::vector<std::uint32_t> beyond = {};
  auto operator<=>(const PlannedTable&) const = default;
};
struct TableCatalog {
  std::vector<PlannedTable> tables;  // sorted
  // Shards whose tables are not known, since they could not be read yet: what is assigned of them stays
  // planned.
  std::set<std::string> unread;
  bool operator==(const TableCatalog&) const = default;
};

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

// `quiet`: moves may be made that are for balance alone.
PlanDecision DecidePlan(const PlanState& state, bool quiet);

}  // namespace millrace
