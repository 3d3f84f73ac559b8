// Hands the signals that ask a process to end on to its worker.
#pragma once

#include "coordinator/app/stop_signals.h"
#include "coordinator/app/terminal.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

// The first signal asks for an end in good order, the second for one now.
class StopAsker {
 public:
  explicit StopAsker(Worker& worker) : worker_(worker) {}
  // True once the first signal was seen.
  bool Look() {
    const int seen = StopSignalsSeen();
    if (seen > 0 && asked_ == 0) {
      asked_ = 1;
      worker_.Stop();
      PrintNote("stopping: what runs is finished or given back; once more to give everything back now");
    }
    if (seen > 1 && asked_ == 1) {
      asked_ = 2;
      worker_.StopNow();
      PrintNote("giving everything back now");
    }
    return asked_ > 0;
  }

 private:
  Worker& worker_;
  int asked_ = 0;
};

}  // namespace millrace::engine
