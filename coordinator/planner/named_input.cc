#include "coordinator/planner/named_input.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace millrace::engine {
namespace {

using Numbers = std::unordered_map<std::string_view, std::uint32_t>;

// The views are of `names`, which stays where it is.
Numbers NumbersOf(const std::vector<std::string>& names) {
  Numbers numbers;
  numbers.reserve(names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], i);
  return numbers;
}

template <class Named>
std::vector<std::string> SortedIds(const std::vector<Named>& all) {
  std::vector<std::string> ids;
  ids.reserve(all.size());
  for (const Named& one : all) ids.push_back(one.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::string> GroupsInUse(const std::vector<NamedSlice>& slices) {
  std::unordered_set<std::string_view> names;
  for (const NamedSlice& slice : slices) names.insert(slice.group);
  std::vector<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::vector<GroupIndex> AcceptedGroups(const NamedInput& named, const std::vector<std::string>& groups,
                                       const std::vector<std::string>& handlers) {
  const std::unordered_set<std::string_view> accepted(handlers.begin(), handlers.end());
  const auto accepts = [&](const std::string& handler) { return accepted.contains(handler); };
  std::vector<GroupIndex> indexes;
  for (GroupIndex i = 0; i < groups.size(); ++i) {
    const auto listed = named.groups.find(groups[i]);
    const bool all = listed == named.groups.end()
                         ? accepts(groups[i])
                         : std::all_of(listed->second.begin(), listed->second.end(), accepts);
    if (all) indexes.push_back(i);
  }
  return indexes;
}

std::vector<SliceIndex> KnownSlices(const std::vector<std::string>& names, const Numbers& numbers) {
  std::vector<SliceIndex> known;
  for (const std::string& name : names) {
    if (const auto found = numbers.find(name); found != numbers.end()) known.push_back(found->second);
  }
  return known;
}

}  // namespace

NumberedInput Number(const NamedInput& named) {
  NumberedInput numbered{SortedIds(named.workers), SortedIds(named.slices), {}};
  const std::vector<std::string> groups = GroupsInUse(named.slices);
  const Numbers workers = NumbersOf(numbered.workers);
  const Numbers slices = NumbersOf(numbered.slices);
  const Numbers group_numbers = NumbersOf(groups);
  numbered.input.workers.resize(named.workers.size());
  for (const NamedWorker& worker : named.workers) {
    PlanWorker& out = numbered.input.workers[workers.at(worker.id)];
    out.weight = worker.weight;
    if (worker.handlers) out.groups = AcceptedGroups(named, groups, *worker.handlers);
    if (worker.slices) out.slices = KnownSlices(*worker.slices, slices);
  }
  numbered.input.slices.resize(named.slices.size());
  for (const NamedSlice& slice : named.slices) {
    PlanSlice& out = numbered.input.slices[slices.at(slice.id)];
    out.group = group_numbers.at(slice.group);
    const auto holder = named.current.find(slice.id);
    if (holder == named.current.end()) continue;
    const auto owner = workers.find(holder->second);
    if (owner != workers.end()) out.owner = owner->second;
  }
  return numbered;
}

}  // namespace millrace::engine
