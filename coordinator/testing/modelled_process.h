// A modelled process: its threads, and its ways to the servers. It can be stopped at any point and go on
// later, or die at any point.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "coordinator/testing/modelled_client.h"
#include "coordinator/testing/modelled_database.h"

namespace millrace::engine {

// Those of the process, and those that it has for each shard.
enum class ThreadName : std::size_t {
  Tree,
  Watch,
  FirstLane,
  SecondLane,
  Permits,
  Upkeep,
  Beat,
  Scan,
  Tend,
  Settle,
  SecondSettle,
  SecondScan
};
inline constexpr std::size_t kMostShards = 2;
inline constexpr std::size_t kOwnThreads = static_cast<std::size_t>(ThreadName::Upkeep);
inline constexpr std::size_t kShardThreads = 7;
inline constexpr std::size_t kThreads = kOwnThreads + kMostShards * kShardThreads;

// Outlives the timeline's events.
struct ModelledProcess {
  std::string name = {};
  std::array<Strand, kThreads> threads = {};
  std::array<DatabaseLink, kMostShards> databases = {};
  TreeLinks tree = {};
  bool up = false;
  BootTime started{};
  BootTime paused_until{};
  BootTime tree_harmed_until{};  // its ways to the ensemble: no longer than that

  Strand& On(ThreadName thread, std::size_t shard = 0) {
    const auto number = static_cast<std::size_t>(thread);
    return threads[number < kOwnThreads ? number : number + shard * kShardThreads];
  }

  // Since when it has run, no thread of it was held up, and it could reach the ensemble; not before now: it
  // may not.
  BootTime WellSince() const {
    BootTime since = std::max(started, tree_harmed_until);
    for (const Strand& thread : threads) since = std::max(since, thread.held_until);
    return since;
  }
  // As SIGSTOP: nothing happens in it before `until`; its threads then wake in any order.
  void Pause(BootTime until, Random& random) {
    paused_until = std::max(paused_until, until);
    for (Strand& thread : threads) {
      thread.Hold(until + Micros(static_cast<std::int64_t>(random.Below(kLongestWaking))));
    }
  }
  // What was under way in it is forgotten; what it has sent is not.
  void Die() {
    up = false;
    for (Strand& thread : threads) {
      ++thread.life;
      thread.held_until = {};
    }
  }

 private:
  static constexpr std::uint64_t kLongestWaking = 50'000;  // microseconds
};

}  // namespace millrace::engine
