#include "coordinator/upkeep/leftovers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "coordinator/coordination/documents.h"
#include "coordinator/planner/handler_groups.h"
#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kTypesLogged = 20;  // a producer may write any name, and many

}  // namespace

Ownership::Ownership(std::unordered_set<std::string> slices,
                     const std::map<std::string, std::vector<std::string>>& groups,
                     const std::vector<Limit<std::string>>& workers, std::vector<std::string> unplaceable)
    : slices_(std::move(slices)), one_group_(groups.empty()), unplaceable_(std::move(unplaceable)) {
  for (const auto& [group, types] : groups) {
    for (const std::string& type : types) {
      if (type == kEveryOther) {
        others_ = group;
      } else {
        group_of_[type] = group;
      }
    }
  }
  for (const Limit<std::string>& types : workers) {
    if (types) {
      types_.insert(types->begin(), types->end());
    } else {
      runs_all_ = true;
    }
  }
}

bool Ownership::Covers(const std::string& shard, const DueGroup& group) const {
  SliceName name{shard, group.table, group.slice};
  if (!one_group_) {
    const auto found = group_of_.find(group.handler);
    name.group = found == group_of_.end() ? others_ : found->second;
    if (name.group.empty()) return false;
  }
  return slices_.contains(ToString(name));
}

bool Leftovers::Look(const std::vector<TableName>& tables, const Ownership& ownership) {
  std::vector<TableSlices> all;
  for (const TableName& table : tables) all.push_back({table});
  const auto map = store_->Due(all, DueWanted{});
  if (!map) return false;
  bool seen = map->refused.empty();
  std::set<std::string> unrunnable;
  if (!seen) {  // such rows may wait there still
    for (const std::string& type : unrunnable_) {
      if (!ownership.Runs(type)) unrunnable.insert(type);
    }
  }
  for (const DueGroup& group : map->groups) {
    if (group.first_run_at > map->now) continue;
    if (!ownership.Runs(group.handler)) unrunnable.insert(group.handler);
    if (!ownership.Covers(shard_, group)) seen = Sweep(group) && seen;
  }
  Note(std::move(unrunnable));
  return seen;
}

void Leftovers::Note(std::set<std::string> types) {
  std::vector<std::string> now(types.begin(), types.end());
  if (now == unrunnable_) return;
  std::vector<std::string> fresh;
  std::set_difference(now.begin(), now.end(), unrunnable_.begin(), unrunnable_.end(),
                      std::back_inserter(fresh));
  for (const std::string& type : Brief(fresh, kTypesLogged)) {
    LogWarning("tasks wait for a worker with their handler: no worker that is there has it",
               {{"shard", shard_}, {"handler", type}});
  }
  unrunnable_ = std::move(now);
}

// The store refuses to take a row from a claimer that is alive: nothing has to be known of who is.
bool Leftovers::Sweep(const DueGroup& group) {
  ScanRequest request{group, {}, kMaxBatchRows};
  bool all = true;
  while (true) {
    const auto rows = store_->Scan(request);
    if (!rows) return false;
    if (rows->empty()) return all;
    std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint64_t>> running;
    for (const ScanRow& row : *rows) {
      request.after = {row.run_at, row.id};
      if (row.state == TaskState::Running) running[{row.claimed_by, row.attempt}].push_back(row.id);
    }
    for (auto& [claim, ids] : running) {
      const auto rescued = store_->Rescue({group.table, claim.first, claim.second, std::move(ids)});
      all = all && rescued;
      if (!rescued || rescued->empty()) continue;
      LogInfo("tasks of a dead worker rescued, in a slice that nobody owns",
              {{"shard", shard_}, {"incarnation", claim.first}, {"tasks", rescued->size()}});
    }
    if (running.empty() || rows->size() < request.limit) return all;
  }
}

}  // namespace millrace::engine
