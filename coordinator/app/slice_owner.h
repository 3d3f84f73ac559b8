// Who should work on a task, by the plan. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/app/cluster_tree.h"

namespace millrace {

// The worker whose assignment has the slice in which tasks of this type stand; empty: nobody has it.
std::string OwnerOf(const ClusterTree& tree, const std::string& shard, const std::string& table,
                    std::uint32_t slice, const std::string& handler);

}  // namespace millrace
