#include "coordinator/testing/compact_shard.h"

#include <algorithm>
#include <tuple>

#include "framework/task/urgency.h"

namespace millrace::engine {
namespace {

constexpr std::uint32_t kPriority = 5;

Status MustLive(bool alive, const std::string& incarnation) {
  if (alive) return {};
  return Fail(ErrorCode::Cancelled, incarnation + " was marked dead");
}

Task ViewOf(const CompactRow& row) {
  Task task;
  task.key = {CompactShard::kTable, row.id};
  task.slice = row.slice;
  task.state = row.state;
  task.handler = row.handler;
  task.run_at = row.run_at;
  task.attempt = row.attempt;
  task.failures = row.failures;
  task.claimed_by = row.claimed_by;
  task.cancel = row.cancel;
  task.biz_key = row.key;
  return task;
}

auto PlaceOf(const DueGroup& group) { return std::tie(group.slice, group.handler, group.urgency); }

bool Belongs(const CompactRow& row, const DueGroup& group) {
  return row.slice == group.slice && Urgency(kPriority, row.failures) == group.urgency &&
         row.handler == group.handler;
}

std::vector<std::uint64_t> Sorted(std::vector<std::uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

std::uint64_t CompactShard::Insert(std::uint32_t slice, const std::string& handler, WallTime run_at,
                                   const std::string& key) {
  const std::uint64_t id = rows_.size() + 1;
  rows_.push_back({id, slice, handler, TaskState::Waiting, run_at, 0, 0, {}, 0, false, key});
  open_.push_back(id);
  return id;
}

CompactRow* CompactShard::Find(std::uint64_t id) {
  return id == 0 || id > rows_.size() ? nullptr : &rows_[id - 1];
}

bool CompactShard::IsAlive(const std::string& incarnation) const {
  const auto life = lives_.find(incarnation);
  return life != lives_.end() && !life->second.dead;
}

BootTime CompactShard::BeatAt(const std::string& incarnation) const { return lives_.at(incarnation).beat_at; }

Micros CompactShard::LeaseOf(const std::string& incarnation) const {
  return lives_.at(incarnation).incarnation.lease;
}

Result<DueMap> CompactShard::Due(std::span<const TableSlices> tables) const {
  DueMap map;
  for (const TableSlices& slices : tables) {
    const auto first = static_cast<std::ptrdiff_t>(map.groups.size());
    for (const std::uint64_t id : open_) {
      const CompactRow& row = rows_[id - 1];
      if (!slices.Covers(row.slice, row.handler)) continue;
      map.groups.push_back(
          {slices.table, row.slice, row.handler, Urgency(kPriority, row.failures), row.run_at});
    }
    const auto begin = map.groups.begin() + first;
    std::sort(begin, map.groups.end(), [](const DueGroup& a, const DueGroup& b) {
      return PlaceOf(a) != PlaceOf(b) ? PlaceOf(a) < PlaceOf(b) : a.first_run_at < b.first_run_at;
    });
    map.groups.erase(
        std::unique(begin, map.groups.end(),
                    [](const DueGroup& a, const DueGroup& b) { return PlaceOf(a) == PlaceOf(b); }),
        map.groups.end());
  }
  map.now = clock_.WallNow();
  return map;
}

Result<std::vector<ScanRow>> CompactShard::Scan(const ScanRequest& request) const {
  const WallTime now = clock_.WallNow();
  std::vector<ScanRow> rows;
  for (const std::uint64_t id : open_) {
    const CompactRow& row = rows_[id - 1];
    if (!Belongs(row, request.group) || row.run_at > now) continue;
    if (ScanPosition{row.run_at, id} <= request.after) continue;
    rows.push_back({id, row.run_at, row.state, row.attempt, 0, row.claimed_by});
  }
  std::sort(rows.begin(), rows.end(), [](const ScanRow& a, const ScanRow& b) {
    return std::pair(a.run_at, a.id) < std::pair(b.run_at, b.id);
  });
  if (rows.size() > request.limit) rows.resize(request.limit);
  return rows;
}

Result<std::vector<Task>> CompactShard::Claim(const ClaimRequest& request) {
  if (guards_.claim_needs_life) {
    BOOST_OUTCOME_TRYV(MustLive(IsAlive(request.incarnation), request.incarnation));
  }
  const WallTime now = clock_.WallNow();
  std::vector<Task> claimed;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = Find(id);
    if (row == nullptr || row->state != TaskState::Waiting || row->attempt != request.attempt) continue;
    if (row->run_at > now) continue;
    row->state = TaskState::Running;
    ++row->attempt;
    row->claimed_by = request.incarnation;
    claimed.push_back(ViewOf(*row));
  }
  return claimed;
}

bool CompactShard::RunsUnder(const CompactRow& row, const std::string& incarnation,
                             std::uint32_t attempt) const {
  return row.state == TaskState::Running && row.claimed_by == incarnation && row.attempt == attempt;
}

Result<std::size_t> CompactShard::RaiseWaiting(const ClaimRequest& request) {
  std::size_t raised = 0;
  for (const std::uint64_t id : request.ids) {
    CompactRow* row = Find(id);
    if (row == nullptr || row->state != TaskState::Waiting || row->attempt != request.attempt) continue;
    ++row->attempt;
    ++raised;
  }
  return raised;
}

Result<std::vector<ScanRow>> CompactShard::RunningAbove(const ClaimRequest& request) const {
  std::vector<ScanRow> rows;
  for (const std::uint64_t id : Sorted(request.ids)) {
    if (id == 0 || id > rows_.size()) continue;
    const CompactRow& row = rows_[id - 1];
    if (row.state != TaskState::Running || row.claimed_by != request.incarnation) continue;
    if (row.attempt > request.attempt) {
      rows.push_back({id, row.run_at, row.state, row.attempt, 0, row.claimed_by});
    }
  }
  return rows;
}

Result<std::vector<Task>> CompactShard::Adopt(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(MustLive(IsAlive(request.incarnation), request.incarnation));
  std::vector<Task> raised;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = Find(id);
    if (row == nullptr || !RunsUnder(*row, request.incarnation, request.attempt)) continue;
    ++row->attempt;
    raised.push_back(ViewOf(*row));
  }
  return raised;
}

Result<std::vector<std::uint64_t>> CompactShard::Rescue(const RescueRequest& request) {
  std::vector<std::uint64_t> rescued;
  if (guards_.rescue_needs_death && IsAlive(request.claimed_by)) return rescued;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = Find(id);
    if (row == nullptr || !RunsUnder(*row, request.claimed_by, request.attempt)) continue;
    row->state = TaskState::Waiting;
    row->claimed_by.clear();
    ++row->rescues;
    rescued.push_back(id);
  }
  return rescued;
}

void CompactShard::Cancel(std::uint64_t id) {
  if (CompactRow* row = Find(id)) row->cancel = true;
}

Result<std::vector<std::uint64_t>> CompactShard::FailUnclaimed(const ClaimRequest& request) {
  std::vector<std::uint64_t> failed;
  for (const std::uint64_t id : Sorted(request.ids)) {
    CompactRow* row = Find(id);
    if (row == nullptr || row->state != TaskState::Waiting || row->attempt != request.attempt) continue;
    Close(*row, TaskState::Failed);
    failed.push_back(id);
  }
  return failed;
}

Result<std::vector<KeyVerdict>> CompactShard::ConfirmKeys(const std::string& incarnation,
                                                          std::span<const Task> tasks) {
  std::vector<KeyVerdict> verdicts;
  for (const Task& task : tasks) {
    const CompactRow* row = Find(task.key.id);
    if (row == nullptr || !RunsUnder(*row, incarnation, task.attempt)) continue;
    const std::uint64_t holder = keys_.try_emplace({row->handler, row->key}, row->id).first->second;
    const bool mine = holder == row->id;
    verdicts.push_back({task.key, mine, mine ? "" : ToString(TaskKey{kTable, holder})});
  }
  return verdicts;
}

Result<std::vector<TaskKey>> CompactShard::Cancelled(const std::string& incarnation,
                                                     std::span<const TaskKey> running) const {
  std::vector<TaskKey> cancelled;
  for (const TaskKey& key : running) {
    const CompactRow& row = Row(key.id);
    if (row.cancel && row.state == TaskState::Running && row.claimed_by == incarnation) {
      cancelled.push_back(key);
    }
  }
  return cancelled;
}

void CompactShard::End(CompactRow& row, const Settlement& settlement) {
  if (settlement.failed_attempt) ++row.failures;
  row.claimed_by.clear();
  if (settlement.to == Settlement::To::Waiting) {
    row.state = TaskState::Waiting;
    if (settlement.run_at) row.run_at = *settlement.run_at;
    if (settlement.delay) row.run_at = clock_.WallNow() + *settlement.delay;
    return;
  }
  Close(row, settlement.to == Settlement::To::Succeeded ? TaskState::Succeeded
             : settlement.to == Settlement::To::Failed  ? TaskState::Failed
                                                        : TaskState::Cancelled);
}

void CompactShard::Close(CompactRow& row, TaskState state) {
  row.state = state;
  open_.erase(std::lower_bound(open_.begin(), open_.end(), row.id));
}

Result<SettleReport> CompactShard::Settle(const std::string& incarnation, std::span<const Settlement> batch) {
  SettleReport report;
  report.verdicts.resize(batch.size(), SettleVerdict::Refused);
  report.errors.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    CompactRow* row = Find(batch[i].key.id);
    if (row == nullptr) continue;
    const std::uint32_t attempt = guards_.settle_needs_attempt ? batch[i].attempt : row->attempt;
    if (!RunsUnder(*row, incarnation, attempt)) continue;
    End(*row, batch[i]);
    report.verdicts[i] = SettleVerdict::Settled;
  }
  return report;
}

Result<std::vector<bool>> CompactShard::StillRunning(const std::string& incarnation,
                                                     std::span<const Settlement> batch) const {
  std::vector<bool> running;
  for (const Settlement& settlement : batch) {
    const std::uint64_t id = settlement.key.id;
    running.push_back(id != 0 && id <= rows_.size() &&
                      RunsUnder(rows_[id - 1], incarnation, settlement.attempt));
  }
  return running;
}

Status CompactShard::Register(const Incarnation& incarnation) {
  const bool added =
      lives_.try_emplace(incarnation.id, Life{.incarnation = incarnation, .beat_at = clock_.Now()}).second;
  if (added) return {};
  return Fail(ErrorCode::Conflict, incarnation.id + " is registered already");
}

Result<bool> CompactShard::Renew(const std::string& id) {
  if (!IsAlive(id)) return false;
  Life& life = lives_.at(id);
  ++life.beat;
  life.beat_at = clock_.Now();
  return true;
}

Result<std::vector<PeerBeat>> CompactShard::Peers() const {
  std::vector<PeerBeat> peers;
  for (const auto& [id, life] : lives_) {
    if (!life.dead) peers.push_back({life.incarnation, life.beat});
  }
  return peers;
}

Result<bool> CompactShard::MarkDead(const std::string& id, std::optional<std::uint64_t> seen_beat) {
  if (!IsAlive(id)) return false;
  Life& life = lives_.at(id);
  if (guards_.mark_needs_beat && life.beat != seen_beat) return false;
  life.dead = true;
  return true;
}

Result<bool> CompactShard::Retire(const std::string& id) {
  if (!IsAlive(id)) return false;
  lives_.at(id).dead = true;
  return true;
}

}  // namespace millrace::engine
