// SIGTERM and SIGINT as a count that a loop looks at: no work is done in signal handlers.
#pragma once

#include "framework/worker/worker.h"

namespace millrace::engine {

// From now on the two signals are counted instead of ending the process.
void CatchStopSignals();
int StopSignalsSeen();

// The first signal asks for an end in good order, the second for one now.
class StopOnSignals {
 public:
  explicit StopOnSignals(Worker& worker) : worker_(worker) {}
  // True once the first signal was seen.
  bool Look();

 private:
  Worker& worker_;
  int asked_ = 0;
};

}  // namespace millrace::engine
