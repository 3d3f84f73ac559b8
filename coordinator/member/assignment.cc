#include "coordinator/member/assignment.h"

#include <algorithm>
#include <tuple>

#include "coordinator/planner/handler_groups.h"

namespace millrace {
namespace {

// A group of every other type is scanned for all: what belongs to a group of its own is then looked at by two
// workers, and claimed by one.
std::optional<std::vector<std::string>> TypesOf(std::vector<std::string> handlers) {
  if (std::find(handlers.begin(), handlers.end(), kEveryOther) != handlers.end()) return std::nullopt;
  std::sort(handlers.begin(), handlers.end());
  return handlers;
}

}  // namespace

Result<SlicesByShard> ReadAssignment(const AssignDocument& document) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::uint32_t>> numbers;
  for (const std::string& text : document.slices) {
    const auto name = ParseSliceName(text);
    if (!name) {
      return Fail(ErrorCode::Invalid,
                  "'" + text + "' is not a slice: write shard/table/17 or shard/table/17@group");
    }
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
    if (!document.groups.empty()) owned.handlers = TypesOf(document.groups.at(group));
    slices[shard].push_back(std::move(owned));
  }
  return slices;
}

Result<SlicesByShard> ReadPages(const std::vector<std::string>& pages, AssignDocument& all) {
  for (const std::string& text : pages) {
    auto page = ReadAssign(text);
    if (!page) return Fail(page.error());
    all.epoch = std::max(all.epoch, page->epoch);
    all.generation = std::max(all.generation, page->generation);
    all.slices.insert(all.slices.end(), page->slices.begin(), page->slices.end());
    all.groups.insert(page->groups.begin(), page->groups.end());
  }
  return ReadAssignment(all);
}

}  // namespace millrace
