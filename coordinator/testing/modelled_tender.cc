#include "coordinator/testing/modelled_tender.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr ThreadName kThread = ThreadName::Tend;
constexpr Micros kLongestSweep = std::chrono::seconds(2);

}  // namespace

void ModelledTender::Again() {
  parts_.After(kThread, std::min(parts_.settings.rewind, kLongestSweep), [this] { Run(); });
}

void ModelledTender::Run() {
  life_ = parts_.state.life;
  groups_.clear();
  own_.clear();
  orphans_.clear();
  if (life_ && life_->MayStart(parts_.Now())) {
    Bury();
  } else {
    Again();
  }
}

void ModelledTender::Bury() {
  if (buried_.empty()) {
    Sweep();
    return;
  }
  const std::string id = buried_.back();
  parts_.database.SetFlag(
      parts_.process.database, parts_.process.On(kThread), id,
      [id](CheckedShard& shard) { return shard.shard().Retire(id); },
      [this](const Result<bool>& retired) {
        if (!retired) {
          Again();
          return;
        }
        parts_.Trace("retired the dead " + buried_.back());
        buried_.pop_back();
        Bury();
      });
}

void ModelledTender::Sweep() {
  live_ = parts_.state.live;
  const std::shared_ptr<const DueMap> map = parts_.state.map;
  if (live_ && map) {
    for (const DueGroup& group : map->groups) {
      if (group.first_run_at <= map->now) groups_.push_back(group);
    }
  }
  SweepNext();
}

void ModelledTender::SweepNext() {
  if (groups_.empty()) {
    Again();
    return;
  }
  const ScanRequest request{groups_.front(), {}, kMaxBatchRows};
  groups_.pop_front();
  using Rows = Result<std::vector<ScanRow>>;
  parts_.Read<Rows>(
      kThread, [request](CheckedShard& shard) { return shard.shard().Scan(request); },
      [this, table = request.group.table](const Rows& rows) {
        if (!rows) {
          Again();
          return;
        }
        Sort(table, *rows);
        AdoptNext();
      });
}

void ModelledTender::Sort(const TableName& table, const std::vector<ScanRow>& rows) {
  for (const ScanRow& row : rows) {
    if (row.state != TaskState::Running) continue;
    if (row.claimed_by == life_->incarnation()) {
      if (!parts_.state.in_flight.Contains(table, row.id)) {
        own_[{row.claimed_by, row.attempt}].push_back(row.id);
      }
    } else if (!live_->contains(row.claimed_by) || parts_.settings.bugs.rescues_from_the_living) {
      orphans_[{row.claimed_by, row.attempt}].push_back(row.id);
    }
  }
}

void ModelledTender::AdoptNext() {
  if (own_.empty()) {
    RescueNext();
    return;
  }
  auto batch = own_.extract(own_.begin());
  ClaimRequest request{CompactShard::kTable, batch.key().first, batch.key().second, {}};
  request.ids = parts_.state.in_flight.Enter(request.table, batch.mapped());
  if (request.ids.empty()) {
    AdoptNext();
    return;
  }
  parts_.Write<TasksReply>(
      kThread, [request](CheckedShard& shard) { return shard.Adopt(request); },
      [this, request](const TasksReply& adopted) {
        Adopted(request, adopted);
        AdoptNext();
      });
}

void ModelledTender::Adopted(const ClaimRequest& request, const TasksReply& adopted) {
  if (!adopted) {
    // Raised or not, they run under us and nobody runs them: the next sweep sees with which attempt.
    parts_.state.in_flight.Leave(request.table, request.ids);
    return;
  }
  parts_.state.in_flight.LeaveMissed(request, *adopted);
  for (const Task& task : *adopted) lane_.GiveBack(task, life_);
}

void ModelledTender::RescueNext() {
  if (orphans_.empty()) {
    SweepNext();
    return;
  }
  auto batch = orphans_.extract(orphans_.begin());
  const RescueRequest request{CompactShard::kTable, batch.key().first, batch.key().second, batch.mapped()};
  using Ids = Result<std::vector<std::uint64_t>>;
  parts_.Write<Ids>(
      kThread, [request](CheckedShard& shard) { return shard.Rescue(request); },
      [this](const Ids& rescued) {
        if (rescued && !rescued->empty() && parts_.journal.Traces()) {
          parts_.Trace("rescued " + std::to_string(rescued->size()) + " tasks");
        }
        RescueNext();
      });
}

}  // namespace millrace::engine
