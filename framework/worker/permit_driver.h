// Drives the permits of a worker: a thread, begun once some task type needs any, with sessions of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/mill/permits.h"
#include "framework/threads/thread.h"
#include "framework/worker/shard_driver.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// Watch, RequestStop and Stop are the watch thread's; the rest is thread-safe.
class PermitDriver {
 public:
  PermitDriver(const Clock& clock, Runner& runner, Registry& metrics);
  ~PermitDriver();

  Permits& permits() { return permits_; }
  const Permits& permits() const { return permits_; }

  // Again and again, with the mills of this moment. Starts the thread once it is needed; where none can be
  // had it is tried again.
  void Watch(const std::vector<std::shared_ptr<ShardDriver>>& mills);
  void RequestStop() { permits_.Stop(); }
  void Stop();
  // It should have gone on for longer than `patience`, and has not.
  bool StandsStill(BootTime now, Micros patience) const;
  void Tell(WorkerStatus& status) const;

 private:
  class Port;

  const Clock& clock_;
  const std::unique_ptr<Port> port_;
  Permits permits_;
  Thread thread_;  // last: uses the others
};

}  // namespace millrace::engine
