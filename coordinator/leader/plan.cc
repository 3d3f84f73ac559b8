#include "coordinator/leader/plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "coordinator/leader/slice_kinds.h"
#include "coordinator/planner/handler_groups.h"
#include "coordinator/planner/planner.h"

namespace millrace::engine {
namespace {

bool IsPresent(MemberRole role) { return role != MemberRole::Kept && role != MemberRole::Gone; }

MemberRole RoleOf(const PlanState& state, const std::string& id) {
  const auto found = state.roles.find(id);
  return found == state.roles.end() ? MemberRole::Gone : found->second;
}

// The task types of a worker, as far as its assignment tells: those of the groups that it has slices of. So
// every type stays with those that it was grouped with. nullopt: there was one group for all types.
std::optional<AcceptedHandlers> TypesAssigned(const AssignDocument& document) {
  std::set<std::string> groups;
  if (document.groups.empty()) return std::nullopt;
  for (const std::string& slice : document.slices) {
    if (const auto name = ParseSliceName(slice)) groups.insert(name->group);
  }
  std::set<std::string> types;
  for (const auto& [name, handlers] : document.groups) {
    if (groups.contains(name)) types.insert(handlers.begin(), handlers.end());
  }
  if (types.empty()) return std::nullopt;
  if (types.contains(kEveryOther)) return AcceptedHandlers();
  return AcceptedHandlers(std::in_place, types.begin(), types.end());
}

// A worker that is expected back counts with its types. One that this leader has never seen, since it began
// while the worker was away, has said nothing but what its predecessor assigned.
std::vector<HandlerGroup> GroupsOf(const PlanState& state) {
  std::set<AcceptedHandlers> accepted;  // most workers are alike
  for (const auto& [id, document] : state.workers) {
    if (RoleOf(state, id) != MemberRole::Gone) accepted.insert(document.limits.handlers);
  }
  for (const auto& [id, document] : state.assigned) {
    if (RoleOf(state, id) != MemberRole::Kept || state.workers.contains(id)) continue;
    if (auto types = TypesAssigned(document)) accepted.insert(std::move(*types));
  }
  return DeriveGroups(std::vector(accepted.begin(), accepted.end()), state.configured);
}

// The groups by which the slices were assigned until now.
std::vector<HandlerGroup> EarlierGroups(const PlanState& state) {
  HandlersByGroup groups;
  for (const auto& [id, document] : state.assigned) AddGroups(document, groups);
  std::vector<HandlerGroup> earlier;
  for (auto& [name, handlers] : groups) earlier.push_back({name, std::move(handlers)});
  return earlier;
}

// Of shards that can't be read yet, exactly the numbers that are assigned.
std::vector<PlannedTable> Tables(const PlanState& state) {
  std::vector<PlannedTable> tables = state.catalog.tables;
  if (state.catalog.unread.empty() && !state.catalog.others) return tables;
  std::set<std::string_view> read;
  for (const PlannedTable& table : state.catalog.tables) read.insert(table.shard);
  const auto unread = [&](const std::string& shard) {
    return state.catalog.unread.contains(shard) || (state.catalog.others && !read.contains(shard));
  };
  std::map<std::pair<std::string, TableName>, std::set<std::uint32_t>> assigned;
  for (const auto& [id, document] : state.assigned) {
    for (const std::string& text : document.slices) {
      const auto name = ParseSliceName(text);
      if (!name || !unread(name->shard)) continue;
      assigned[{name->shard, name->table}].insert(name->number);
    }
  }
  for (const auto& [table, numbers] : assigned)
    tables.push_back({table.first, {table.second, 0, {numbers.begin(), numbers.end()}}});
  std::sort(tables.begin(), tables.end());
  return tables;
}

// A worker that is there, or that has slices. Sorted by id, as the plan's numbers should be.
struct Holder {
  std::string_view id;
  MemberRole role = MemberRole::Gone;
  const WorkerDocument* document = nullptr;  // null: it is away, and was never seen
  const AssignDocument* assigned = nullptr;  // null: nothing is
};
using HolderIndex = std::uint32_t;
constexpr HolderIndex kNoHolder = 0xFFFFFFFF;

std::vector<Holder> HoldersOf(const PlanState& state) {
  std::map<std::string_view, Holder> holders;
  for (const auto& [id, document] : state.workers) holders[id].document = &document;
  for (const auto& [id, document] : state.assigned) holders[id].assigned = &document;
  std::vector<Holder> sorted;
  for (auto& [id, holder] : holders) {
    holder.id = id;
    holder.role = RoleOf(state, std::string(id));
    sorted.push_back(holder);
  }
  return sorted;
}

// Should two documents name one slice, the owner that is there has it, then the later word.
struct Claim {
  bool present = false;
  std::uint64_t epoch = 0;
  HolderIndex holder = kNoHolder;
  bool GoesBefore(const Claim& other) const {
    return std::pair(present, epoch) > std::pair(other.present, other.epoch);
  }
};
using Claims = std::unordered_map<std::string_view, Claim>;  // by the slice's name

Claims ClaimsOf(const std::vector<Holder>& holders) {
  Claims claims;
  for (HolderIndex i = 0; i < holders.size(); ++i) {
    if (holders[i].assigned == nullptr) continue;
    const Claim mine{IsPresent(holders[i].role), holders[i].assigned->epoch, i};
    for (const std::string& slice : holders[i].assigned->slices) {
      const auto [known, fresh] = claims.try_emplace(slice, mine);
      if (!fresh && mine.GoesBefore(known->second)) known->second = mine;
    }
  }
  return claims;
}

// A slice that is to be owned.
struct Slice {
  std::string name;
  GroupIndex kind = 0;
  HolderIndex owner = kNoHolder;  // as it is assigned, and then as it will be
};

// Slices and workers are numbers here; only what comes in and what goes out has names.
class PlanMaker {
 public:
  PlanMaker(const PlanState& state, bool quiet)
      : state_(state),
        quiet_(quiet),
        groups_(GroupsOf(state)),
        tables_(Tables(state)),
        holders_(HoldersOf(state)),
        kinds_(tables_, groups_, state.workers) {}

  PlanDecision Make() {
    ListSlices();
    FindAccepted();
    std::vector<SliceIndex> first;
    std::vector<SliceIndex> second;
    SplitByOwner(first, second);
    const std::vector<SliceIndex> left = Solve(MemberRole::Active, first, quiet_);
    second.insert(second.end(), left.begin(), left.end());
    std::sort(second.begin(), second.end());
    const std::vector<SliceIndex> last = Solve(MemberRole::Probation, second, false);
    Finish(Solve(MemberRole::Flapping, last, false));
    return std::move(decision_);
  }

 private:
  void ListSlices() {
    const Claims claims = ClaimsOf(holders_);
    const std::vector<HandlerGroup> earlier = EarlierGroups(state_);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      std::vector<HandlerGroup> others = earlier;
      std::erase_if(others, [&](const HandlerGroup& other) { return other.name == groups_[group].name; });
      const std::string from = CarriedFrom(groups_[group], others);
      for (std::uint32_t table = 0; table < tables_.size(); ++table) ListTable(table, group, from, claims);
    }
  }

  // A slice of a group that split or merged counts as owned by the owner of what it came from, `from`, as
  // long as it is assigned by that name: pages are named anew one after the other. Until all are nothing
  // moves for balance: what has no name yet would go along, and call for the move back.
  void ListTable(std::uint32_t table, std::uint32_t group, const std::string& from, const Claims& claims) {
    const TableInfo& info = tables_[table].info;
    SliceName name{tables_[table].shard, info.table, 0, groups_[group].name};
    const auto list = [&](std::uint32_t number) {
      name.number = number;
      Slice slice{ToString(name), kinds_.Of(table, group, number)};
      auto claim = claims.find(slice.name);
      if (claim == claims.end() && !from.empty()) {
        claim = claims.find(ToString({name.shard, name.table, number, from}));
        if (claim != claims.end()) quiet_ = false;
      }
      if (claim != claims.end()) slice.owner = claim->second.holder;
      slices_.push_back(std::move(slice));
    };
    for (std::uint32_t number = 0; number < info.slices; ++number) list(number);
    for (const std::uint32_t number : info.beyond) list(number);
  }

  // Asked once for all workers that have the same limits.
  void FindAccepted() {
    const auto less = [](const WorkerLimits* a, const WorkerLimits* b) { return *a < *b; };
    std::map<const WorkerLimits*, HolderIndex, decltype(less)> known(less);
    accepted_.resize(holders_.size());
    for (HolderIndex i = 0; i < holders_.size(); ++i) {
      const WorkerDocument* worker = holders_[i].document;
      if (worker == nullptr) continue;
      const auto [alike, fresh] = known.try_emplace(&worker->limits, i);
      accepted_[i] = fresh ? kinds_.AcceptedBy(worker->limits) : accepted_[alike->second];
    }
  }

  // Slices that are kept for an absent owner that may have them are no matter of the plan; what workers on
  // probation have and may have stays with them; all others are for the active ones, also what those have
  // that flap.
  void SplitByOwner(std::vector<SliceIndex>& first, std::vector<SliceIndex>& second) const {
    for (SliceIndex i = 0; i < slices_.size(); ++i) {
      const HolderIndex owner = slices_[i].owner;
      const MemberRole role = owner == kNoHolder ? MemberRole::Gone : holders_[owner].role;
      if (role == MemberRole::Kept && (holders_[owner].document == nullptr || MayKeep(owner, slices_[i])))
        continue;
      const bool stays = role == MemberRole::Probation && MayKeep(owner, slices_[i]);
      (stays ? second : first).push_back(i);
    }
  }

  bool MayKeep(HolderIndex owner, const Slice& slice) const {
    const auto& kinds = accepted_[owner];
    return holders_[owner].document != nullptr &&
           (!kinds || std::binary_search(kinds->begin(), kinds->end(), slice.kind));
  }

  // Places these slices on the workers of one role; returns those that none of them accepts.
  std::vector<SliceIndex> Solve(MemberRole role, const std::vector<SliceIndex>& slices, bool quiet) {
    PlanInput input;
    std::vector<HolderIndex> workers;
    std::vector<WorkerIndex> numbers(holders_.size(), kNobody);
    for (HolderIndex i = 0; i < holders_.size(); ++i) {
      const Holder& holder = holders_[i];
      if (holder.role != role || holder.document == nullptr) continue;
      numbers[i] = static_cast<WorkerIndex>(workers.size());
      workers.push_back(i);
      input.workers.push_back({holder.document->weight, accepted_[i]});
    }
    input.slices.reserve(slices.size());
    for (const SliceIndex i : slices) {
      const HolderIndex owner = slices_[i].owner;
      input.slices.push_back({slices_[i].kind, owner == kNoHolder ? kNobody : numbers[owner]});
    }
    const Plan plan = SolvePlan(input);
    for (const PlanMove& move : plan.moves) Take(slices_[slices[move.slice]], workers[move.to], move, quiet);
    std::vector<SliceIndex> missed;
    for (const SliceIndex at : plan.unplaceable) missed.push_back(slices[at]);
    return missed;
  }

  void Take(Slice& slice, HolderIndex to, const PlanMove& move, bool quiet) {
    if (move.voluntary && !quiet) {
      ++decision_.waiting;
      return;
    }
    const std::string_view from = slice.owner == kNoHolder ? std::string_view() : holders_[slice.owner].id;
    decision_.moves.push_back({slice.name, std::string(from), std::string(holders_[to].id), move.voluntary});
    slice.owner = to;
  }

  void Finish(const std::vector<SliceIndex>& unplaced) {
    for (const SliceIndex i : unplaced) decision_.unplaceable.push_back(slices_[i].name);
    std::sort(decision_.unplaceable.begin(), decision_.unplaceable.end());
    if (groups_.size() != 1 || groups_.front().name != kDefaultGroup) {
      for (const HandlerGroup& group : groups_) decision_.groups[group.name] = group.handlers;
    }
    std::vector<std::vector<std::string>> wanted(holders_.size());
    for (Slice& slice : slices_) {
      if (slice.owner != kNoHolder) wanted[slice.owner].push_back(std::move(slice.name));
    }
    // Whoever is there and gets nothing is told so, once nothing can be on its way to it.
    const bool known = state_.catalog.unread.empty() && !state_.catalog.others;
    const bool settled = known && quiet_ && decision_.moves.empty() && decision_.waiting == 0;
    for (HolderIndex i = 0; i < holders_.size(); ++i) {
      const bool stands_by = settled && IsPresent(holders_[i].role);
      if (wanted[i].empty() && holders_[i].assigned == nullptr && !stands_by) continue;
      decision_.wanted[std::string(holders_[i].id)] = std::move(wanted[i]);
    }
  }

  const PlanState& state_;
  bool quiet_;  // whether anything may move for balance
  const std::vector<HandlerGroup> groups_;
  const std::vector<PlannedTable> tables_;
  const std::vector<Holder> holders_;
  SliceKinds kinds_;
  std::vector<std::optional<std::vector<GroupIndex>>> accepted_;  // by holder; nullopt: every kind
  std::vector<Slice> slices_;
  PlanDecision decision_;
};

}  // namespace

std::map<std::string, std::string> ConfiguredGroups(const Config& config) {
  std::map<std::string, std::string> groups;
  for (const auto& [type, handler] : config.handlers) {
    if (handler.group != kDefaultGroup) groups[type] = handler.group;
  }
  return groups;
}

void AddGroups(const AssignDocument& assigned, HandlersByGroup& groups) {
  const auto add = [&](const std::string& name, const std::vector<std::string>& handlers) {
    const auto [known, fresh] = groups.try_emplace(name, handlers);
    if (fresh || known->second == handlers) return;
    std::set<std::string> types(known->second.begin(), known->second.end());
    types.insert(handlers.begin(), handlers.end());
    known->second.assign(types.begin(), types.end());
  };
  if (assigned.groups.empty() && !assigned.slices.empty()) add(kDefaultGroup, {kEveryOther});
  for (const auto& [name, handlers] : assigned.groups) add(name, handlers);
}

PlanDecision DecidePlan(const PlanState& state, bool quiet) { return PlanMaker(state, quiet).Make(); }

Ownership OwnershipOf(const PlanDecision& decision, const std::map<std::string, WorkerDocument>& present) {
  std::unordered_set<std::string> owned;
  for (const auto& [id, slices] : decision.wanted) {
    if (present.contains(id)) owned.insert(slices.begin(), slices.end());
  }
  for (const std::string& slice : decision.unplaceable) owned.erase(slice);
  std::vector<AcceptedHandlers> workers;
  for (const auto& [id, document] : present) workers.push_back(document.limits.handlers);
  return {std::move(owned), decision.groups, workers, decision.unplaceable};
}

}  // namespace millrace::engine
