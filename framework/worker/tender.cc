#include "framework/worker/tender.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace {
namespace {

constexpr Micros kAttendInterval = std::chrono::seconds(1);
constexpr Micros kLongestSweep = std::chrono::seconds(2);  // between two sweeps, whatever is configured

}  // namespace

Tender::Tender(Parts parts, std::unique_ptr<TaskStore> store) : parts_(parts), store_(std::move(store)) {}

void Tender::Start() {
  thread_ = Thread("tend", [this] { Run(); });
}

void Tender::Stop() {
  stopping_.store(true);
  Wake();
  thread_.Join();
}

void Tender::SaveProgress(const TaskProgress& progress) {
  MutexLock lock(mutex_);
  progress_.insert_or_assign(progress.key, progress);
}

void Tender::Run() {
  BootTime swept{};
  while (!stopping_.load()) {
    const bool woken = wake_.WaitFor(std::min(kAttendInterval, parts_.rewind));
    const std::shared_ptr<Standing> life = parts_.host.Life();
    if (stopping_.load() || !life || !life->MayStart(parts_.clock.Now())) continue;
    Attend(life);
    const BootTime now = parts_.clock.Now();
    if (!woken && now - swept < std::min(parts_.rewind, kLongestSweep)) continue;
    swept = now;
    Sweep(life);
  }
}

void Tender::Attend(const std::shared_ptr<Standing>& life) {
  std::vector<TaskProgress> progress;
  {
    MutexLock lock(mutex_);
    for (auto& [key, saved] : progress_) progress.push_back(std::move(saved));
    progress_.clear();
  }
  const std::vector<FlightPtr> flights = parts_.in_flight.Flights();
  if (flights.empty() && progress.empty()) return;
  std::vector<TaskKey> keys;
  keys.reserve(flights.size());
  for (const FlightPtr& flight : flights) keys.push_back(flight->task.key);
  const auto cancelled = store_->Attend(life->incarnation(), keys, progress);
  if (!cancelled) {  // what could not be saved is saved with the next round, unless there is newer
    MutexLock lock(mutex_);
    for (const TaskProgress& saved : progress) progress_.try_emplace(saved.key, saved);
    return;
  }
  for (const FlightPtr& flight : flights) {
    if (std::find(cancelled->begin(), cancelled->end(), flight->task.key) != cancelled->end()) {
      flight->cancel.store(true);
    }
  }
}

void Tender::Sweep(const std::shared_ptr<Standing>& life) {
  const auto live = parts_.host.LivePeers();
  if (!live) return;
  const auto map = store_->Due(parts_.slices.Slices(parts_.shard));
  if (!map) return;
  for (const DueGroup& group : map->groups) {
    if (stopping_.load()) return;
    if (group.first_run_at <= map->now) SweepGroup(group, life, *live);
  }
  for (const auto& [claimer, count] : rescued_) {
    LogInfo("tasks of a dead worker rescued",
            {{"shard", parts_.shard}, {"incarnation", claimer}, {"tasks", count}});
  }
  rescued_.clear();
}

void Tender::SweepGroup(const DueGroup& group, const std::shared_ptr<Standing>& life,
                        const std::set<std::string>& live) {
  ScanRequest request{group, {}, kMaxBatchRows};
  while (!stopping_.load()) {
    const auto rows = store_->Scan(request);
    if (!rows) return;
    RowsByClaim orphans;
    RowsByClaim unknown_own;
    bool any_running = false;
    for (const ScanRow& row : *rows) {
      request.after = {row.run_at, row.id};
      if (row.state != TaskState::Running) continue;
      any_running = true;
      if (row.claimed_by == life->incarnation()) {
        if (!parts_.in_flight.Contains(group.table, row.id)) {
          unknown_own[{row.claimed_by, row.attempt}].push_back(row.id);
        }
      } else if (!live.contains(row.claimed_by)) {
        orphans[{row.claimed_by, row.attempt}].push_back(row.id);
      }
    }
    for (auto& [claim, ids] : unknown_own)
      Adopt({group.table, claim.first, claim.second, std::move(ids)}, life);
    for (auto& [claim, ids] : orphans) {
      const auto rescued = store_->Rescue({group.table, claim.first, claim.second, std::move(ids)});
      if (!rescued || rescued->empty()) continue;
      rescued_[claim.first] += rescued->size();
      parts_.host.Rescued(rescued->size());
    }
    if (!any_running || rows->size() < request.limit) return;
  }
}

void Tender::Adopt(ClaimRequest request, const std::shared_ptr<Standing>& life) {
  request.ids = parts_.in_flight.Enter(request.table, request.ids);
  if (request.ids.empty()) return;
  auto adopted = store_->Adopt(request);
  if (!adopted && adopted.error().code == ErrorCode::Unknown) {
    // Raised or not, they run under us and nobody runs them: the next sweep sees with which attempt.
    parts_.in_flight.Leave(request.table, request.ids);
    return;
  }
  std::set<std::uint64_t> missed(request.ids.begin(), request.ids.end());
  if (adopted) {
    for (const Task& task : *adopted) missed.erase(task.key.id);
  }
  parts_.in_flight.Leave(request.table, std::vector<std::uint64_t>(missed.begin(), missed.end()));
  if (adopted && !adopted->empty()) {
    LogInfo("tasks adopted: they ran under this worker without its knowing",
            {{"shard", parts_.shard}, {"tasks", adopted->size()}});
    parts_.host.Adopted(std::move(*adopted), life);
  }
}

}  // namespace millrace
