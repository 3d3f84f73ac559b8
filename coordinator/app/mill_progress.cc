#include "coordinator/app/mill_progress.h"

#include <algorithm>

#include "coordinator/app/terminal.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenReads = std::chrono::milliseconds(500);
// The backlog is counted for the eye: it must not take more than this part of the time.
constexpr int kDearness = 20;

}  // namespace

MillProgress::MillProgress(Shards& shards, bool enabled) : shards_(shards), line_(enabled) {
  if (!enabled) return;
  for (auto& [name, shard] : shards_) desks_[name] = shard.store->OpenDesk();
}

// A shard that is away keeps its last numbers: the worker says that it is away.
void MillProgress::ReadBacklog() {
  std::uint64_t waiting = 0;
  bool more = false;
  for (auto& [name, shard] : shards_) {
    for (const TableInfo& info : shard.tables) {
      auto backlog = desks_.at(name)->Backlog(info.table);
      if (!backlog) return;
      for (const GroupBacklog& group : *backlog) {
        waiting += group.waiting;
        more = more || group.more;
      }
    }
  }
  waiting_ = waiting;
  more_ = more;
}

void MillProgress::Update(const WorkerTotals& totals) {
  const BootTime now = BootClock::now();
  if (!line_.Due(now)) return;
  if (!last_read_ || now - *last_read_ >= std::max(kBetweenReads, read_cost_ * kDearness)) {
    ReadBacklog();
    last_read_ = BootClock::now();
    read_cost_ = *last_read_ - now;
  }
  const std::uint64_t done = totals.succeeded + totals.cancelled;
  const double rate = rate_.Rate(done + totals.failed, now);
  line_.Show(ProgressLine({done, totals.failed, totals.retried, waiting_, more_, rate}, TerminalWidth() - 1),
             now);
}

}  // namespace millrace::engine
