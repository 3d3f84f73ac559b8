// Watches every transaction of the modelled tree for what must never be in it, and keeps what the checks at
// the end of a simulation compare: who owns what, since when a slice has had no owner, how many slices moved.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/testing/journal.h"
#include "coordinator/testing/modelled_ensemble.h"
#include "coordinator/testing/simulated_work.h"
#include "framework/store/schema_store.h"

namespace millrace::engine {

// A part of the work that one worker is to have at a time: a slice, for one handler; by their numbers.
struct WorkPlace {
  std::uint32_t shard = 0;
  std::uint32_t table = 0;
  std::uint32_t slice = 0;
  std::uint32_t handler = 0;
  auto operator<=>(const WorkPlace&) const = default;
};
using WorkOwners = std::map<WorkPlace, std::string>;  // → worker

class TreeChecks {
 public:
  // The tables of a shard as they are; none: the shard is not to be served.
  using TruthOf = std::function<std::vector<TableInfo>(std::size_t shard)>;

  // Since when nothing has kept a worker from reading the tree.
  using WellSince = std::function<BootTime(const std::string& worker)>;

  TreeChecks(Timeline& timeline, ModelledEnsemble& ensemble, Journal& journal, const SimulatedWork& work,
             TruthOf truth_of, WellSince well_since);
  TreeChecks(const TreeChecks&) = delete;

  const std::set<std::string>& Members() const { return members_; }
  std::size_t Moves() const { return moves_; }
  // Transactions that moved slices, and had to leave others for a next one.
  std::size_t Multis() const { return multis_; }
  std::uint64_t Epoch() const { return term_.epoch; }
  // Since when neither the membership nor an assignment has changed.
  // When the membership, or what people have said of it, last changed.
  BootTime MembershipSince() const { return membership_changed_; }
  BootTime QuietSince() const { return std::max(assigned_at_, membership_changed_); }
  // The longest that CheckOwned has seen.
  Micros LongestUnowned() const { return longest_unowned_; }

  // The first that has no owner who is there and takes it, though somebody who is there would. Empty: none.
  std::string FirstUnowned() const;
  // No slice may go without an owner for longer than this, counted while somebody can do something about it;
  // each by itself: two losses one after the other may be of different workers.
  void CheckOwned(bool possible, Micros bound);
  // What was decided amid the faults has arrived: moves are counted from now on.
  void CountMoves() { counting_ = true; }
  // There are other slices than before: for a while nobody counts moves.
  void LookAtTables();
  // The plan is balanced, and the moves since the membership last changed are the fewest that lead to that.
  // By counting where all workers are alike, otherwise by the planner, which tests of its own hold to that.
  void CheckBalanced();
  void CheckFewestMoves();

 private:
  void Commit(const TreeChanges& changes);
  void ReadTerm();
  void ReadAssignment(const std::string& path);
  void Take(std::vector<WorkPlace>& places, const std::string& worker, const AssignDocument& document) const;
  std::vector<WorkPlace> Places() const;
  std::string NameOf(const WorkPlace& place) const;
  bool Placeable(const WorkPlace& place) const;
  std::vector<WorkPlace> Unowned() const;
  std::size_t FewestMoves(const WorkOwners& owners) const;
  std::size_t MovesByPlanner(const WorkOwners& owners) const;
  void TakeOwners();
  // Nothing is given to a worker of which the leader knows that it is being drained; but for further task
  // types of a slice that it has, where groups are made anew, which may take several multis.
  void CheckDrained(const WorkPlace& place, const std::string& worker) const;
  // It has owned the slice so far, for any type.
  bool HasOf(const WorkPlace& place, const std::string& worker) const;
  void CheckRegrouped(bool possible);
  void MembershipChanged();

  Timeline& timeline_;
  ModelledEnsemble& ensemble_;
  Journal& journal_;
  const SimulatedWork& work_;
  const TruthOf truth_of_;
  const WellSince well_since_;
  std::vector<std::vector<TableInfo>> truth_;        // by shard, as it was looked at last
  EpochDocument term_;                               // of the node `epoch`
  std::int64_t epoch_made_ = 0;                      // the transaction that made it first
  std::map<std::string, EpochDocument> written_in_;  // the terms of the pages, by path
  std::set<std::string> members_;
  struct Page {
    std::string worker;
    std::map<std::string, std::vector<std::string>> groups;
    std::vector<WorkPlace> places;
  };
  std::map<std::string, Page> assigned_;  // by path
  WorkOwners owners_;
  WorkOwners last_owners_;  // also of what has none now
  std::size_t moves_ = 0;
  std::size_t multis_ = 0;
  BootTime assigned_at_{};
  std::string regrouped_;  // a slice that two have meanwhile, by groups of before and after
  std::optional<BootTime> regrouped_since_;
  std::map<WorkPlace, BootTime> unowned_since_;
  Micros longest_unowned_{0};

  bool counting_ = false;
  BootTime membership_changed_{};
  WorkOwners owners_before_;
  std::size_t moves_before_ = 0;
};

}  // namespace millrace::engine
