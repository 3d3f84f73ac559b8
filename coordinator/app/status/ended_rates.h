// How many tasks a second end, by task type: the difference between two looks at the shards' counters.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "coordinator/app/status/status_report.h"

namespace millrace::engine {

// One thread.
class EndedRates {
 public:
  // Sets `window` and `ended` of these facts, once there was a look before. Counted is what was read in both
  // looks: of a shard that comes back it is not known when its tasks have ended.
  void Look(StatusFacts& facts, BootTime now);

  std::optional<BootTime> last() const { return looked_; }

 private:
  using Ended = std::map<std::string, std::uint64_t>;  // by task type

  std::map<std::string, Ended> before_;  // by shard; of those that were read in the last look
  std::optional<BootTime> looked_;
};

}  // namespace millrace::engine
