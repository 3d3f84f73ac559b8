// Watches every transaction of the modelled tree for what must never be in it, and keeps what the checks at
// the end of a simulation compare: who owns what, since when a slice has had no owner, how many slices moved.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/testing/journal.h"
#include "coordinator/testing/modelled_ensemble.h"
#include "coordinator/testing/simulated_work.h"

namespace millrace::engine {

// A part of the work that one worker is to have at a time: a slice, for one handler.
using WorkPlace = std::pair<std::uint32_t, std::string>;
using WorkOwners = std::map<WorkPlace, std::string>;  // → worker

class TreeChecks {
 public:
  TreeChecks(Timeline& timeline, ModelledEnsemble& ensemble, Journal& journal, const SimulatedWork& work);
  TreeChecks(const TreeChecks&) = delete;

  const std::set<std::string>& Members() const { return members_; }
  std::size_t Moves() const { return moves_; }
  std::uint64_t Epoch() const { return epoch_; }
  // Since when neither the membership nor an assignment has changed.
  BootTime QuietSince() const { return std::max(assigned_at_, membership_changed_); }
  // The longest that CheckOwned has seen.
  Micros LongestUnowned() const { return longest_unowned_; }

  // The first that has no owner who is there and takes it, though somebody who is there would. Empty: none.
  std::string FirstUnowned() const;
  // No slice may go without an owner for longer than this, counted while somebody can do something about it.
  void CheckOwned(bool possible, Micros bound);
  // What was decided amid the faults has arrived: moves are counted from now on.
  void CountMoves() { counting_ = true; }
  // The plan is balanced, and the moves since the membership last changed are the fewest that lead to that.
  // By counting where all workers are alike, otherwise by the planner, which tests of its own hold to that.
  void CheckBalanced();
  void CheckFewestMoves();

 private:
  void Commit(const TreeChanges& changes);
  void ReadTerm();
  void ReadAssignment(const std::string& path);
  bool Placeable(const WorkPlace& place) const;
  std::size_t FewestMoves(const WorkOwners& owners) const;
  std::size_t MovesByPlanner(const WorkOwners& owners) const;
  void TakeOwners();
  void MembershipChanged();

  Timeline& timeline_;
  ModelledEnsemble& ensemble_;
  Journal& journal_;
  const SimulatedWork& work_;
  std::uint64_t epoch_ = 0;
  std::int64_t epoch_made_ = 0;                      // the transaction that made its node
  std::map<std::string, std::uint64_t> written_in_;  // terms of the assignments, by worker
  std::set<std::string> members_;
  std::map<std::string, std::vector<WorkPlace>> assigned_;  // by worker
  WorkOwners owners_;
  std::size_t moves_ = 0;
  BootTime assigned_at_{};
  std::optional<BootTime> unowned_since_;
  Micros longest_unowned_{0};

  bool counting_ = false;
  BootTime membership_changed_{};
  WorkOwners owners_before_;
  std::size_t moves_before_ = 0;
};

}  // namespace millrace::engine
