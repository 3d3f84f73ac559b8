// From a decision to one multi at a time: part of its moves, small enough for one request, with every slice's
// removal here and addition there in the same multi. Any part of the moves leads to the same total, so what
// follows is decided anew from what the tree then shows. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordination/tree.h"
#include "coordinator/leader/plan_duty.h"

namespace millrace {

// An assignment as it stands in the tree.
struct StoredAssignment {
  std::optional<AssignDocument> document;  // nullopt: it can't be read
  std::vector<std::string> nodes;          // paths that exist: assign/<id>, then its further parts
};

struct PlanWriter {
  std::uint64_t epoch = 0;
  std::size_t longest_node = 200 * 1024;  // bytes
  std::size_t longest_multi = 250 * 1024;
  std::size_t most_workers = 60;  // documents in one multi

  // The writes that come next; empty where every document says what it should. `moved` gets the moves that
  // they carry out.
  std::vector<TreeWrite> Next(const PlanDecision& decision,
                              const std::map<std::string, StoredAssignment>& stored,
                              std::vector<SliceMove>& moved) const;

 private:
  std::vector<TreeWrite> Write(const std::string& id, AssignDocument document,
                               const StoredAssignment* stored) const;
};

}  // namespace millrace
