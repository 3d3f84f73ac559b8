// Watches every transaction of the modelled tree for what must never be in it, and keeps what the checks at
// the end of a simulation compare: who owns what, since when a slice has had no owner, how many slices moved.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "coordinator/testing/journal.h"
#include "coordinator/testing/modelled_ensemble.h"

namespace millrace {

using SliceOwners = std::map<std::string, std::string>;  // slice → worker

class TreeChecks {
 public:
  // `slices`: the ids of all slices that can be placed.
  TreeChecks(Timeline& timeline, ModelledEnsemble& ensemble, Journal& journal, std::set<std::string> slices);
  TreeChecks(const TreeChecks&) = delete;

  const SliceOwners& Owners() const { return owners_; }
  const std::set<std::string>& Members() const { return members_; }
  std::size_t Moves() const { return moves_; }
  std::uint64_t Epoch() const { return epoch_; }
  // Since when neither the membership nor an assignment has changed.
  BootTime QuietSince() const { return std::max(assigned_at_, membership_changed_); }
  // The longest that CheckOwned has seen.
  Micros LongestUnowned() const { return longest_unowned_; }

  // Placed: in an assign node of a worker that is there. Empty: all are.
  std::string FirstUnowned() const;
  // No slice may go without an owner for longer than this, counted while somebody can do something about it.
  void CheckOwned(bool possible, Micros bound);
  // What was decided amid the faults has arrived: moves are counted from now on.
  void CountMoves() { counting_ = true; }
  // The moves since the membership last changed are the fewest that lead to balance, and it is balanced.
  void CheckFewestMoves();
  void CheckBalanced();

 private:
  void Commit(const TreeChanges& changes);
  void ReadAssignment(const std::string& path);
  void TakeOwners();
  void MembershipChanged();

  Timeline& timeline_;
  ModelledEnsemble& ensemble_;
  Journal& journal_;
  const std::set<std::string> slices_;
  std::uint64_t epoch_ = 0;
  std::set<std::string> members_;
  std::map<std::string, std::set<std::string>> assigned_;  // by worker
  SliceOwners owners_;
  std::size_t moves_ = 0;
  BootTime assigned_at_{};
  std::optional<BootTime> unowned_since_;
  Micros longest_unowned_{0};

  bool counting_ = false;
  BootTime membership_changed_{};
  SliceOwners owners_before_;
  std::size_t moves_before_ = 0;
};

}  // namespace millrace
