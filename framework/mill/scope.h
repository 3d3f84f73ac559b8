// What of one shard this worker may claim and start now: the slices that are its own, less what is paused,
// which may be the worker itself.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/policy/pauses.h"
#include "framework/store/change_feed.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// Thread-safe.
class Scope {
 public:
  // `worker`: the worker's stable name, by which it may be paused.
  explicit Scope(std::string shard, std::string worker = {})
      : shard_(std::move(shard)), worker_(std::move(worker)), paused_(std::make_shared<const Pauses>()) {}

  // What the coordinator says. True if that is new.
  bool Follow(std::vector<TableSlices> slices, std::shared_ptr<const Pauses> paused);
  // What the shard itself says is paused, with each due map; of two that scan it side by side the one that
  // asked last is believed. A name that pauses nothing is left out, and logged once.
  bool FollowShard(const std::vector<std::string>& names, BootTime asked = BootTime{});

  std::vector<TableSlices> Slices() const;
  bool Owns(const TableName& table, std::uint32_t slice, const std::string& handler) const;
  bool Paused(const TableName& table, std::uint32_t slice, const std::string& handler) const;
  bool Owns(const DueGroup& group) const { return Owns(group.table, group.slice, group.handler); }
  bool Paused(const DueGroup& group) const { return Paused(group.table, group.slice, group.handler); }
  // The type's breaker is open by hand: that is one of the reasons for which it is paused.
  bool OpenedByHand(const std::string& handler) const;
  // Changes with whatever is its own or paused: what held at a version holds for as long as that stays.
  std::uint64_t Version() const { return version_.load(std::memory_order_acquire); }
  // Changes where slices, or task types of them, have come.
  std::uint64_t Gains() const { return gains_.load(std::memory_order_acquire); }
  // Whether something of what the ring names is its own.
  bool Touches(const Ring& ring) const;
  // The names of what is paused, by whatever route; sorted.
  std::vector<std::string> PauseNames() const;

 private:
  const std::string shard_;
  const std::string worker_;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<std::uint64_t> gains_{1};
  mutable Mutex mutex_;
  std::vector<TableSlices> slices_ MILLRACE_GUARDED_BY(mutex_);
  std::multimap<TableName, std::size_t> by_table_ MILLRACE_GUARDED_BY(mutex_);  // places in slices_
  std::shared_ptr<const Pauses> paused_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::string> shard_names_ MILLRACE_GUARDED_BY(mutex_);
  BootTime shard_asked_ MILLRACE_GUARDED_BY(mutex_){};
  Pauses shard_paused_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
