// What a process that judges alerts knows beside the shards: who runs what, and which slices nobody has.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/alerts/alert_shard.h"
#include "coordinator/upkeep/breaker_rows.h"
#include "coordinator/upkeep/leftovers.h"
#include "framework/base/mutex.h"
#include "framework/worker/control_plane.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

// A leader's, by its plan.
AlertPlace PlaceOf(const std::shared_ptr<const Ownership>& ownership);

// Of a process without a cluster, by its one worker. Thread-safe; `control` outlives it.
class LocalAlertPlace {
 public:
  // Those that the worker runs by this configuration, sorted.
  using Types = std::function<std::vector<std::string>(const Config&)>;

  // `types` is null where others may run what it does not.
  LocalAlertPlace(ControlPlane& control, Types types) : control_(control), types_(std::move(types)) {}

  // Twice a second: asks the worker once a second how it is.
  void Follow(const Worker& worker);
  void Take(const WorkerStatus& status);
  // nullopt: it was not told yet.
  std::optional<AlertPlace> Now() const;
  // Likewise.
  std::optional<OpenBreakers> Breakers() const;

 private:
  ControlPlane& control_;
  const Types types_;
  std::optional<BootTime> asked_;  // of the caller of Follow alone
  mutable Mutex mutex_;
  HandlerRefusals unopened_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<std::vector<std::string>> uncovered_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<OpenBreakers> breakers_ MILLRACE_GUARDED_BY(mutex_);  // that have opened by themselves
};

}  // namespace millrace::engine
