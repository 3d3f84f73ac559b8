// What `cluster status` shows of the limits: whose share is how much, and what waits for it. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/app/cluster_snapshot.h"

namespace millrace::engine {

// Of one worker, of one limit that it tells of.
struct LimitLine {
  std::string type;
  std::string worker;
  std::string share;  // in words: `33.3/s`, `nothing`, `by permits`
  LimitUse use;
};

// By type and worker.
std::vector<LimitLine> LimitLines(const ClusterSnapshot& snapshot);
// Some worker has claimed tasks of the type that its share does not let start.
bool HoldsBack(const ClusterSnapshot& snapshot, const std::string& type);

}  // namespace millrace::engine
