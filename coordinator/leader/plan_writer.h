// From a decision to one multi at a time. An assignment is kept in pages (assign/<id>, assign/<id>/1, …),
// each of a bounded size, so that a move touches two pages however many slices a worker has: its removal here
// and its addition there are always one multi. Any part of the moves leads to the same total, so a writer may
// be left at any time, and what follows is decided anew from what the tree then shows. No I/O.
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

struct PageBounds {
  std::size_t longest_page = 100 * 1024;   // bytes
  std::size_t longest_multi = 220 * 1024;  // two pages and what else a leader tells
  std::size_t most_pages = 100;            // in one multi
};

// Not thread-safe.
class PlanWriter {
 public:
  // `stored`: what the decision was made from.
  PlanWriter(std::uint64_t epoch, const PageBounds& bounds, std::shared_ptr<const PlanDecision> decision,
             StoredAssignments stored);
  ~PlanWriter();
  // The writes that come next, once those before them are in the tree; empty where every page says what it
  // should. `moved` gets the moves that they carry out.
  std::vector<TreeWrite> Next(std::vector<SliceMove>& moved);

 private:
  class Draft;
  std::unique_ptr<Draft> draft_;
};

}  // namespace millrace::engine
