// What a worker tells its cluster of itself.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/process/worker_flags.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/member/limit_teller.h"
#include "framework/plugin/plugin_set.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

// The task types that a worker runs: those of its plugins and those that the configuration serves by them,
// and of these what --handlers allows. Sorted.
std::vector<std::string> TypesRun(const Config& config, const PluginSet& plugins,
                                  const std::vector<std::string>& allowed);

// The document of its node, for a new life. Invalid for a --load-balance that can't be read.
Result<WorkerDocument> PlaceOf(const WorkerFlags& flags, const std::string& id);

// The worker's part of its status node: totals, rates since the last call, its shards. One thread.
class StatusTeller {
 public:
  // Tells what of `plugins` it has loaded, and what was not, and why.
  StatusTeller(const Worker& worker, const PluginSet& plugins);
  // `shard_refusals`: by shard, why it is not served.
  std::string Tell(const std::map<std::string, std::string>& shard_refusals);
  // Whether what it makes of the limits is so different by now that the leader should know; nullopt: there
  // are none.
  std::optional<bool> Pressing() const { return limits_.Pressing(worker_.Limits()); }

 private:
  const Worker& worker_;
  std::set<std::string> plugins_;  // `name version`
  const std::vector<std::string> refused_;
  std::optional<BootTime> last_;
  WorkerTotals before_;
  LimitTeller limits_;
};

}  // namespace millrace::engine
