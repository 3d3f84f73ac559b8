#include "coordinator/app/process/process_facts.h"

#include <algorithm>
#include <cmath>

#include "coordinator/app/cli/text.h"

namespace millrace::engine {

std::uint64_t EndedOf(const WorkerTotals& totals) {
  return totals.succeeded + totals.cancelled + totals.failed + totals.retried + totals.held + totals.returned;
}

ProcessFacts FactsOf(const Worker& worker, const std::string& no_plan, Micros patience) {
  ProcessFacts facts;
  facts.totals = worker.Totals();
  facts.stands_still = worker.StandsStill(patience);
  if (!no_plan.empty()) facts.missing.push_back(no_plan);
  const WorkerStatus status = worker.Status();
  const auto beats = [](const ShardStatus& shard) { return shard.beats; };
  if (std::any_of(status.shards.begin(), status.shards.end(), beats)) return facts;
  if (status.shards.empty()) facts.missing.push_back("it serves no shard");
  for (const ShardStatus& shard : status.shards) {
    // Anybody may ask a probe, so where the database is and what it answered stands in the log alone.
    facts.missing.push_back("no fresh beat in shard " + shard.shard);
  }
  return facts;
}

std::string LoadText(const WorkerTotals& before, const WorkerTotals& now, Micros apart) {
  const double seconds = std::max(std::chrono::duration<double>(apart).count(), 0.001);
  const double rate = static_cast<double>(EndedOf(now) - EndedOf(before)) / seconds;
  return WithCommas(now.running) + " running, " + WithCommas(now.queued) + " queued, " +
         WithCommas(static_cast<std::uint64_t>(std::llround(rate))) + " tasks a second";
}

ProcessView::Shown::~Shown() {
  MutexLock lock(view_.mutex_);
  view_.facts_ = {};
  view_.metrics_ = {};
  view_.ending_ = true;
}

void ProcessView::Show(Facts facts, Metrics metrics) {
  MutexLock lock(mutex_);
  facts_ = std::move(facts);
  metrics_ = std::move(metrics);
}

void ProcessView::Ending() {
  MutexLock lock(mutex_);
  ending_ = true;
}

ProcessFacts ProcessView::Ask(Micros patience) const {
  MutexLock lock(mutex_);
  ProcessFacts facts;
  if (facts_) {
    facts = facts_(patience);
  } else {
    facts.missing = {"it starts: it waits for its servers, or reads what it needs"};
  }
  if (ending_) facts.missing = {"it is stopping"};
  return facts;
}

std::optional<std::string> ProcessView::MetricsText() const {
  MutexLock lock(mutex_);
  if (!metrics_) return std::nullopt;
  return metrics_();
}

}  // namespace millrace::engine
