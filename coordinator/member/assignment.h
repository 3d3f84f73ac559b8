// From the plan's names to what the mill scans. Pure.
#pragma once

#include "coordinator/coordination/documents.h"
#include "coordinator/member/member_view.h"
#include "framework/base/result.h"

namespace millrace::engine {

// The slices by shard, from the texts of an assignment's pages: each table once for each set of task types.
// Invalid for a name that is none, or of a group whose types its page does not list. `all` gets what the
// pages say together.
Result<SlicesByShard> ReadPages(const std::vector<std::string>& pages, AssignDocument& all);

}  // namespace millrace::engine
