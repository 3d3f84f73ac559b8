#include "coordinator/member/assignment.h"

#include <algorithm>
#include <tuple>

#include "coordinator/coordination/slice_name.h"

namespace millrace {

Result<SlicesByShard> ReadAssignment(const AssignDocument& document) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::uint32_t>> numbers;
  for (const std::string& text : document.slices) {
    auto name = ParseSliceName(text);
    if (!name) return Fail(name.error());
    const bool every_type = document.groups.empty() && name->group == kDefaultGroup;
    if (!every_type && !document.groups.contains(name->group)) {
      return Fail(ErrorCode::Invalid, "the group of " + text + " is not among its groups");
    }
    numbers[{name->shard, name->table, name->group}].push_back(name->number);
  }
  SlicesByShard slices;
  for (auto& [key, list] : numbers) {
    const auto& [shard, table, group] = key;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    TableSlices owned{table, false, std::move(list)};
    if (!document.groups.empty()) {
      owned.handlers = document.groups.at(group);
      std::sort(owned.handlers->begin(), owned.handlers->end());
    }
    slices[shard].push_back(std::move(owned));
  }
  return slices;
}

}  // namespace millrace
