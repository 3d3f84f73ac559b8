#include "framework/mill/maintenance.h"

#include <algorithm>
#include <utility>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr Micros kAttendInterval = std::chrono::seconds(1);
constexpr Micros kSweepInterval = std::chrono::seconds(2);  // at most, unless sweeps are dear
// Sweeping takes at most a tenth of the time, and less of a worker's where several are alive in the shard,
// since others have other slices: it is done in turns, each of a tenth of the interval. A statement may take
// longer than a turn has, or be held up: the cheaper of the last two turns says when the next may be.
constexpr int kSweepCostFactor = 10;
constexpr std::size_t kMostSharing = 8;  // as far as that goes
constexpr Micros kBetweenDoubts = std::chrono::seconds(10);
constexpr Micros kTurn = kAttendInterval / kSweepCostFactor;
constexpr Micros kLongestBreak = std::chrono::minutes(1);  // even after turns that were held up: orphans wait
constexpr std::size_t kGroupsATrip = 32;

// Rows of this life, and none of them was in hand for longer or is known to nobody.
bool OnlyPasses(const std::vector<ScanRow>& rows, const std::vector<InFlight::Stay>& stays,
                const std::string& life) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].claimed_by != life || stays[i] != InFlight::Stay::Passing) return false;
  }
  return true;
}

// When the next turn is due.
class Turns {
 public:
  bool Due(BootTime now) const { return now >= due_; }
  void Took(BootTime began, Micros cost, int factor, Micros most_often) {
    const Micros least = std::min(cost, std::exchange(last_cost_, cost));
    due_ = began + std::clamp(least * factor, most_often, kLongestBreak);
  }

 private:
  BootTime due_{};
  Micros last_cost_ = Micros::max();  // there was none
};

}  // namespace

void Maintenance::Stop() {
  stopping_.store(true);
  port_.Wake();
}

Step<> Maintenance::Run() {
  Turns own;     // for what nobody else would see to
  Turns shared;  // for what the workers of the shard sweep, each in its slices
  bool goes_on = false;
  while (!stopping_.load()) {
    const Micros rewind = std::min(parts_.engine.Get().rewind, kSweepInterval);
    const bool woken =
        co_await port_.Rest(std::exchange(goes_on, false) ? Micros(0) : std::min(kAttendInterval, rewind));
    sweeps_.Note(parts_.clock.Now(), woken, parts_.scope.Gains());
    const LifePtr life = parts_.lives.Own();
    if (stopping_.load() || !life || !life->MayStart(parts_.clock.Now())) continue;
    co_await AskToStop(life);  // before anything that may wait for somebody's lock
    co_await WriteProgress(life);
    co_await AdoptAgain();
    co_await ChargeTheDead();
    const std::vector<Incarnation> peers = parts_.lives.Peers();
    port_.LookAtPeers(peers);
    const BootTime began = parts_.clock.Now();
    const bool own_due = own.Due(began);
    const bool shared_due = shared.Due(began);
    ScanStrands::Maps latest = parts_.scans.LatestMaps();
    sweeps_.Begin(began, shared_due, std::move(latest.maps), latest.current);
    const bool hurries = sweeps_.InAHurry();
    if (own_due) {
      co_await SweepWhatIsDoubted(life);
      co_await SweepWhatWasLocked(life);
    }
    const BootTime sweeps_at = parts_.clock.Now();
    if (shared_due || hurries) co_await SweepOn(life);
    goes_on = sweeps_.InAHurry();
    LogRescued();
    const Micros most_often = sweeps_.UnderWay() ? Micros(0) : rewind;
    if (own_due) own.Took(began, sweeps_at - began, kSweepCostFactor, most_often);
    if (!shared_due) continue;
    // One in a hurry has a rule of its own.
    const Micros cost = hurries ? Micros(0) : parts_.clock.Now() - sweeps_at;
    const auto sharing = static_cast<int>(std::clamp(peers.size(), std::size_t{1}, kMostSharing));
    shared.Took(began, cost, kSweepCostFactor * sharing, most_often);
  }
}

Step<> Maintenance::ChargeTheDead() {
  const std::vector<Burial> burials = port_.Burials();
  for (const Burial& burial : burials) {
    const bool charged = co_await Charge(burial);
    if (charged) port_.Done(burial);
  }
}

Step<bool> Maintenance::Charge(const Burial& burial) {
  const auto charged = co_await port_.ChargeCrashes(burial.incarnation, burial.crashes);
  if (!charged) co_return false;
  const auto retired = co_await port_.Retire(burial.incarnation);
  if (!retired) co_return false;
  LogWarning("a worker's process on this host has died",
             {{"shard", parts_.shard}, {"incarnation", burial.incarnation}, {"handlers_running", *charged}});
  parts_.lives.Buried(burial.incarnation);
  port_.Wake();
  co_return true;
}

// What has come since it was last asked ends soon, mostly: that is asked for the next time, unless this time
// is late.
Step<> Maintenance::AskToStop(LifePtr life) {
  const InFlight& ids = parts_.attempts.in_flight();
  const BootTime now = parts_.clock.Now();
  const bool late = now - std::exchange(asked_, now) > 2 * kAttendInterval;
  const std::uint64_t before = std::exchange(entries_, ids.Entries());
  const std::vector<AttemptPtr> attempts = ids.AttemptsOf(late ? entries_ : before);
  if (attempts.empty()) co_return;
  std::vector<TaskKey> keys;
  keys.reserve(attempts.size());
  for (const AttemptPtr& attempt : attempts) keys.push_back(attempt->task.key);
  const auto read = co_await port_.Cancelled(life->incarnation(), keys);
  if (!read || read->empty()) co_return;
  const std::set<TaskKey> cancelled(read->begin(), read->end());
  for (const AttemptPtr& attempt : attempts) {
    if (cancelled.contains(attempt->task.key)) attempt->cancel.store(true);
  }
}

// What could not be written is written with the next round, unless there is newer, or with the task's end.
Step<> Maintenance::WriteProgress(LifePtr life) {
  std::vector<TaskProgress> progress = parts_.attempts.ProgressToWrite();
  if (progress.empty()) co_return;
  const auto locked = co_await port_.SaveProgress(life->incarnation(), progress);
  if (!locked) co_return;
  const std::set<TaskKey> again(locked->begin(), locked->end());
  std::erase_if(progress, [&](const TaskProgress& one) { return again.contains(one.key); });
  parts_.attempts.Wrote(progress);
}

Step<> Maintenance::SweepOn(LifePtr life) {
  Sweep* const sweep = sweeps_.UnderWay();
  if (!sweep) co_return;
  const Ids live = parts_.lives.Live();
  bool swept = live != nullptr;
  const BootTime end = parts_.clock.Now() + (sweeps_.InAHurry() ? kAttendInterval : kTurn);
  for (Micros trip{0}; swept && !sweep->Through() && parts_.clock.Now() + trip <= end;) {
    const BootTime asked = parts_.clock.Now();
    InFlight::Watch watch(parts_.attempts.in_flight());
    swept = co_await SweepPages(sweep->Next(kGroupsATrip), life, live);
    trip = parts_.clock.Now() - asked;
  }
  if (!swept || sweep->Through()) sweeps_.End(parts_.clock.Now(), swept);
}

void Maintenance::LogRescued() {
  for (const auto& [claimer, count] : rescued_) {
    LogInfo("tasks of a dead worker rescued",
            {{"shard", parts_.shard}, {"incarnation", claimer}, {"tasks", count}});
  }
  rescued_.clear();
}

Step<> Maintenance::SweepWhatIsDoubted(LifePtr life) {
  const Ids live = parts_.lives.Live();
  if (!live) co_return;
  const BootTime now = parts_.clock.Now();
  if (life->TakeDoubt()) {
    doubted_ = parts_.attempts.in_flight().Tables();
    doubted_due_ = now;
  }
  if (doubted_.empty() || now < doubted_due_) co_return;
  std::vector<TableSlices> everything;
  for (const TableName& table : doubted_) everything.push_back({table, true, {}});
  auto map = co_await port_.Due(everything);
  const bool all_read = map && map->refused.empty();
  if (!all_read) doubted_due_ = now + kBetweenDoubts;  // one that is gone is asked for to the process' end
  if (!map) co_return;
  std::vector<TableName> unread;
  for (const auto& [table, why] : map->refused) unread.push_back(table);
  Sweep all({std::make_shared<const DueMap>(std::move(*map))}, kMaxBatchRows);
  while (!all.Through()) {
    const bool swept = co_await SweepPages(all.Next(kGroupsATrip), life, live);
    if (!swept) co_return;
  }
  doubted_ = std::move(unread);
}

// Whoever locks them is about to end them, or was about to and is dead: its session is, too, before long.
Step<> Maintenance::SweepWhatWasLocked(LifePtr life) {
  const Ids live = parts_.lives.Live();
  if (!live || locked_.empty()) co_return;
  std::vector<ScanRequest> locked;
  locked.swap(locked_);
  for (std::size_t i = 0; i < locked.size(); i += kGroupsATrip) {
    const auto begin = locked.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = locked.begin() + static_cast<std::ptrdiff_t>(std::min(i + kGroupsATrip, locked.size()));
    InFlight::Watch watch(parts_.attempts.in_flight());
    const bool swept = co_await SweepPages({begin, end}, life, live);
    if (swept) continue;
    std::for_each(begin, locked.end(), [this](const ScanRequest& page) { KeepLocked(page); });
    co_return;
  }
}

void Maintenance::KeepLocked(const ScanRequest& page) {
  const GroupKey group = GroupKeyOf(page.group);
  const auto known = std::find_if(locked_.begin(), locked_.end(),
                                  [&](const ScanRequest& one) { return GroupKeyOf(one.group) == group; });
  if (known == locked_.end()) {
    locked_.push_back(page);
  } else {
    known->after = std::min(known->after, page.after);
    known->limit = std::max(known->limit, page.limit);
  }
}

Step<bool> Maintenance::SweepPages(std::vector<ScanRequest> pages, LifePtr life, Ids live) {
  while (!pages.empty()) {
    if (stopping_.load() || !life->Alive()) co_return false;
    const auto read = co_await port_.ScanEach(pages);
    if (!read) co_return false;
    std::vector<ScanRequest> more;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const std::vector<ScanRow>& rows = (*read)[i];
      if (rows.empty()) continue;
      const Stays stays = parts_.attempts.in_flight().StaysOf(pages[i].group.table, rows);
      const bool rescued = co_await SweepRows(pages[i].group, rows, stays, life, live);
      if (!rescued) KeepLocked(pages[i]);
      if (OnlyPasses(rows, stays, life->incarnation())) continue;
      pages[i].after = {rows.back().run_at, rows.back().id};
      // Behind a page of which some wait there is little more: a larger one would be read for nothing.
      if (rows.size() == pages[i].limit) pages[i].limit = std::min(pages[i].limit * 4, kMaxBatchRows);
      more.push_back(std::move(pages[i]));
    }
    pages = std::move(more);
  }
  co_return true;
}

Step<bool> Maintenance::SweepRows(const DueGroup& group, const std::vector<ScanRow>& rows, const Stays& stays,
                                  LifePtr life, Ids live) {
  const TableName& table = group.table;
  RowsByClaim orphans;
  RowsByClaim unknown_own;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ScanRow& row = rows[i];
    if (row.claimed_by == life->incarnation()) {
      if (stays[i] == InFlight::Stay::Out) unknown_own[{row.claimed_by, row.attempt}].push_back(row.id);
    } else if (!live->contains(row.claimed_by)) {
      orphans[{row.claimed_by, row.attempt}].push_back(row.id);
    }
  }
  for (auto& [claim, ids] : unknown_own) {
    ClaimRequest request{table, claim.first, claim.second, std::move(ids)};
    co_await Adopt(std::move(request), life);
  }
  bool all = true;
  for (auto& [claim, ids] : orphans) {
    const RescueRequest request{table, claim.first, claim.second, std::move(ids)};
    const auto rescued = co_await port_.Rescue(request);
    // Its reply may have been lost.
    if (rescued || rescued.error().code != ErrorCode::Invalid)
      parts_.attempts.NoteReturned(group, rows.front().run_at);
    all = all && rescued && rescued->size() == request.ids.size();
    if (!rescued && rescued.error().code == ErrorCode::Invalid && refused_.insert(table).second) {
      LogError("tasks of a dead worker can't be set waiting: mend the rows, or what refuses them",
               {{"table", table.text()},
                {"tasks", request.ids.size()},
                {"first", request.ids.front()},
                {"error", rescued.error().message}});
    }
    if (!rescued || rescued->empty()) continue;
    rescued_[claim.first] += rescued->size();
    parts_.counters.rescued.Add(rescued->size());
    parts_.scans.LookAgain();
  }
  co_return all;
}

Step<> Maintenance::Adopt(ClaimRequest request, LifePtr life) {
  request.ids = parts_.attempts.in_flight().Enter(request.table, request.ids);
  if (request.ids.empty()) co_return;
  Adoption adoption{std::move(request), std::move(life)};
  co_await Try(std::move(adoption));
}

Step<> Maintenance::AdoptAgain() {
  std::vector<Adoption> pending;
  pending.swap(adoptions_);
  for (Adoption& adoption : pending) {
    if (adoption.life->Alive()) {
      co_await Try(std::move(adoption));
    } else {  // whoever marked it dead sees to its rows
      parts_.attempts.in_flight().Leave(adoption.request.table, adoption.request.ids);
    }
  }
}

Step<> Maintenance::Try(Adoption adoption) {
  ClaimRequest& left = adoption.request;
  const std::uint32_t seen = left.attempt;
  for (std::uint32_t raised = 0; raised <= adoption.lost && !left.ids.empty(); ++raised) {
    left.attempt = seen + raised;
    const auto adopted = co_await port_.Adopt(left);
    if (!adopted) {
      left.attempt = seen;
      if (adopted.error().code == ErrorCode::Unknown) ++adoption.lost;
      adoptions_.push_back(std::move(adoption));
      co_return;
    }
    for (const Task& task : *adopted) std::erase(left.ids, task.key.id);
    if (adopted->empty()) continue;
    LogInfo("tasks adopted: they ran under this worker without its knowing",
            {{"shard", parts_.shard}, {"tasks", adopted->size()}});
    parts_.attempts.Adopted(*adopted, adoption.life);
  }
  parts_.attempts.in_flight().Leave(left.table, left.ids);
}

}  // namespace millrace::engine
