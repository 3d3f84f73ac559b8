#include "coordinator/app/process/alert_place.h"

#include <algorithm>

#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

// A slice that somebody works on and that may hold the type.
std::optional<AlertSpot> OwnedSpot(const Ownership& ownership, const std::string& shard,
                                   const std::string& type, const std::vector<TableInfo>& tables) {
  if (!ownership.Runs(type)) return std::nullopt;
  for (const TableInfo& info : tables) {
    for (std::uint32_t number = 0; number < info.slices; ++number) {
      if (ownership.Covers(shard, {info.table, number, type})) return AlertSpot{info.table, number};
    }
  }
  return std::nullopt;
}

std::optional<AlertSpot> LocalSpot(ControlPlane& control, const std::string& shard, const std::string& type) {
  for (const TableSlices& own : control.Slices(shard)) {
    if (!own.CoversHandler(type)) continue;
    if (own.all) return AlertSpot{own.table, std::nullopt};
    if (!own.slices.empty()) return AlertSpot{own.table, own.slices.front()};
  }
  return std::nullopt;
}

}  // namespace

AlertPlace PlaceOf(const std::shared_ptr<const Ownership>& ownership) {
  return {
      [ownership](const std::string& type) { return ownership->Runs(type); },
      [ownership](const std::string& shard, const std::string& type, const std::vector<TableInfo>& tables) {
        return OwnedSpot(*ownership, shard, type, tables);
      },
      ownership->unplaceable()};
}

void LocalAlertPlace::Follow(const Worker& worker) {
  constexpr Micros kBetweenQuestions = std::chrono::seconds(1);
  const BootTime now = BootClock::now();
  if (asked_ && now - *asked_ < kBetweenQuestions) return;
  asked_ = now;
  Take(worker.Status());
}

void LocalAlertPlace::Take(const WorkerStatus& status) {
  std::vector<std::string> uncovered;
  for (const ShardStatus& shard : status.shards) {
    const auto numbers = ParseLoadBalance(shard.uncovered);
    if (shard.uncovered.empty() || !numbers) continue;
    for (const std::uint32_t number : *numbers) {
      uncovered.push_back(shard.shard + ": load-balance number " + std::to_string(number));
    }
  }
  OpenBreakers breakers{status.worker, {}};
  for (const BreakerStatus& breaker : status.breakers) {
    if (breaker.open && !breaker.by_hand) breakers.types[breaker.handler] = breaker.why;
  }
  MutexLock lock(mutex_);
  unopened_ = status.unopened;
  uncovered_ = std::move(uncovered);
  breakers_ = std::move(breakers);
}

std::optional<AlertPlace> LocalAlertPlace::Now() const {
  std::vector<std::string> types;
  if (types_) types = types_(*control_.CurrentConfig());
  MutexLock lock(mutex_);
  if (!uncovered_) return std::nullopt;
  AlertPlace place;
  if (types_) {
    place.runs = [types = std::move(types), unopened = unopened_](const std::string& type) {
      return std::binary_search(types.begin(), types.end(), type) && !unopened.contains(type);
    };
  }
  place.spot = [this](const std::string& shard, const std::string& type, const std::vector<TableInfo>&) {
    return LocalSpot(control_, shard, type);
  };
  place.unowned = uncovered_;
  place.breakers = breakers_->types;
  return place;
}

std::optional<OpenBreakers> LocalAlertPlace::Breakers() const {
  MutexLock lock(mutex_);
  return breakers_;
}

}  // namespace millrace::engine
