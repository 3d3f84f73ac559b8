// How a task type is to be treated beside others, and how a worker draws its work: the policies, as values.
// conf/README.md describes every key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

// `handlers.H.limit`: of a task type, in the whole cluster. At least one of rate and concurrency is set.
struct LimitConfig {
  double rate = 0;                // starts a second; 0: any number
  std::uint32_t burst = 0;        // starts at once after a pause; 0: a tenth of a second's, at least one
  std::uint32_t concurrency = 0;  // running at once; 0: any number
  bool operator==(const LimitConfig&) const = default;
};

// `handlers.H.breaker`: when nothing of a task type is started for a while.
struct BreakerConfig {
  double failures = 0.5;                     // opens at this share of calls that failed, above 0 … 1
  Micros window = std::chrono::seconds(10);  // of the calls that are looked at
  std::uint32_t minimum = 20;                // calls in it, before that says anything
  Micros probe_every = std::chrono::seconds(2);
  std::uint32_t probes = 1;  // tasks that are tried each time
  // The error classes that count; a `*` at the end stands for anything.
  std::vector<std::string> classes = {"timeout", "connection", "http_5*"};
  bool operator==(const BreakerConfig&) const = default;
};

// `handlers.H.hours`: when tasks of the type may start. `to` before `from`: over midnight.
struct HoursConfig {
  std::uint32_t from = 0;  // minutes after midnight, 0 … 1439
  std::uint32_t to = 0;    // likewise, 1440 being the day's end; not `from`
  std::string zone = "UTC";
  bool operator==(const HoursConfig&) const = default;
};

// One of `handlers.H.bands`: tasks of these priorities and failures are looked at so often, and so many of
// them are taken each time.
struct BandConfig {
  std::uint32_t priority_from = 0;
  std::uint32_t priority_to = 9;
  std::uint32_t failures_from = 0;
  std::uint32_t failures_to = 9;  // 9: nine or more
  Micros every{};                 // 0: without a pause
  std::uint32_t most = 0;         // rows each time, in one worker and shard; 0: any number

  // Whether tasks of this urgency (framework/task/task.h) are in it.
  bool Covers(std::uint32_t urgency) const;
  // Whether its look is overdue where the oldest has been due for so long: then the band is not why it waits.
  bool IsOverdue(Micros due_for) const { return due_for > every + std::chrono::seconds(30); }
  bool operator==(const BandConfig&) const = default;
};

// What is done with claimed tasks for which a lane has no room.
enum class WhenFull {
  Wait,      // they are not claimed
  Caller,    // a thread that the lane keeps for this runs them
  GiveBack,  // they are claimed, and go back uncounted
};

inline constexpr std::uint32_t kMostWeight = 1000;

// `engine.queues`: by what a worker's claimed tasks queue, and how its threads draw from the queues.
struct QueuesConfig {
  enum class By { Handler, Table, Shard, Priority, One };
  enum class Take { Turns, Random };
  By by = By::Handler;
  Take take = Take::Turns;
  std::uint32_t most = 0;  // queues drawn from at once; 0: all
  bool operator==(const QueuesConfig&) const = default;
};

// `engine.scanners`: who scans what in a worker, each with a thread of its own.
struct ScannersConfig {
  enum class By { Shard, Table, Priority };
  By by = By::Shard;
  std::uint32_t most = 4;  // for each shard
  bool operator==(const ScannersConfig&) const = default;
};

}  // namespace millrace::engine
