// What limits leave of an assignment. A worker that comes back with other ones, or gets them while it runs,
// keeps to them before the plan has heard of them; and where all workers are limited to the same task types
// the plan has no need to name them. The only place where a worker of a cluster applies its limits. Pure.
#pragma once

#include <memory>

#include "coordinator/coordination/documents.h"
#include "coordinator/member/member_view.h"

namespace millrace::engine {

// The slices that the limits in `worker` allow, with the task types that both name; each of its lists is
// sorted. A table of which nothing is left goes.
std::shared_ptr<const SlicesByShard> WithinLimits(const std::shared_ptr<const SlicesByShard>& assigned,
                                                  const WorkerDocument& worker);

}  // namespace millrace::engine
