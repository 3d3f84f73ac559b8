// What a process of a cluster tells of its part in it; of the cluster as a whole, only while it leads.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "coordinator/leader/leader.h"
#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/metrics/registry.h"

namespace millrace::engine {

struct ClusterState {
  bool connected = false;    // with ZooKeeper
  bool stands = false;       // it is a candidate
  bool leads = false;        // as far as it may believe that
  std::size_t refusals = 0;  // of the configuration
};

// Thread-safe; Plans and Planned by one thread.
class ClusterMetrics {
 public:
  // `state` is asked with each text, and may tell more itself.
  ClusterMetrics(Registry& registry, std::function<ClusterState(Gauges&)> state);

  void Moved(const std::vector<SliceMove>& moves);
  void Plans() { begun_ = BootClock::now(); }
  void Planned(const PlanFigures& figures);
  // Nothing is asked any more.
  void End() { reading_.End(); }

 private:
  void Measure(Gauges& gauges);

  const std::function<ClusterState(Gauges&)> state_;
  Counter& fresh_;
  Counter& orphaned_;
  Counter& for_balance_;
  Histogram& plan_;
  BootTime begun_{};
  Mutex mutex_;
  std::optional<PlanFigures> figures_ MILLRACE_GUARDED_BY(mutex_);  // of the present term
  Registry::Reading reading_;                                       // last: uses the others
};

}  // namespace millrace::engine
