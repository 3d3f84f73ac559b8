// How far the shards' work is, read beside the worker.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "coordinator/app/progress_line.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/status_line.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

// Reads the backlog and draws the line, twice a second at most. One thread. Costs nothing where it is
// disabled.
class MillProgress {
 public:
  MillProgress(Shards& shards, bool enabled);
  void Update(const WorkerTotals& totals);
  void Clear() { line_.Clear(); }

 private:
  void ReadBacklog();

  Shards& shards_;
  StatusLine line_;
  RateMeter rate_;
  std::map<std::string, std::unique_ptr<TaskDesk>> desks_;
  std::optional<BootTime> last_read_;
  Micros read_cost_{0};
  std::uint64_t waiting_ = 0;
  bool more_ = false;
};

}  // namespace millrace::engine
