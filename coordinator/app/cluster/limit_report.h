// What `cluster status` shows of the limits: whose share is how much, and what waits for it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/cluster/cluster_snapshot.h"

namespace millrace::engine {

// Of one worker, of one limit that it tells of.
struct LimitLine {
  std::string type;
  std::string worker;
  std::string share;  // in words: `33.33/s`, `nothing`, `by permit, has 1`
  LimitUse use;
};

// By type and worker.
std::vector<LimitLine> LimitLines(const ClusterSnapshot& snapshot);
// The types of which no owner that runs them has a share, so that nothing of them starts; and how many of
// their tasks still run.
std::map<std::string, std::uint64_t> Unshared(const ClusterSnapshot& snapshot);
// The types of which some worker has claimed tasks that its share does not let start.
std::set<std::string> HeldBack(const ClusterSnapshot& snapshot);

}  // namespace millrace::engine
