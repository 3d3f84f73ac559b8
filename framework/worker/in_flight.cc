#include "framework/worker/in_flight.h"

#include <unordered_set>

namespace millrace {

bool InFlight::Contains(const std::string& table, std::uint64_t id) const {
  MutexLock lock(mutex_);
  const auto ids = tables_.find(table);
  return ids != tables_.end() && ids->second.contains(id);
}

std::vector<std::uint64_t> InFlight::Enter(const std::string& table, std::span<const std::uint64_t> ids) {
  MutexLock lock(mutex_);
  Ids& known = tables_[table];
  std::vector<std::uint64_t> entered;
  entered.reserve(ids.size());
  for (std::uint64_t id : ids) {
    if (known.try_emplace(id, nullptr).second) entered.push_back(id);
  }
  return entered;
}

void InFlight::Claimed(const FlightPtr& flight) {
  MutexLock lock(mutex_);
  tables_[flight->task.key.table][flight->task.key.id] = flight;
}

void InFlight::Leave(const std::string& table, std::span<const std::uint64_t> ids) {
  MutexLock lock(mutex_);
  Ids& known = tables_[table];
  for (std::uint64_t id : ids) known.erase(id);
}

void InFlight::LeaveMissed(const ClaimRequest& request, std::span<const Task> claimed) {
  std::unordered_set<std::uint64_t> missed(request.ids.begin(), request.ids.end());
  for (const Task& task : claimed) missed.erase(task.key.id);
  Leave(request.table, std::vector<std::uint64_t>(missed.begin(), missed.end()));
}

void InFlight::Clear() {
  std::map<std::string, Ids> gone;  // flights keep their shard alive: let them go outside the lock
  MutexLock lock(mutex_);
  gone.swap(tables_);
}

std::size_t InFlight::Leave(const TaskKey& key) {
  MutexLock lock(mutex_);
  tables_[key.table].erase(key.id);
  return Count();
}

std::size_t InFlight::Size() const {
  MutexLock lock(mutex_);
  return Count();
}

std::size_t InFlight::Count() const {
  std::size_t size = 0;
  for (const auto& [table, ids] : tables_) size += ids.size();
  return size;
}

std::vector<FlightPtr> InFlight::Flights() const {
  MutexLock lock(mutex_);
  std::vector<FlightPtr> flights;
  for (const auto& [table, ids] : tables_) {
    for (const auto& [id, flight] : ids) {
      if (flight) flights.push_back(flight);
    }
  }
  return flights;
}

}  // namespace millrace
