#include "coordinator/app/process/cluster_metrics.h"

#include <utility>

namespace millrace::engine {
namespace {

Counter& MovesFor(Registry& registry, const char* reason) {
  return registry.GetCounter("millrace_slice_moves_total", {{"reason", reason}});
}

}  // namespace

ClusterMetrics::ClusterMetrics(Registry& registry, std::function<ClusterState(Gauges&)> state)
    : state_(std::move(state)),
      fresh_(MovesFor(registry, "new")),
      orphaned_(MovesFor(registry, "orphaned")),
      for_balance_(MovesFor(registry, "balance")),
      plan_(registry.GetHistogram("millrace_plan_seconds")),
      reading_(registry.OnText([this](Gauges& gauges) { Measure(gauges); })) {}

void ClusterMetrics::Moved(const std::vector<SliceMove>& moves) {
  for (const SliceMove& move : moves) {
    (move.voluntary ? for_balance_ : move.from.empty() ? fresh_ : orphaned_).Add();
  }
}

void ClusterMetrics::Planned(const PlanFigures& figures) {
  plan_.Observe(BootClock::now() - begun_);
  MutexLock lock(mutex_);
  figures_ = figures;
}

void ClusterMetrics::Measure(Gauges& gauges) {
  const ClusterState state = state_(gauges);
  gauges.Set("millrace_zookeeper_connected", {}, state.connected ? 1 : 0);
  gauges.Set("millrace_config_refused", {}, static_cast<double>(state.refusals));
  if (state.stands) gauges.Set("millrace_leader", {}, state.leads ? 1 : 0);
  MutexLock lock(mutex_);
  if (!state.leads) figures_.reset();
  if (!figures_) return;
  gauges.Set("millrace_workers", {}, static_cast<double>(figures_->workers));
  gauges.Set("millrace_slices", {{"state", "owned"}}, static_cast<double>(figures_->owned));
  gauges.Set("millrace_slices", {{"state", "unowned"}}, static_cast<double>(figures_->unowned));
}

}  // namespace millrace::engine
