// A limit in one worker: its share of what the cluster's leader divides, and what it makes of it. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace millrace::engine {

// What one worker may use of a task type's limit. Of a kind that the limit does not have it says nothing.
struct LimitShare {
  double rate = 0;                // starts a second; 0: none
  double saved = 0;               // of a start, for whoever gets a rate and had none
  std::uint32_t concurrency = 0;  // running at once; 0: none
  // The concurrency that is left is less than there are owners: permits in a shard decide who may run. So
  // many there are now, of all workers together; `concurrency` is 0 then. 0: it is not held by permits.
  std::uint32_t permits = 0;
  bool operator==(const LimitShare&) const = default;
};
// By task type. A type with a limit that has no share: nothing of it may start.
using LimitShares = std::map<std::string, LimitShare>;

// What a worker makes of its share.
struct LimitUse {
  double rate = 0;            // starts a second, lately
  double saved = 0;           // of its next start, where it has or had less than one a second
  std::uint32_t running = 0;  // starts that have not ended
  std::uint32_t placed = 0;   // those of them that hold no permit
  std::size_t waiting = 0;    // claimed, and not started
  bool wants_rate = false;    // it would start more, did the rate let it
  bool wants_concurrency = false;
  bool operator==(const LimitUse&) const = default;
};

}  // namespace millrace::engine
