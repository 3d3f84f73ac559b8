// One way to build, watch and end a worker: for `run`, for `worker`, and for a worker of a cluster.
#pragma once

#include "coordinator/app/process/supervision.h"
#include "coordinator/app/process/worker_report.h"
#include "framework/metrics/registry.h"
#include "framework/plugin/plugin_set.h"
#include "framework/worker/control_plane.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

// What a worker works in, and what differs with it. One thread; it outlives the worker.
class WorkerEnvironment {
 public:
  virtual ~WorkerEnvironment() = default;

  virtual ControlPlane& control() = 0;
  // What this process counts and measures.
  virtual Registry& metrics() = 0;
  // The worker has started: others may know of it. After an error End follows at once.
  virtual Status Join(const Worker&) { return {}; }
  // Twice a second until the worker has ended. An error ends it, and is the last call.
  virtual Status Update(const Worker& worker) = 0;
  // Why it has no plan to work by; empty: it has one, or needs none. Thread-safe.
  virtual std::string NoPlan() const { return ""; }
  // A thread of its own that stands still, as Worker::StandsStill. Thread-safe.
  virtual std::string StandsStill(Micros) const { return ""; }
  // The worker ends, and finishes what runs: others may begin with what is its own. Once.
  virtual void Leave() {}
  // False: threads are held up by a server that does not answer; the process must end by std::_Exit.
  [[nodiscard]] virtual bool End() = 0;
  // What the shards hold, for the last words, after End; an error without a message: nobody asks.
  virtual Result<TaskSummary> Summary(const WorkerStatus& last, WorkerEnd end) = 0;
};

// As long as it lives the registry tells which version this is.
[[nodiscard]] Registry::Reading TellBuild(Registry& metrics);

// Runs a worker in this process until it ends, by itself or by a signal, and tells what came of it.
Result<ExitCode> HostWorker(const WorkerFlags& flags, WorkerOptions options, const PluginSet& plugins,
                            WorkerEnvironment& environment, Supervision& supervision);

}  // namespace millrace::engine
