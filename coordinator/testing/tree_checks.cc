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

std::string ToString(const WorkPlace& place) {
  return "slice " + std::to_string(place.first) + " for " + place.second;
}

}  // namespace

TreeChecks::TreeChecks(Timeline& timeline, ModelledEnsemble& ensemble, Journal& journal,
                       const SimulatedWork& work)
    : timeline_(timeline), ensemble_(ensemble), journal_(journal), work_(work) {
  ensemble_.Observe([this](const TreeChanges& changes, std::int64_t) { Commit(changes); });
}

void TreeChecks::Commit(const TreeChanges& changes) {
  bool assigned = false;
  bool membership = false;
  for (const std::string& path : changes.nodes) {
    if (path == "/epoch") {
      ReadTerm();
    } else if (path == "/assign") {
      membership = true;  // it was deleted, or made again: nobody counts moves from what was in it
    } else if (path.starts_with(kAssign)) {
      assigned = true;
    } else if (path.starts_with("/workers/") || path.starts_with("/control/")) {
      membership = true;
    }
  }
  if (membership) MembershipChanged();
  if (!assigned) return;
  for (const std::string& path : changes.nodes) {
    if (path.starts_with(kAssign)) ReadAssignment(path);
  }
  TakeOwners();
}

// One that was deleted is no term, nor one that was made again and is nobody's yet. A process that has just
// begun may take a low term in it, but may not write in that (ReadAssignment).
void TreeChecks::ReadTerm() {
  const auto node = ensemble_.head().nodes().find("/epoch");
  if (node == ensemble_.head().nodes().end()) return;
  const auto document = ReadEpoch(node->second.data);
  if (!document || document->leader.empty()) return;
  const bool same_node = node->second.created == epoch_made_;
  epoch_made_ = node->second.created;
  if (same_node && document->epoch <= epoch_) journal_.Violation("the epoch did not go up");
  epoch_ = document->epoch;
  journal_.Trace("term " + std::to_string(epoch_) + " of " + document->leader);
}

void TreeChecks::ReadAssignment(const std::string& path) {
  const std::string worker = path.substr(kAssign.size());
  assigned_.erase(worker);
  written_in_.erase(worker);
  const auto node = ensemble_.head().nodes().find(path);
  if (node == ensemble_.head().nodes().end()) return;
  const auto document = ::millrace::engine::ReadAssign({node->second.data});
  if (!document) {
    journal_.Violation(path + " can't be read: " + document.error().message);
    return;
  }
  if (document->epoch != epoch_) {
    journal_.Violation(path + " was written in term " + std::to_string(epoch_) + " by the leader of term " +
                       std::to_string(document->epoch));
  }
  for (const auto& [other, term] : written_in_) {
    if (document->epoch < term)
      journal_.Violation(path + " is of an earlier term than the assignment of " + other);
  }
  written_in_[worker] = document->epoch;
  std::vector<WorkPlace>& places = assigned_[worker];
  for (const std::string& text : document->slices) {
    const auto name = ParseSliceName(text);
    for (const std::string& handler : work_.handlers) {
      const bool covered = name && Covers(*document, name->group, handler);
      if (covered && work_.Takes(worker, handler)) places.emplace_back(name->number, handler);
    }
  }
}

void TreeChecks::TakeOwners() {
  WorkOwners owners;
  for (const auto& [worker, places] : assigned_) {
    for (const WorkPlace& place : places) {
      const auto [other, added] = owners.emplace(place, worker);
      if (!added) {
        journal_.Violation(ToString(place) + " is assigned to " + other->second + " and to " + worker);
      }
    }
  }
  for (const auto& [place, worker] : owners) {
    const auto before = owners_.find(place);
    if (before == owners_.end() || before->second != worker) ++moves_;
  }
  owners_ = std::move(owners);
  assigned_at_ = timeline_.Now();
  if (counting_ && timeline_.Now() - membership_changed_ > kUnderWay) return;
  owners_before_ = owners_;
  moves_before_ = moves_;
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
    return work_.Takes(member, place.second) && !nodes.contains("/control/drain/" + member);
  });
}

std::string TreeChecks::FirstUnowned() const {
  for (std::uint32_t slice = 0; slice < work_.slices; ++slice) {
    for (const std::string& handler : work_.handlers) {
      const WorkPlace place{slice, handler};
      const auto owner = owners_.find(place);
      const bool owned = owner != owners_.end() && members_.contains(owner->second);
      if (!owned && Placeable(place)) return ToString(place);
    }
  }
  return {};
}

void TreeChecks::CheckOwned(bool possible, Micros bound) {
  const std::string place = possible ? FirstUnowned() : std::string();
  if (place.empty()) {
    unowned_since_.reset();
    return;
  }
  if (!unowned_since_) unowned_since_ = timeline_.Now();
  const Micros unowned = timeline_.Now() - *unowned_since_;
  longest_unowned_ = std::max(longest_unowned_, unowned);
  if (unowned <= bound) return;
  journal_.Violation(place + " and maybe others have had no owner for " +
                     std::to_string(unowned.count() / 1000) + " ms");
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
  std::map<std::string, std::size_t> held;
  for (const auto& [place, owner] : owners) {
    if (members_.contains(owner)) ++held[owner];
  }
  const std::size_t share = work_.slices / members_.size();
  const std::size_t rest = work_.slices % members_.size();
  std::size_t kept = 0;
  std::size_t above = 0;
  for (const auto& [worker, count] : held) {
    kept += std::min(count, share);
    above += count > share ? 1 : 0;
  }
  return work_.slices - kept - std::min(rest, above);
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
  for (std::uint32_t slice = 0; slice < work_.slices; ++slice) {
    for (GroupIndex group = 0; group < work_.handlers.size(); ++group) {
      const auto owner = owners.find({slice, work_.handlers[group]});
      const auto number = owner == owners.end() ? numbers.end() : numbers.find(owner->second);
      input.slices.push_back({group, number == numbers.end() ? kNobody : number->second});
    }
  }
  return SolvePlan(input).moves.size();
}

}  // namespace millrace::engine
