#include "coordinator/leader/ownership.h"

#include "coordinator/planner/handler_groups.h"

namespace millrace::engine {

Ownership::Ownership(const PlanDecision& decision, const std::map<std::string, WorkerDocument>& workers)
    : one_group_(decision.groups.empty()) {
  for (const auto& [id, slices] : decision.wanted) {
    if (workers.contains(id)) slices_.insert(slices.begin(), slices.end());
  }
  for (const std::string& slice : decision.unplaceable) slices_.erase(slice);
  for (const auto& [group, types] : decision.groups) {
    for (const std::string& type : types) {
      if (type == kEveryOther) {
        others_ = group;
      } else {
        group_of_[type] = group;
      }
    }
  }
  for (const auto& [id, document] : workers) {
    if (const auto& types = document.limits.handlers) {
      types_.insert(types->begin(), types->end());
    } else {
      runs_all_ = true;
    }
  }
}

bool Ownership::Covers(const std::string& shard, const DueGroup& group) const {
  SliceName name{shard, group.table, group.slice};
  if (!one_group_) {
    const auto found = group_of_.find(group.handler);
    name.group = found == group_of_.end() ? others_ : found->second;
    if (name.group.empty()) return false;
  }
  return slices_.contains(ToString(name));
}

}  // namespace millrace::engine
