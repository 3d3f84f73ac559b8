#include "framework/worker/tender.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kAttendInterval = std::chrono::seconds(1);
constexpr Micros kLongestSweep = std::chrono::seconds(2);  // between two sweeps, unless they are dear:
constexpr int kSweepCostFactor = 10;                       // a sweep takes at most a tenth of the time

}  // namespace

Tender::Tender(Parts parts, std::unique_ptr<TaskStore> store, std::unique_ptr<IncarnationStore> incarnations)
    : parts_(std::move(parts)), store_(std::move(store)), incarnations_(std::move(incarnations)) {}

Status Tender::Start() {
  return thread_.Start("tend", [this] { Run(); });
}

void Tender::RequestStop() {
  stopping_.store(true);
  Wake();
}

void Tender::Stop() {
  RequestStop();
  thread_.Join();
}

void Tender::SaveProgress(const TaskProgress& progress) {
  MutexLock lock(mutex_);
  progress_.insert_or_assign(progress.key, progress);
}

void Tender::Run() {
  BootTime due{};
  while (!stopping_.load()) {
    const Micros rewind = std::min(parts_.engine.Get().rewind, kLongestSweep);
    const bool woken = wake_.WaitFor(std::min(kAttendInterval, rewind));
    const std::shared_ptr<Lease> life = parts_.host.Life();
    if (stopping_.load() || !life || !life->MayStart(parts_.clock.Now())) continue;
    AskToStop(life);  // before anything that may wait for somebody's lock
    WriteProgress(life);
    AdoptAgain();
    ChargeTheDead();
    if (parts_.coverage != nullptr) parts_.coverage->Look(parts_.host.Peers());
    const BootTime began = parts_.clock.Now();
    const bool is_due = began >= due;
    if (!woken && !is_due) continue;
    if (is_due) SweepWhatIsDoubted(life);
    Sweep(life);
    if (is_due) due = began + std::max(rewind, (parts_.clock.Now() - began) * kSweepCostFactor);
  }
}

void Tender::ChargeTheDead() {
  for (const Burial& burial : parts_.dead_recorders.For(parts_.address)) {
    if (Charge(burial)) parts_.dead_recorders.Done(burial);
  }
}

bool Tender::Charge(const Burial& burial) {
  const auto charged = incarnations_->ChargeCrashes(burial.incarnation, burial.crashes);
  if (!charged || !incarnations_->Retire(burial.incarnation)) return false;
  LogWarning("a worker's process on this host has died",
             {{"shard", parts_.shard}, {"incarnation", burial.incarnation}, {"handlers_running", *charged}});
  parts_.host.Buried(burial.incarnation);
  return true;
}

void Tender::AskToStop(const std::shared_ptr<Lease>& life) {
  const std::vector<AttemptPtr> attempts = parts_.in_flight.Attempts();
  if (attempts.empty()) return;
  std::vector<TaskKey> keys;
  keys.reserve(attempts.size());
  for (const AttemptPtr& attempt : attempts) keys.push_back(attempt->task.key);
  const auto read = store_->Cancelled(life->incarnation(), keys);
  if (!read || read->empty()) return;
  const std::set<TaskKey> cancelled(read->begin(), read->end());
  for (const AttemptPtr& attempt : attempts) {
    if (cancelled.contains(attempt->task.key)) attempt->cancel.store(true);
  }
}

// What could not be saved is saved with the next round, unless there is newer.
void Tender::WriteProgress(const std::shared_ptr<Lease>& life) {
  std::map<TaskKey, TaskProgress> taken;
  {
    MutexLock lock(mutex_);
    taken.swap(progress_);
  }
  if (taken.empty()) return;
  std::vector<TaskProgress> progress;
  for (const auto& [key, saved] : taken) progress.push_back(saved);
  const auto locked = store_->SaveProgress(life->incarnation(), progress);
  if (locked) {
    const std::set<TaskKey> again(locked->begin(), locked->end());
    std::erase_if(taken, [&](const auto& entry) { return !again.contains(entry.first); });
  }
  MutexLock lock(mutex_);
  progress_.merge(taken);
}

void Tender::Sweep(const std::shared_ptr<Lease>& life) {
  const auto live = parts_.host.LivePeers();
  if (!live) return;
  const auto map = parts_.host.LatestMap();
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

void Tender::SweepWhatIsDoubted(const std::shared_ptr<Lease>& life) {
  const auto live = parts_.host.LivePeers();
  if (!live) return;
  if (life->TakeDoubt() && !SweepAllSlices(life, *live)) life->DoubtWhatRuns();
}

bool Tender::SweepAllSlices(const std::shared_ptr<Lease>& life, const std::set<std::string>& live) {
  std::vector<TableSlices> everything;
  for (const TableName& table : parts_.in_flight.Tables()) everything.push_back({table, true, {}});
  if (everything.empty()) return true;
  const auto map = store_->Due(everything);
  if (!map) return false;
  return std::all_of(map->groups.begin(), map->groups.end(), [&](const DueGroup& group) {
    return !stopping_.load() && (group.first_run_at > map->now || SweepGroup(group, life, live));
  });
}

bool Tender::SweepGroup(const DueGroup& group, const std::shared_ptr<Lease>& life,
                        const std::set<std::string>& live) {
  ScanRequest request{group, {}, kMaxBatchRows};
  while (!stopping_.load()) {
    const auto rows = store_->Scan(request);
    if (!rows) return false;
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
    if (!any_running || rows->size() < request.limit) return true;
  }
  return false;
}

void Tender::Adopt(ClaimRequest request, const std::shared_ptr<Lease>& life) {
  request.ids = parts_.in_flight.Enter(request.table, request.ids);
  if (!request.ids.empty()) Try({std::move(request), life});
}

void Tender::AdoptAgain() {
  std::vector<Adoption> pending;
  pending.swap(adoptions_);
  for (Adoption& adoption : pending) {
    if (adoption.life->Alive()) {
      Try(std::move(adoption));
    } else {  // whoever marked it dead sees to its rows
      parts_.in_flight.Leave(adoption.request.table, adoption.request.ids);
    }
  }
}

void Tender::Try(Adoption adoption) {
  ClaimRequest& left = adoption.request;
  const std::uint32_t seen = left.attempt;
  for (std::uint32_t raised = 0; raised <= adoption.lost && !left.ids.empty(); ++raised) {
    left.attempt = seen + raised;
    auto adopted = store_->Adopt(left);
    if (!adopted) {
      left.attempt = seen;
      if (adopted.error().code == ErrorCode::Unknown) ++adoption.lost;
      adoptions_.push_back(std::move(adoption));
      return;
    }
    for (const Task& task : *adopted) std::erase(left.ids, task.key.id);
    if (adopted->empty()) continue;
    LogInfo("tasks adopted: they ran under this worker without its knowing",
            {{"shard", parts_.shard}, {"tasks", adopted->size()}});
    parts_.host.Adopted(std::move(*adopted), adoption.life);
  }
  parts_.in_flight.Leave(left.table, left.ids);
}

}  // namespace millrace::engine
