#include "coordinator/leader/plan_duty.h"

#include <algorithm>
#include <set>

#include "coordinator/leader/eligibility.h"
#include "coordinator/planner/cluster_state.h"
#include "coordinator/planner/handler_groups.h"

namespace millrace {
namespace {

using Owners = std::map<std::string, std::string>;  // slice → worker

bool IsPresent(MemberRole role) {
  return role == MemberRole::Active || role == MemberRole::Probation || role == MemberRole::Draining;
}

MemberRole RoleOf(const PlanState& state, const std::string& id) {
  const auto found = state.roles.find(id);
  return found == state.roles.end() ? MemberRole::Gone : found->second;
}

std::vector<HandlerGroup> GroupsOf(const PlanState& state) {
  std::vector<AcceptedHandlers> accepted;
  for (const auto& [id, document] : state.workers) {
    if (RoleOf(state, id) != MemberRole::Gone) accepted.push_back(document.handlers);
  }
  return DeriveGroups(accepted, state.configured);
}

// The groups by which the slices were assigned until now.
std::vector<HandlerGroup> EarlierGroups(const PlanState& state) {
  HandlersByGroup groups;
  for (const auto& [id, document] : state.assigned) {
    if (document.groups.empty() && !document.slices.empty()) groups[kDefaultGroup] = {kEveryOther};
    for (const auto& [name, handlers] : document.groups) groups.try_emplace(name, handlers);
  }
  std::vector<HandlerGroup> earlier;
  for (auto& [name, handlers] : groups) earlier.push_back({name, std::move(handlers)});
  return earlier;
}

// Who has each slice. Should two documents name one, the owner that is there has it, then the later word.
Owners AssignedOwners(const PlanState& state) {
  Owners owners;
  std::map<std::string, std::pair<bool, std::uint64_t>> weight;
  for (const auto& [id, document] : state.assigned) {
    const std::pair<bool, std::uint64_t> mine{IsPresent(RoleOf(state, id)), document.epoch};
    for (const std::string& slice : document.slices) {
      const auto known = weight.find(slice);
      if (known != weight.end() && known->second >= mine) continue;
      weight[slice] = mine;
      owners[slice] = id;
    }
  }
  return owners;
}

bool MayOwn(const WorkerDocument& worker, const SliceName& slice) {
  return ObstacleOf(worker, slice) == Obstacle::None;
}

bool IsLimited(const WorkerDocument& worker) { return worker.load_balance || worker.shards || worker.tables; }

std::vector<PlannedTable> Tables(const PlanState& state) {
  std::vector<PlannedTable> tables = state.catalog.tables;
  if (state.catalog.unread.empty()) return tables;
  std::map<std::pair<std::string, std::string>, std::uint32_t> assigned;
  for (const auto& [id, document] : state.assigned) {
    for (const std::string& text : document.slices) {
      const auto name = ParseSliceName(text);
      if (!name || !state.catalog.unread.contains(name->shard)) continue;
      std::uint32_t& slices = assigned[{name->shard, name->table}];
      slices = std::max(slices, name->number + 1);
    }
  }
  for (const auto& [table, slices] : assigned) tables.push_back({table.first, table.second, slices});
  return tables;
}

struct NamedSlice {
  SliceName name;
  std::string id;
};

class PlanMaker {
 public:
  PlanMaker(const PlanState& state, bool quiet) : state_(state), quiet_(quiet), groups_(GroupsOf(state)) {}

  PlanDecision Make() {
    ListSlices();
    CarryOwners();
    SplitByOwner();
    Solve({MemberRole::Active}, std::move(first_), quiet_);
    std::vector<NamedSlice> left;
    left.swap(unplaced_);
    left.insert(left.end(), second_.begin(), second_.end());
    Solve({MemberRole::Probation}, std::move(left), false);
    Finish();
    return std::move(decision_);
  }

 private:
  void ListSlices() {
    for (const PlannedTable& table : Tables(state_)) {
      for (const HandlerGroup& group : groups_) {
        for (std::uint32_t number = 0; number < table.slices; ++number) ListSlice(table, group, number);
        for (const std::uint32_t number : table.beyond) ListSlice(table, group, number);
      }
    }
  }

  void ListSlice(const PlannedTable& table, const HandlerGroup& group, std::uint32_t number) {
    SliceName name{table.shard, table.table, number, group.name};
    std::string id = ToString(name);
    slices_.push_back({std::move(name), std::move(id)});
  }

  // A slice of a group that split or merged counts as owned by the owner of what it came from.
  void CarryOwners() {
    const Owners assigned = AssignedOwners(state_);
    const std::vector<HandlerGroup> earlier = EarlierGroups(state_);
    std::map<std::string, std::string> from;
    for (const HandlerGroup& group : groups_) from[group.name] = CarriedFrom(group, earlier);
    for (const NamedSlice& slice : slices_) {
      auto found = assigned.find(slice.id);
      if (found == assigned.end() && from[slice.name.group] != slice.name.group) {
        SliceName old = slice.name;
        old.group = from[slice.name.group];
        if (!old.group.empty()) found = assigned.find(ToString(old));
      }
      if (found != assigned.end()) owners_[slice.id] = found->second;
    }
  }

  // Slices that are kept for an absent owner are no matter of the plan; what workers on probation have and
  // may have stays with them; all others are for the active ones.
  void SplitByOwner() {
    for (NamedSlice& slice : slices_) {
      const auto owner = owners_.find(slice.id);
      const MemberRole role = owner == owners_.end() ? MemberRole::Gone : RoleOf(state_, owner->second);
      if (role == MemberRole::Kept) continue;
      const bool stays = role == MemberRole::Probation && MayKeep(owner->second, slice.name);
      (stays ? second_ : first_).push_back(std::move(slice));
    }
  }

  bool MayKeep(const std::string& id, const SliceName& slice) const {
    const auto worker = state_.workers.find(id);
    if (worker == state_.workers.end() || !MayOwn(worker->second, slice)) return false;
    const auto group = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const HandlerGroup& one) { return one.name == slice.group; });
    return FirstRefused(worker->second, group->handlers) == nullptr;
  }

  void Solve(const std::set<MemberRole>& roles, std::vector<NamedSlice> slices, bool quiet) {
    ClusterState problem;
    for (const auto& [id, document] : state_.workers) {
      if (!roles.contains(RoleOf(state_, id))) continue;
      StateWorker worker{id, document.weight, document.handlers};
      if (IsLimited(document)) worker.slices = Eligible(document, slices);
      problem.workers.push_back(std::move(worker));
    }
    for (const HandlerGroup& group : groups_) problem.groups[group.name] = group.handlers;
    for (const NamedSlice& slice : slices) {
      problem.slices.push_back({slice.id, slice.name.group});
      const auto owner = owners_.find(slice.id);
      if (owner != owners_.end()) problem.current[slice.id] = owner->second;
    }
    const NumberedState numbered = Number(problem);
    const Plan plan = SolvePlan(numbered.input);
    Take(numbered, plan, quiet);
    const std::set<SliceIndex> missed(plan.unplaceable.begin(), plan.unplaceable.end());
    std::set<std::string> missed_names;
    for (const SliceIndex index : missed) missed_names.insert(numbered.slices[index]);
    for (NamedSlice& slice : slices) {
      if (missed_names.contains(slice.id)) unplaced_.push_back(std::move(slice));
    }
  }

  static std::vector<std::string> Eligible(const WorkerDocument& document,
                                           const std::vector<NamedSlice>& slices) {
    std::vector<std::string> eligible;
    for (const NamedSlice& slice : slices) {
      if (MayOwn(document, slice.name)) eligible.push_back(slice.id);
    }
    return eligible;
  }

  void Take(const NumberedState& numbered, const Plan& plan, bool quiet) {
    for (const PlanMove& move : plan.moves) {
      if (move.to == kNobody) continue;  // it stays with whoever has it, until somebody can take it
      if (move.voluntary && !quiet) {
        ++decision_.waiting;
        continue;
      }
      const std::string& slice = numbered.slices[move.slice];
      const auto owner = owners_.find(slice);
      decision_.moves.push_back(
          {slice, owner == owners_.end() ? "" : owner->second, numbered.workers[move.to], move.voluntary});
    }
  }

  void Finish() {
    for (const NamedSlice& slice : unplaced_) decision_.unplaceable.push_back(slice.id);
    std::sort(decision_.unplaceable.begin(), decision_.unplaceable.end());
    if (groups_.size() != 1 || groups_.front().name != kDefaultGroup) {
      for (const HandlerGroup& group : groups_) decision_.groups[group.name] = group.handlers;
    }
    Owners wanted = owners_;
    for (const SliceMove& move : decision_.moves) wanted[move.slice] = move.to;
    for (const auto& [id, document] : state_.assigned) decision_.wanted[id];
    for (const auto& [slice, id] : wanted) decision_.wanted[id].push_back(slice);
  }

  const PlanState& state_;
  const bool quiet_;
  const std::vector<HandlerGroup> groups_;
  std::vector<NamedSlice> slices_;
  Owners owners_;
  std::vector<NamedSlice> first_;
  std::vector<NamedSlice> second_;
  std::vector<NamedSlice> unplaced_;
  PlanDecision decision_;
};

}  // namespace

PlanDecision DecidePlan(const PlanState& state, bool quiet) { return PlanMaker(state, quiet).Make(); }

}  // namespace millrace
