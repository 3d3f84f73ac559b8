// What of a shard this worker has in its hands, by id.
#include <algorithm>
#include <unordered_set>

#include "framework/mill/attempts.h"

namespace millrace::engine {

// The ids of the tables of one task after another: of one table, mostly.
class InFlight::Neighbours {
 public:
  explicit Neighbours(std::pmr::map<TableName, Ids>& tables) : tables_(tables) {}
  Ids& Of(const TableName& table) {
    if (last_ == nullptr || last_->first != table) last_ = &*tables_.try_emplace(table).first;
    return last_->second;
  }

 private:
  std::pmr::map<TableName, Ids>& tables_;
  std::pair<const TableName, Ids>* last_ = nullptr;
};

std::vector<bool> InFlight::Contains(const TableName& table, std::span<const ScanRow> rows) const {
  std::vector<bool> contained(rows.size());
  MutexLock lock(mutex_);
  const auto ids = tables_.find(table);
  if (ids == tables_.end() || ids->second.empty()) return contained;
  for (std::size_t i = 0; i < rows.size(); ++i) contained[i] = ids->second.contains(rows[i].id);
  return contained;
}

std::vector<std::uint64_t> InFlight::Enter(const TableName& table, std::span<const std::uint64_t> ids) {
  MutexLock lock(mutex_);
  Ids& known = tables_[table];
  ++entries_;
  std::vector<std::uint64_t> entered;
  entered.reserve(ids.size());
  for (std::uint64_t id : ids) {
    if (known.try_emplace(id, Place{entries_}).second) entered.push_back(id);
  }
  return entered;
}

std::uint64_t InFlight::Entries() const {
  MutexLock lock(mutex_);
  return entries_;
}

InFlight::Watch::Watch(InFlight& ids) : ids_(ids) {
  MutexLock lock(ids_.mutex_);
  ids_.watched_ = ids_.entries_;
}

InFlight::Watch::~Watch() {
  MutexLock lock(ids_.mutex_);
  ids_.watched_.reset();
  ids_.left_.clear();
}

std::vector<InFlight::Stay> InFlight::StaysOf(const TableName& table, std::span<const ScanRow> rows) const {
  std::vector<Stay> stays(rows.size(), Stay::Out);
  MutexLock lock(mutex_);
  const auto ids = tables_.find(table);
  if (ids == tables_.end()) return stays;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto place = ids->second.find(rows[i].id);
    if (place != ids->second.end()) {
      stays[i] = place->second.entry > watched_.value_or(entries_) ? Stay::Passing : Stay::In;
    } else if (!left_.empty() && left_.contains({table, rows[i].id})) {
      stays[i] = Stay::Passing;
    }
  }
  return stays;
}

std::vector<TableName> InFlight::Tables() const {
  MutexLock lock(mutex_);
  std::vector<TableName> tables;
  for (const auto& [table, ids] : tables_) tables.push_back(table);
  return tables;
}

void InFlight::Claimed(std::span<const AttemptPtr> attempts) {
  std::size_t bytes = 0;
  for (const AttemptPtr& attempt : attempts) bytes += MemoryBudget::Of(*attempt);
  memory_.Add(bytes);
  MutexLock lock(mutex_);
  bytes_ += bytes;
  Neighbours ids(tables_);
  for (const AttemptPtr& attempt : attempts) {
    const TaskKey& key = attempt->task.key;
    AttemptPtr& place = ids.Of(key.table)[key.id].attempt;
    if (place) Uncount(*place);
    place = attempt;
  }
}

void InFlight::Uncount(const Attempt& attempt) {
  const std::size_t bytes = MemoryBudget::Of(attempt);
  bytes_ -= bytes;
  memory_.Remove(bytes);
}

void InFlight::Erase(const TableName& table, Ids& ids, std::uint64_t id) {
  const auto place = ids.find(id);
  if (place == ids.end()) return;
  if (place->second.attempt) Uncount(*place->second.attempt);
  if (watched_ && left_.size() < kMostLeft) left_.insert({table, id});
  ids.erase(place);
}

void InFlight::Leave(const TableName& table, std::span<const std::uint64_t> ids) {
  MutexLock lock(mutex_);
  Ids& known = tables_[table];
  for (std::uint64_t id : ids) Erase(table, known, id);
}

std::vector<std::uint64_t> InFlight::LeaveMissed(const ClaimRequest& request, std::span<const Task> claimed) {
  if (claimed.size() == request.ids.size()) return {};  // none was missed
  std::unordered_set<std::uint64_t> missed(request.ids.begin(), request.ids.end());
  for (const Task& task : claimed) missed.erase(task.key.id);
  std::vector<std::uint64_t> ids(missed.begin(), missed.end());
  Leave(request.table, ids);
  return ids;
}

void InFlight::Clear() {
  std::vector<AttemptPtr> gone;  // attempts keep their shard alive: let them go outside the lock
  MutexLock lock(mutex_);
  for (auto& [table, ids] : tables_) {
    for (auto& [id, place] : ids) {
      if (place.attempt) gone.push_back(std::move(place.attempt));
    }
  }
  tables_.clear();
  memory_.Remove(bytes_ - expected_);
  bytes_ = expected_;
}

bool InFlight::Leave(std::span<const TaskKey* const> keys) {
  MutexLock lock(mutex_);
  Neighbours ids(tables_);
  for (const TaskKey* key : keys) Erase(key->table, ids.Of(key->table), key->id);
  return held_back_ && memory_.Room(bytes_) > 0 && std::exchange(held_back_, false);
}

void InFlight::Expect(std::size_t bytes) {
  memory_.Add(bytes);
  MutexLock lock(mutex_);
  bytes_ += bytes;
  expected_ += bytes;
}

bool InFlight::Arrived(std::size_t bytes) {
  memory_.Remove(bytes);
  MutexLock lock(mutex_);
  bytes_ -= bytes;
  expected_ -= bytes;
  return held_back_ && memory_.Room(bytes_) > 0 && std::exchange(held_back_, false);
}

std::size_t InFlight::Room() {
  MutexLock lock(mutex_);
  const std::size_t room = memory_.Room(bytes_);
  held_back_ = room == 0;
  return room;
}

std::size_t InFlight::Left() const {
  MutexLock lock(mutex_);
  return memory_.Left(bytes_);
}

std::size_t InFlight::Size() const {
  MutexLock lock(mutex_);
  std::size_t size = 0;
  for (const auto& [table, ids] : tables_) size += ids.size();
  return size;
}

bool InFlight::Holds(const std::string& handler) const {
  MutexLock lock(mutex_);
  for (const auto& [table, ids] : tables_) {
    for (const auto& [id, place] : ids) {
      if (place.attempt && place.attempt->task.handler == handler) return true;
    }
  }
  return false;
}

std::vector<AttemptPtr> InFlight::AttemptsOf(std::uint64_t entries) const {
  MutexLock lock(mutex_);
  std::vector<AttemptPtr> attempts;
  for (const auto& [table, ids] : tables_) {
    for (const auto& [id, place] : ids) {
      if (place.attempt && place.entry <= entries) attempts.push_back(place.attempt);
    }
  }
  return attempts;
}

}  // namespace millrace::engine
