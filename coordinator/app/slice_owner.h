// Who should work on a task, by the plan. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/app/cluster_tree.h"

namespace millrace::engine {

// The name of the slice in which a task of this type stands: with the group that the plan has for the type.
std::string SliceOf(const ClusterTree& tree, const std::string& shard, const TableName& table,
                    std::uint32_t number, const std::string& handler);

// The worker whose assignment has the slice of this name; empty: nobody has it.
std::string OwnerOf(const ClusterTree& tree, const std::string& slice);

}  // namespace millrace::engine
