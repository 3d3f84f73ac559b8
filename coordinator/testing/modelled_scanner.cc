#include "coordinator/testing/modelled_scanner.h"

#include <algorithm>

#include "framework/policy/group_order.h"

namespace millrace::engine {
namespace {

constexpr ThreadName kThread = ThreadName::Scan;
constexpr Micros kTroublePause = std::chrono::milliseconds(200);
constexpr std::size_t kPage = 100;

}  // namespace

void ModelledScanner::Round() {
  life_.reset();
  groups_.clear();
  found_.clear();
  ResolveNext();
}

void ModelledScanner::Again(Micros wait) {
  parts_.After(kThread, wait, [this] { Round(); });
}

void ModelledScanner::ResolveNext() {
  if (unknown_.empty()) {
    Look();
    return;
  }
  resolving_ = std::move(unknown_.back());
  unknown_.pop_back();
  adopted_.clear();
  if (!resolving_.life->Alive()) {  // whoever marked it dead sees to its rows
    parts_.state.in_flight.Leave(resolving_.request.table, resolving_.request.ids);
    ResolveNext();
    return;
  }
  using Count = Result<std::size_t>;
  parts_.Write<Count>(
      kThread,
      [request = resolving_.request](CheckedShard& shard) { return shard.shard().RaiseWaiting(request); },
      [this](const Count& raised) {
        if (raised) {
          LookUp();
        } else {
          ResolveLater(resolving_.half_resolved);
        }
      });
}

void ModelledScanner::ResolveLater(bool half_resolved) {
  resolving_.half_resolved = half_resolved;
  unknown_.push_back(std::move(resolving_));
  Again(kTroublePause);
}

// The rows that the lost claim reached have the number that it gave them, or a higher one where an earlier
// adoption was half known.
void ModelledScanner::LookUp() {
  using Rows = Result<std::vector<ScanRow>>;
  parts_.Read<Rows>(
      kThread,
      [request = resolving_.request](CheckedShard& shard) { return shard.shard().RunningAbove(request); },
      [this](const Rows& rows) {
        if (!rows) {
          ResolveLater(true);
          return;
        }
        std::vector<ScanRow> reached = *rows;
        if (!resolving_.half_resolved) {
          std::erase_if(reached,
                        [&](const ScanRow& row) { return row.attempt != resolving_.request.attempt + 1; });
        }
        Adopt(std::move(reached));
      });
}

void ModelledScanner::Adopt(std::vector<ScanRow> rows) {
  if (rows.empty()) {
    life_ = resolving_.life;
    Claimed(resolving_.request, adopted_);
    ResolveNext();
    return;
  }
  ClaimRequest request = resolving_.request;
  request.attempt = rows.back().attempt;
  request.ids = {rows.back().id};
  rows.pop_back();
  parts_.Write<TasksReply>(
      kThread, [request](CheckedShard& shard) { return shard.Adopt(request); },
      [this, rows = std::move(rows)](const TasksReply& adopted) {
        if (!adopted || adopted->empty()) {  // or an earlier adoption was still under way
          ResolveLater(true);
          return;
        }
        adopted_.push_back(adopted->front());
        Adopt(rows);
      });
}

void ModelledScanner::Look() {
  life_ = parts_.state.life;
  if (!life_ || !life_->MayStart(parts_.Now())) {
    Again(parts_.settings.poll);
    return;
  }
  const std::vector<TableSlices> slices = parts_.state.remit.slices();
  if (slices.empty()) {
    parts_.state.map.reset();
    Again(parts_.settings.poll);
    return;
  }
  using Map = Result<DueMap>;
  const BootTime asked = parts_.Now();
  parts_.Read<Map>(
      kThread, [slices](CheckedShard& shard) { return shard.shard().Due(slices); },
      [this, asked](Map map) {
        parts_.state.map.reset();
        if (!map) {
          Again(kTroublePause);
          return;
        }
        // The slices may have changed since they were read.
        std::erase_if(map->groups, [this](const DueGroup& group) {
          return !parts_.state.remit.Owns(group.slice, group.handler);
        });
        cursors_.Refresh(asked, map->groups, parts_.settings.rewind);
        Order(*map);
        parts_.state.map = std::make_shared<const DueMap>(std::move(*map));
        ScanNext();
      });
}

// The due groups in the order of work; and how long to wait for the next round.
void ModelledScanner::Order(const DueMap& map) {
  wait_ = parts_.settings.poll;
  std::vector<const DueGroup*> due;
  std::vector<GroupRank> ranks;
  for (const DueGroup& group : map.groups) {
    if (group.first_run_at > map.now) {
      wait_ = std::min(wait_, group.first_run_at - map.now);
      continue;
    }
    if (!parts_.state.remit.takes(group.handler)) continue;
    due.push_back(&group);
    ranks.push_back(cursors_.Rank(group));
  }
  for (const std::size_t i : OrderGroups(ranks, ++turn_)) groups_.push_back(*due[i]);
  wanted_ = lane_.Room();
}

void ModelledScanner::ScanNext() {
  while (!groups_.empty() && !cursors_.MayHaveMore(groups_.front())) groups_.pop_front();
  if (groups_.empty() || wanted_ == 0) {
    ClaimNext();
    return;
  }
  const DueGroup group = groups_.front();
  const ScanRequest request{group, cursors_.At(group), kPage};
  using Rows = Result<std::vector<ScanRow>>;
  parts_.Read<Rows>(
      kThread, [request](CheckedShard& shard) { return shard.shard().Scan(request); },
      [this, group, request](const Rows& rows) {
        if (!rows) {
          Again(kTroublePause);
          return;
        }
        Pick(group, request, *rows);
        cursors_.Served(group, turn_);
        ScanNext();
      });
}

void ModelledScanner::Pick(const DueGroup& group, const ScanRequest& request,
                           const std::vector<ScanRow>& rows) {
  ScanPosition last = request.after;
  bool full = rows.size() == request.limit;
  for (const ScanRow& row : rows) {
    if (wanted_ == 0) {
      full = true;
      break;
    }
    last = {row.run_at, row.id};
    if (row.state != TaskState::Waiting || parts_.state.in_flight.Contains(group.table, row.id)) continue;
    found_[row.attempt].push_back(row.id);
    --wanted_;
  }
  cursors_.Advance(group, last, rows.size(), full);
}

void ModelledScanner::ClaimNext() {
  if (found_.empty()) {
    Again(wait_);
    return;
  }
  auto batch = found_.extract(found_.begin());
  ClaimRequest request{CompactShard::kTable, life_->incarnation(), batch.key(), {}};
  request.ids = parts_.state.in_flight.Enter(request.table, batch.mapped());
  if (request.ids.empty()) {
    ClaimNext();
    return;
  }
  parts_.database.Claim(parts_.process.database, parts_.process.On(kThread), request,
                        [this, request](const TasksReply& tasks) {
                          if (tasks) {
                            Claimed(request, *tasks);
                            ClaimNext();
                            return;
                          }
                          if (tasks.error().code == ErrorCode::Unknown) {
                            unknown_.push_back({request, life_});
                          } else {
                            parts_.state.in_flight.Leave(request.table, request.ids);
                          }
                          Again(kTroublePause);
                        });
}

void ModelledScanner::Claimed(const ClaimRequest& request, const std::vector<Task>& tasks) {
  parts_.state.in_flight.LeaveMissed(request, tasks);
  if (!tasks.empty()) lane_.Push(tasks, life_);
}

}  // namespace millrace::engine
