#include "framework/mill/scope.h"

#include <algorithm>
#include <set>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

bool Has(const TableSlices& all, const TableSlices& part) {
  if (all.table != part.table || (all.handlers && all.handlers != part.handlers)) return false;
  return all.all || (!part.all && std::includes(all.slices.begin(), all.slices.end(), part.slices.begin(),
                                                part.slices.end()));
}

}  // namespace

bool Scope::Follow(std::vector<TableSlices> slices, std::shared_ptr<const Pauses> paused) {
  MutexLock lock(mutex_);
  const bool same_slices = slices == slices_;
  if (same_slices && (paused == paused_ || *paused == *paused_)) return false;
  paused_ = std::move(paused);
  version_.fetch_add(1, std::memory_order_release);
  if (same_slices) return true;
  const bool gains = std::any_of(slices.begin(), slices.end(), [&](const TableSlices& part) {
    return std::none_of(slices_.begin(), slices_.end(),
                        [&](const TableSlices& had) { return Has(had, part); });
  });
  if (gains) gains_.fetch_add(1, std::memory_order_release);
  slices_ = std::move(slices);
  by_table_.clear();
  for (std::size_t i = 0; i < slices_.size(); ++i) by_table_.emplace(slices_[i].table, i);
  return true;
}

bool Scope::FollowShard(const std::vector<std::string>& names, BootTime asked) {
  MutexLock lock(mutex_);
  if (asked < shard_asked_) return false;
  shard_asked_ = asked;
  if (names == shard_names_) return false;
  version_.fetch_add(1, std::memory_order_release);
  shard_names_ = names;
  shard_paused_ = {};
  for (const std::string& name : names) {
    if (Status added = shard_paused_.Add(name); !added) {
      LogWarning("a pause in the shard has no effect", {{"shard", shard_}, {"why", added.error().message}});
    }
  }
  return true;
}

std::vector<TableSlices> Scope::Slices() const {
  MutexLock lock(mutex_);
  return slices_;
}

bool Scope::Owns(const TableName& table, std::uint32_t slice, const std::string& handler) const {
  MutexLock lock(mutex_);
  const auto [first, last] = by_table_.equal_range(table);
  for (auto part = first; part != last; ++part) {
    if (slices_[part->second].Covers(slice, handler)) return true;
  }
  return false;
}

bool Scope::Touches(const Ring& ring) const {
  const auto meant = [&ring](const TableSlices& part) {
    if (part.all || ring.slices.empty()) return true;
    return std::any_of(ring.slices.begin(), ring.slices.end(), [&part](std::uint32_t slice) {
      return std::binary_search(part.slices.begin(), part.slices.end(), slice);
    });
  };
  MutexLock lock(mutex_);
  if (!ring.table) return std::any_of(slices_.begin(), slices_.end(), meant);
  const auto [first, last] = by_table_.equal_range(*ring.table);
  return std::any_of(first, last, [&](const auto& part) { return meant(slices_[part.second]); });
}

bool Scope::Paused(const TableName& table, std::uint32_t slice, const std::string& handler) const {
  MutexLock lock(mutex_);
  const auto covers = [&](const Pauses& pauses) {
    return pauses.CoversWorker(worker_) || pauses.Covers(shard_, table, slice, handler);
  };
  return covers(*paused_) || covers(shard_paused_);
}

bool Scope::OpenedByHand(const std::string& handler) const {
  MutexLock lock(mutex_);
  return paused_->OpenedByHand(handler) || shard_paused_.OpenedByHand(handler);
}

std::vector<std::string> Scope::PauseNames() const {
  MutexLock lock(mutex_);
  std::set<std::string> names;
  for (const Pauses* pauses : {paused_.get(), &shard_paused_}) {
    for (std::string& name : pauses->Names()) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

}  // namespace millrace::engine
