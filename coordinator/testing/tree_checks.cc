#include "coordinator/testing/tree_checks.h"

#include <algorithm>

#include "coordinator/coordination/documents.h"
#include "coordinator/planner/handler_groups.h"
#include "coordinator/planner/planner.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kAssign = "/assign/";
// A multi that was decided before a change of the membership may still arrive after it.
constexpr Micros kUnderWay = std::chrono::seconds(1);
constexpr Micros kLongestRegrouping = std::chrono::seconds(15);
// A leader that is well has heard by then of what stands in the tree, and written what it had decided before.
constexpr Micros kToKnow = std::chrono::seconds(1);
// A multi that comes so soon after another carries out the rest of one plan.
constexpr Micros kNextMulti = std::chrono::milliseconds(100);

bool Names(const std::vector<std::string>& handlers, const std::string& handler) {
  return std::find(handlers.begin(), handlers.end(), handler) != handlers.end();
}

// Whether the handler is of the group, by the groups that the assignment lists.
bool Covers(const AssignDocument& document, const std::string& group, const std::string& handler) {
  if (document.groups.empty()) return group == kDefaultGroup;
  const auto found = document.groups.find(group);
  if (found == document.groups.end()) return false;
  if (Names(found->second, handler)) return true;
  return Names(found->second, kEveryOther) &&
         std::none_of(document.groups.begin(), document.groups.end(),
                      [&](const auto& each) { return Names(each.second, handler); });
}

template <class Name>
std::optional<std::uint32_t> NumberOf(const std::vector<Name>& names, const Name& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - names.begin());
}

}  // namespace

TreeChecks::TreeChecks(Timeline& timeline, ModelledEnsemble& ensemble, Journal& journal,
                       const SimulatedWork& work, TruthOf truth_of, WellSince well_since)
    : timeline_(timeline),
      ensemble_(ensemble),
      journal_(journal),
      work_(work),
      truth_of_(std::move(truth_of)),
      well_since_(std::move(well_since)),
      truth_(work.shards.size()) {
  LookAtTables();
  ensemble_.Observe([this](const TreeChanges& changes, std::int64_t) { Commit(changes); });
}

void TreeChecks::LookAtTables() {
  bool changed = false;
  for (std::size_t shard = 0; shard < truth_.size(); ++shard) {
    std::vector<TableInfo> infos = truth_of_(shard);
    changed = changed || infos != truth_[shard];
    truth_[shard] = std::move(infos);
  }
  if (changed) MembershipChanged();
}

std::vector<WorkPlace> TreeChecks::Places() const {
  std::vector<WorkPlace> places;
  for (std::uint32_t shard = 0; shard < truth_.size(); ++shard) {
    for (std::uint32_t table = 0; table < truth_[shard].size(); ++table) {
      const TableInfo& info = truth_[shard][table];
      const auto add = [&](std::uint32_t slice) {
        for (std::uint32_t handler = 0; handler < work_.handlers.size(); ++handler)
          places.push_back({shard, table, slice, handler});
      };
      for (std::uint32_t slice = 0; slice < info.slices; ++slice) add(slice);
      for (const std::uint32_t slice : info.beyond) add(slice);
    }
  }
  return places;
}

std::string TreeChecks::NameOf(const WorkPlace& place) const {
  return "slice " + work_.shards[place.shard] + "/" + work_.tables[place.table] + "/" +
         std::to_string(place.slice) + " for " + work_.handlers[place.handler];
}

void TreeChecks::Commit(const TreeChanges& changes) {
  bool assigned = false;
  bool membership = false;
  for (const std::string& path : changes.nodes) {
    if (path == "/epoch") {
      ReadTerm();
    } else if (path.starts_with(kAssign)) {
      assigned = true;
    } else if (path == "/assign" || path.starts_with("/workers/") || path.starts_with("/control/")) {
      membership = true;  // and if `assign` itself was made again, nobody counts moves from it
    }
  }
  if (membership) MembershipChanged();
  if (!assigned) return;
  for (const std::string& path : changes.nodes) {
    if (path.starts_with(kAssign)) ReadAssignment(path);
  }
  TakeOwners();
}

// One that was deleted is no term, nor one that was made again and is nobody's yet. In one that was made
// again a process may take a term that has been before: one that has just begun, or one that still sees the
// node of before, whose version the new one has come to. It may not write in that (ReadAssignment).
void TreeChecks::ReadTerm() {
  const auto node = ensemble_.head().nodes().find("/epoch");
  if (node == ensemble_.head().nodes().end()) return;
  const auto document = ReadEpoch(node->second.data);
  if (!document || document->leader.empty()) return;
  if (epoch_made_ == 0) epoch_made_ = node->second.created;
  const bool made_again = node->second.created != epoch_made_;
  if (!made_again && document->epoch <= term_.epoch) journal_.Violation("the epoch did not go up");
  term_ = *document;
  journal_.Trace("term " + std::to_string(term_.epoch) + " of " + term_.leader);
}

void TreeChecks::ReadAssignment(const std::string& path) {
  assigned_.erase(path);
  written_in_.erase(path);
  const auto node = ensemble_.head().nodes().find(path);
  if (node == ensemble_.head().nodes().end()) return;
  const auto document = ::millrace::engine::ReadAssign({node->second.data});
  if (!document) {
    journal_.Violation(path + " can't be read: " + document.error().message);
    return;
  }
  if (document->epoch != term_.epoch) {
    journal_.Violation(path + " was written in term " + std::to_string(term_.epoch) +
                       " by the leader of term " + std::to_string(document->epoch));
  }
  for (const auto& [other, written] : written_in_) {
    if (document->epoch < written.epoch) journal_.Violation(path + " is of an earlier term than " + other);
    if (document->epoch == written.epoch && written.leader != term_.leader)
      journal_.Violation(path + " and " + other + " are of one term and of two leaders");
  }
  written_in_[path] = term_;
  if (journal_.Traces()) journal_.Trace(path + " is now " + node->second.data);
  const std::string name = path.substr(kAssign.size());
  Page& page = assigned_[path];
  page.worker = name.substr(0, name.find('/'));
  page.groups = document->groups;
  Take(page.places, page.worker, *document);
}

void TreeChecks::Take(std::vector<WorkPlace>& places, const std::string& worker,
                      const AssignDocument& document) const {
  for (const std::string& text : document.slices) {
    const auto name = ParseSliceName(text);
    const auto shard = name ? NumberOf(work_.shards, name->shard) : std::nullopt;
    const auto table = name ? NumberOf(work_.tables, name->table) : std::nullopt;
    if (!shard || !table) continue;
    for (std::uint32_t handler = 0; handler < work_.handlers.size(); ++handler) {
      const bool covered = Covers(document, name->group, work_.handlers[handler]);
      if (covered && work_.Takes(worker, work_.handlers[handler]))
        places.push_back({*shard, *table, name->number, handler});
    }
  }
}

void TreeChecks::TakeOwners() {
  WorkOwners owners;
  std::map<WorkPlace, const Page*> pages;
  std::string regrouped;
  for (const auto& [path, page] : assigned_) {
    for (const WorkPlace& place : page.places) {
      const auto [other, added] = pages.emplace(place, &page);
      if (added) {
        owners.emplace_hint(owners.end(), place, page.worker);
      } else if (other->second->groups != page.groups) {
        regrouped = NameOf(place);
      } else {
        journal_.Violation(NameOf(place) + " is assigned to " + other->second->worker + " and to " +
                           page.worker);
      }
    }
  }
  if (regrouped.empty()) regrouped_since_.reset();
  if (!regrouped.empty() && !regrouped_since_) regrouped_since_ = timeline_.Now();
  regrouped_ = std::move(regrouped);
  const std::size_t moves_so_far = moves_;
  for (const auto& [place, worker] : owners) {
    const auto before = owners_.find(place);
    if (before != owners_.end() && before->second == worker) continue;
    ++moves_;
    std::string& last = last_owners_[place];
    if (last != worker) CheckDrained(place, worker);
    last = worker;
  }
  owners_ = std::move(owners);
  if (moves_ != moves_so_far && timeline_.Now() - assigned_at_ < kNextMulti) ++multis_;
  assigned_at_ = timeline_.Now();
  if (counting_ && timeline_.Now() - membership_changed_ > kUnderWay) return;
  owners_before_ = owners_;
  moves_before_ = moves_;
}

bool TreeChecks::HasOf(const WorkPlace& place, const std::string& worker) const {
  auto of_slice = owners_.lower_bound({place.shard, place.table, place.slice, 0});
  for (; of_slice != owners_.end() && of_slice->first.shard == place.shard &&
         of_slice->first.table == place.table && of_slice->first.slice == place.slice;
       ++of_slice) {
    if (of_slice->second == worker) return true;
  }
  return false;
}

void TreeChecks::CheckDrained(const WorkPlace& place, const std::string& worker) const {
  const BootTime known =
      std::max(ensemble_.MadeAt("/control/drain/" + worker), well_since_(term_.leader)) + kToKnow;
  if (!regrouped_.empty() || timeline_.Now() <= known || HasOf(place, worker)) return;
  journal_.Violation(NameOf(place) + " is given to " + worker + ", which is being drained");
}

void TreeChecks::MembershipChanged() {
  members_.clear();
  const auto& nodes = ensemble_.head().nodes();
  const std::string prefix = "/workers/";
  for (auto node = nodes.lower_bound(prefix); node != nodes.end() && node->first.starts_with(prefix); ++node)
    members_.insert(node->first.substr(prefix.size()));
  if (journal_.Traces()) {
    std::string there = "members:";
    for (const std::string& member : members_) there += " " + member;
    journal_.Trace(there);
  }
  membership_changed_ = timeline_.Now();
  owners_before_ = owners_;
  moves_before_ = moves_;
}

// Nothing is given to a worker that is being drained.
bool TreeChecks::Placeable(const WorkPlace& place) const {
  const auto& nodes = ensemble_.head().nodes();
  return std::any_of(members_.begin(), members_.end(), [&](const std::string& member) {
    return work_.Takes(member, work_.handlers[place.handler]) && !nodes.contains("/control/drain/" + member);
  });
}

std::vector<WorkPlace> TreeChecks::Unowned() const {
  std::vector<WorkPlace> unowned;
  for (const WorkPlace& place : Places()) {
    const auto owner = owners_.find(place);
    const bool owned = owner != owners_.end() && members_.contains(owner->second);
    if (!owned && Placeable(place)) unowned.push_back(place);
  }
  return unowned;
}

std::string TreeChecks::FirstUnowned() const {
  const std::vector<WorkPlace> unowned = Unowned();
  return unowned.empty() ? std::string() : NameOf(unowned.front());
}

// Where groups are made anew and that takes several multis, a handler may be in one of before and in one of
// after it; until the last of them.
void TreeChecks::CheckRegrouped(bool possible) {
  if (!possible && regrouped_since_) regrouped_since_ = timeline_.Now();
  if (!regrouped_since_ || timeline_.Now() - *regrouped_since_ <= kLongestRegrouping) return;
  journal_.Violation(regrouped_ +
                     " has been assigned twice for long, by groups of before and after a change");
}

void TreeChecks::CheckOwned(bool possible, Micros bound) {
  CheckRegrouped(possible);
  std::map<WorkPlace, BootTime> since;
  if (possible) {
    for (const WorkPlace& place : Unowned()) {
      const auto known = unowned_since_.find(place);
      since[place] = known == unowned_since_.end() ? timeline_.Now() : known->second;
    }
  }
  unowned_since_ = std::move(since);
  for (const auto& [place, began] : unowned_since_) {
    const Micros unowned = timeline_.Now() - began;
    longest_unowned_ = std::max(longest_unowned_, unowned);
    if (unowned <= bound) continue;
    journal_.Violation(NameOf(place) + " and maybe others have had no owner for " +
                       std::to_string(unowned.count() / 1000) + " ms");
    return;
  }
}

void TreeChecks::CheckBalanced() {
  const std::size_t better = MovesByPlanner(owners_);
  if (better != 0) {
    journal_.Violation("the plan is not balanced: " + std::to_string(better) + " moves would make it so");
  }
  std::map<std::string, std::size_t> counts;
  for (const std::string& member : members_) counts[member];
  for (const auto& [place, owner] : owners_) ++counts[owner];
  const auto [fewest, most] = std::minmax_element(
      counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (!work_.Plain() || counts.empty() || most->second - fewest->second <= 1) return;
  journal_.Violation("the plan is not balanced: " + most->first + " has " + std::to_string(most->second) +
                     " slices, " + fewest->first + " has " + std::to_string(fewest->second));
}

void TreeChecks::CheckFewestMoves() {
  const std::size_t fewest = work_.Plain() ? FewestMoves(owners_before_) : MovesByPlanner(owners_before_);
  const std::size_t made = moves_ - moves_before_;
  if (made == fewest) return;
  journal_.Violation("since the membership last changed " + std::to_string(made) +
                     " slices were moved; the fewest would be " + std::to_string(fewest));
}

// n − (Σ min(a_w,q) + min(r, #{w: a_w > q})): see coordinator/planner/README.md.
std::size_t TreeChecks::FewestMoves(const WorkOwners& owners) const {
  const std::vector<WorkPlace> all = Places();
  const std::size_t places = all.size();
  std::map<std::string, std::size_t> held;
  for (const WorkPlace& place : all) {
    const auto owner = owners.find(place);
    if (owner != owners.end() && members_.contains(owner->second)) ++held[owner->second];
  }
  const std::size_t share = places / members_.size();
  const std::size_t rest = places % members_.size();
  std::size_t kept = 0;
  std::size_t above = 0;
  for (const auto& [worker, count] : held) {
    kept += std::min(count, share);
    above += count > share ? 1 : 0;
  }
  return places - kept - std::min(rest, above);
}

std::size_t TreeChecks::MovesByPlanner(const WorkOwners& owners) const {
  PlanInput input;
  std::map<std::string, WorkerIndex> numbers;
  for (const std::string& member : members_) {
    numbers[member] = static_cast<WorkerIndex>(input.workers.size());
    PlanWorker worker{work_.WeightOf(member), std::vector<GroupIndex>()};
    for (GroupIndex group = 0; group < work_.handlers.size(); ++group) {
      if (work_.Takes(member, work_.handlers[group])) worker.groups->push_back(group);
    }
    input.workers.push_back(std::move(worker));
  }
  for (const WorkPlace& place : Places()) {
    const auto owner = owners.find(place);
    const auto number = owner == owners.end() ? numbers.end() : numbers.find(owner->second);
    input.slices.push_back(
        {static_cast<GroupIndex>(place.handler), number == numbers.end() ? kNobody : number->second});
  }
  return SolvePlan(input).moves.size();
}

}  // namespace millrace::engine
