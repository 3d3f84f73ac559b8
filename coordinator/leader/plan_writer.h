// From a decision to one multi at a time. An assignment is kept in pages (assign/<id>, assign/<id>/1, …),
// each of a bounded size, so that a move touches two pages however many slices a worker has: its removal here
// and its addition there are always one multi. Any part of the moves leads to the same total, so what follows
// is decided anew from what the tree then shows. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordination/tree.h"
#include "coordinator/leader/plan.h"

namespace millrace::engine {

struct StoredPage {
  std::string path;
  std::shared_ptr<const AssignDocument> document;  // null: it can't be read
};
// By worker; the pages in order, `assign/<id>` first.
using StoredAssignments = std::map<std::string, std::vector<StoredPage>>;

bool OwnsAny(const std::vector<StoredPage>& pages);
// All pages together; nullopt: one can't be read.
std::optional<AssignDocument> Together(const std::vector<StoredPage>& pages);

struct PlanWriter {
  std::uint64_t epoch = 0;
  std::size_t longest_page = 100 * 1024;   // bytes
  std::size_t longest_multi = 220 * 1024;  // two pages and what else a leader tells
  std::size_t most_pages = 100;            // in one multi

  // The writes that come next; empty where every page says what it should. `moved` gets the moves that they
  // carry out.
  std::vector<TreeWrite> Next(const PlanDecision& decision, const StoredAssignments& stored,
                              std::vector<SliceMove>& moved) const;
};

}  // namespace millrace::engine
