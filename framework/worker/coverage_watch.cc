#include "framework/worker/coverage_watch.h"

#include <algorithm>

#include "framework/base/log.h"
#include "framework/policy/coverage.h"
#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetweenReads = std::chrono::minutes(1);

}  // namespace

void CoverageWatch::ReadSlices() {
  const BootTime now = clock_.Now();
  if (slices_ != 0 && now - read_ < kBetweenReads) return;
  const auto tables = schema_->Tables();
  if (!tables) return;
  read_ = now;
  slices_ = 0;
  for (const TableInfo& table : *tables) slices_ = std::max(slices_, table.slices);
}

void CoverageWatch::Look(std::span<const Incarnation> alive) {
  if (alive.empty()) return;  // not known yet: this worker itself is among them
  ReadSlices();
  std::vector<std::string> owned;
  owned.reserve(alive.size());
  for (const Incarnation& incarnation : alive) owned.push_back(incarnation.slices);
  std::string uncovered = FormatLoadBalance(engine::Uncovered(owned, slices_));
  MutexLock lock(mutex_);
  if (uncovered == uncovered_) return;
  uncovered_ = std::move(uncovered);
  if (uncovered_.empty()) {
    LogInfo("every load-balance number is served again", {{"shard", shard_}});
  } else {
    LogWarning("no worker alive serves these load-balance numbers: their tasks wait",
               {{"shard", shard_}, {"numbers", uncovered_}});
  }
}

std::string CoverageWatch::Uncovered() const {
  MutexLock lock(mutex_);
  return uncovered_;
}

}  // namespace millrace::engine
