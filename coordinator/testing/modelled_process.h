// A modelled process: its threads, and its ways to the servers. It can be stopped at any point and go on
// later, or die at any point.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "coordinator/testing/modelled_client.h"
#include "coordinator/testing/modelled_database.h"

namespace millrace::engine {

enum class ThreadName : std::size_t { Tree, Watch, Beat, Scan, Tend, Settle, FirstLane, SecondLane };
inline constexpr std::size_t kThreads = 8;

// Outlives the timeline's events.
struct ModelledProcess {
  std::string name = {};
  std::array<Strand, kThreads> threads = {};
  DatabaseLink database = {};
  TreeLinks tree = {};
  bool up = false;
  BootTime paused_until{};

  Strand& On(ThreadName thread) { return threads[static_cast<std::size_t>(thread)]; }

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
