#include "framework/mill/in_flight.h"

#include <unordered_set>
#include <utility>

namespace millrace::engine {
namespace {

std::size_t BytesOf(const Attempt& attempt) { return MemoryBudget::Of(TextBytes(attempt.task)); }

}  // namespace

bool InFlight::Contains(const TableName& table, std::uint64_t id) const {
  MutexLock lock(mutex_);
  const auto ids = tables_.find(table);
  return ids != tables_.end() && ids->second.contains(id);
}

std::vector<std::uint64_t> InFlight::Enter(const TableName& table, std::span<const std::uint64_t> ids) {
  MutexLock lock(mutex_);
  Ids& known = tables_[table];
  std::vector<std::uint64_t> entered;
  entered.reserve(ids.size());
  for (std::uint64_t id : ids) {
    if (known.try_emplace(id, nullptr).second) entered.push_back(id);
  }
  return entered;
}

std::vector<TableName> InFlight::Tables() const {
  MutexLock lock(mutex_);
  std::vector<TableName> tables;
  for (const auto& [table, ids] : tables_) tables.push_back(table);
  return tables;
}

void InFlight::Claimed(const AttemptPtr& attempt) {
  const std::size_t bytes = BytesOf(*attempt);
  memory_.Add(bytes);
  MutexLock lock(mutex_);
  bytes_ += bytes;
  AttemptPtr& place = tables_[attempt->task.key.table][attempt->task.key.id];
  if (place) Uncount(*place);
  place = attempt;
}

void InFlight::Uncount(const Attempt& attempt) {
  const std::size_t bytes = BytesOf(attempt);
  bytes_ -= bytes;
  memory_.Remove(bytes);
}

void InFlight::Erase(Ids& ids, std::uint64_t id) {
  const auto place = ids.find(id);
  if (place == ids.end()) return;
  if (place->second) Uncount(*place->second);
  ids.erase(place);
}

void InFlight::Leave(const TableName& table, std::span<const std::uint64_t> ids) {
  MutexLock lock(mutex_);
  Ids& known = tables_[table];
  for (std::uint64_t id : ids) Erase(known, id);
}

void InFlight::LeaveMissed(const ClaimRequest& request, std::span<const Task> claimed) {
  std::unordered_set<std::uint64_t> missed(request.ids.begin(), request.ids.end());
  for (const Task& task : claimed) missed.erase(task.key.id);
  Leave(request.table, std::vector<std::uint64_t>(missed.begin(), missed.end()));
}

void InFlight::Clear() {
  std::map<TableName, Ids> gone;  // attempts keep their shard alive: let them go outside the lock
  MutexLock lock(mutex_);
  gone.swap(tables_);
  memory_.Remove(bytes_);
  bytes_ = 0;
}

bool InFlight::Leave(const TaskKey& key) {
  MutexLock lock(mutex_);
  Erase(tables_[key.table], key.id);
  return held_back_ && memory_.Room(bytes_) > 0 && std::exchange(held_back_, false);
}

std::size_t InFlight::Room() {
  MutexLock lock(mutex_);
  const std::size_t room = memory_.Room(bytes_);
  held_back_ = room == 0;
  return room;
}

std::size_t InFlight::Size() const {
  MutexLock lock(mutex_);
  std::size_t size = 0;
  for (const auto& [table, ids] : tables_) size += ids.size();
  return size;
}

std::vector<AttemptPtr> InFlight::Attempts() const {
  MutexLock lock(mutex_);
  std::vector<AttemptPtr> attempts;
  for (const auto& [table, ids] : tables_) {
    for (const auto& [id, attempt] : ids) {
      if (attempt) attempts.push_back(attempt);
    }
  }
  return attempts;
}

}  // namespace millrace::engine
