// From the plan's names to what the mill scans: what is assigned, and what the worker's limits leave of it.
// Pure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "framework/base/result.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

using SlicesByShard = std::map<std::string, std::vector<TableSlices>>;

// What the pages of an assignment say together.
struct Assignment {
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;
  // Of the first page, which has the shares: another may have been read in a newer generation before it.
  std::uint64_t shares_generation = 0;
  LimitShares shares = {};
  std::string shares_of = {};
  std::size_t slice_count = 0;
  SlicesByShard slices = {};  // each table once for each set of task types
};

// The first page comes first. Invalid for a name that is none, or of a group whose types its page does not
// list.
Result<Assignment> ReadPages(const std::vector<std::string>& pages);

// The slices that the limits allow, with the task types that both name. A table of which nothing is left
// goes. The only place where a worker of a cluster applies its limits: one that comes back with other ones,
// or gets them while it runs, keeps to them before the plan has heard of them; and where all workers are
// limited to the same task types the plan has no need to name them.
std::shared_ptr<const SlicesByShard> WithinLimits(const std::shared_ptr<const SlicesByShard>& assigned,
                                                  const WorkerLimits& limits);

}  // namespace millrace::engine
