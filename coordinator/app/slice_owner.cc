#include "coordinator/app/slice_owner.h"

#include <algorithm>
#include <map>
#include <vector>

#include "coordinator/planner/handler_groups.h"
#include "framework/task/slice_name.h"

namespace millrace::engine {
namespace {

using Groups = std::map<std::string, std::vector<std::string>>;

// The group that names the type, or else the one that has every other; where there is one group, that.
std::string GroupOf(const ClusterTree& tree, const std::string& handler) {
  std::string others = kDefaultGroup;
  for (const auto& [id, document] : tree.assigned) {
    for (const auto& [group, types] : document.groups) {
      if (std::find(types.begin(), types.end(), handler) != types.end()) return group;
      if (std::find(types.begin(), types.end(), kEveryOther) != types.end()) others = group;
    }
  }
  return others;
}

}  // namespace

std::string SliceOf(const ClusterTree& tree, const std::string& shard, const TableName& table,
                    std::uint32_t number, const std::string& handler) {
  return ToString(SliceName{shard, table, number, GroupOf(tree, handler)});
}

std::string OwnerOf(const ClusterTree& tree, const std::string& slice) {
  for (const auto& [id, document] : tree.assigned) {
    if (std::find(document.slices.begin(), document.slices.end(), slice) != document.slices.end()) return id;
  }
  return "";
}

}  // namespace millrace::engine
