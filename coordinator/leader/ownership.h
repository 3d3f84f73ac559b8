// Which due groups somebody works on: what the plan says, asked from the rows' side. Pure.
#pragma once

#include <set>
#include <string>
#include <unordered_set>

#include "coordinator/leader/plan_duty.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// Immutable once made; thread-safe.
class Ownership {
 public:
  Ownership() = default;
  Ownership(const PlanDecision& decision, const std::map<std::string, WorkerDocument>& workers);

  // Whether a worker owns the rows of this group and runs their type.
  bool Covers(const std::string& shard, const DueGroup& group) const;
  // Whether any worker that is there runs tasks of this type.
  bool Runs(const std::string& type) const { return runs_all_ || types_.contains(type); }

 private:
  std::unordered_set<std::string> slices_;       // owned, and by somebody who may
  std::map<std::string, std::string> group_of_;  // by type; empty where there is one group for all
  bool one_group_ = true;
  std::string others_;  // the group of every type that no group names; empty: none
  std::set<std::string> types_;
  bool runs_all_ = false;
};

}  // namespace millrace::engine
