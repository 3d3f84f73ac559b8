#include "coordinator/app/status/ended_rates.h"

#include <utility>

namespace millrace::engine {

void EndedRates::Look(StatusFacts& facts, BootTime now) {
  std::map<std::string, Ended> seen;
  for (const auto& [name, shard] : facts.shards) {
    if (!shard.error.empty()) continue;
    Ended& ended = seen[name];
    for (const TaskTotals& total : shard.totals)
      ended[total.handler] += total.succeeded + total.cancelled + total.failed;
  }
  if (looked_ && now > *looked_) {
    facts.window = now - *looked_;
    const double seconds = std::chrono::duration<double>(*facts.window).count();
    for (const auto& [name, ended] : seen) {
      const auto before = before_.find(name);
      if (before == before_.end()) continue;
      for (const auto& [handler, count] : ended) {
        const auto known = before->second.find(handler);
        const std::uint64_t then = known == before->second.end() ? 0 : known->second;
        // People take tasks out of the failed pool.
        if (count > then) facts.ended[handler] += static_cast<double>(count - then) / seconds;
      }
    }
  }
  before_ = std::move(seen);
  looked_ = now;
}

}  // namespace millrace::engine
