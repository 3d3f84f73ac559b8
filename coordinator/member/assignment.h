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

// The slices by shard, from the texts of an assignment's pages: each table once for each set of task types.
// Invalid for a name that is none, or of a group whose types its page does not list. `all` gets what the
// pages say together.
Result<SlicesByShard> ReadPages(const std::vector<std::string>& pages, AssignDocument& all);

// The slices that the limits allow, with the task types that both name. A table of which nothing is left
// goes. The only place where a worker of a cluster applies its limits: one that comes back with other ones,
// or gets them while it runs, keeps to them before the plan has heard of them; and where all workers are
// limited to the same task types the plan has no need to name them.
std::shared_ptr<const SlicesByShard> WithinLimits(const std::shared_ptr<const SlicesByShard>& assigned,
                                                  const WorkerLimits& limits);

}  // namespace millrace::engine
