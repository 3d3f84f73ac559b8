// Rows of one shard that no worker looks at: what the dead left running there is set waiting again, and task
// types that nobody runs are told.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "framework/policy/eligibility.h"
#include "framework/store/store.h"

namespace millrace::engine {

// Which due groups somebody works on: what a plan says, asked from the rows' side. Immutable once made;
// thread-safe.
class Ownership {
 public:
  Ownership() = default;  // nobody is there
  // `slices`: the names of those that are owned, by a worker that is there and may have them. `groups` as in
  // AssignDocument: the task types of each; empty where there is one group for all. `workers`: what each of
  // them runs. `unplaceable`: slices that no worker may have, sorted.
  Ownership(std::unordered_set<std::string> slices,
            const std::map<std::string, std::vector<std::string>>& groups,
            const std::vector<Limit<std::string>>& workers, std::vector<std::string> unplaceable = {});

  // Whether a worker owns the rows of this group and runs their type.
  bool Covers(const std::string& shard, const DueGroup& group) const;
  // Whether any worker that is there runs tasks of this type.
  bool Runs(const std::string& type) const { return runs_all_ || types_.contains(type); }
  const std::vector<std::string>& unplaceable() const { return unplaceable_; }

 private:
  std::unordered_set<std::string> slices_;
  std::map<std::string, std::string> group_of_;  // by type; empty where there is one group for all
  bool one_group_ = true;
  std::string others_;  // the group of every type that no group names; empty: none
  std::set<std::string> types_;
  bool runs_all_ = false;
  std::vector<std::string> unplaceable_;
};

// One thread.
class Leftovers {
 public:
  Leftovers(std::string shard, Store& store) : shard_(std::move(shard)), store_(store.OpenTasks()) {}

  // One look at the due map; `ownership` is what the plan says now. False: not all could be looked at.
  bool Look(const std::vector<TableName>& tables, const Ownership& ownership);
  // The task types with due rows that no worker runs, as of the last look; sorted.
  const std::vector<std::string>& unrunnable() const { return unrunnable_; }

 private:
  bool Sweep(const DueGroup& group);
  void Note(std::set<std::string> types);

  const std::string shard_;
  const std::unique_ptr<TaskStore> store_;
  std::vector<std::string> unrunnable_;
};

}  // namespace millrace::engine
