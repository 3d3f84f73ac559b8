// What one poll asks of one table. A plan may name a table several times, with other handlers for other
// slices; the table is asked once, for the union, and what belongs to none of the parts is left out
// afterwards. Pure.
#pragma once

#include <span>
#include <vector>

#include "framework/store/task_store.h"

namespace millrace::engine {

struct DueScope {
  TableSlices whole;  // the union of the parts
  // Borrowed from the request; empty where the union is exact.
  std::vector<const TableSlices*> parts = {};

  // Whether one of the parts asks for the group.
  bool Covers(const DueGroup& group) const;
};

// One scope for each table of which something is asked, by name. `tables` must outlive it.
std::vector<DueScope> ScopesOf(std::span<const TableSlices> tables);

}  // namespace millrace::engine
