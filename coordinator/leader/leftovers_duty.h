// A duty of the leader in one shard: rows that no worker looks at. What the dead left running there is set
// waiting again, and task types that nobody runs are told.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/leader/ownership.h"
#include "framework/store/store.h"

namespace millrace::engine {

// One thread.
class LeftoversDuty {
 public:
  LeftoversDuty(std::string shard, Store& store) : shard_(std::move(shard)), store_(store.OpenTasks()) {}

  // One look at the due map; `ownership` is what the plan says now.
  void Do(const std::vector<TableName>& tables, const Ownership& ownership);
  // The task types with due rows that no worker runs, as of the last look; sorted.
  const std::vector<std::string>& unrunnable() const { return unrunnable_; }

 private:
  void Sweep(const DueGroup& group);
  void Note(std::set<std::string> types);

  const std::string shard_;
  const std::unique_ptr<TaskStore> store_;
  std::vector<std::string> unrunnable_;
};

}  // namespace millrace::engine
