// The claimed tasks that wait for a lane's threads, apart for each shard.
//
// Shards take turns. Each may queue its share, which does not shrink by what others have queued, so that one
// whose database is slow or dead fills its own share and nobody else's; and while others wait it leaves them
// a quarter of the threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "framework/base/clock.h"
#include "framework/mill/attempt.h"

namespace millrace::engine {

// How many tasks a lane should have queued ahead of its threads: about half a second of work at the pace
// measured, so that a fast lane never runs dry between claims and a slow one hoards nothing. Pure.
//
// Not thread-safe.
class LanePace {
 public:
  // `fixed`: the configured number; 0: measured.
  LanePace(std::size_t threads, std::size_t fixed) : threads_(threads), fixed_(fixed) {}

  // Keeps what was measured.
  void Resize(std::size_t threads, std::size_t fixed) {
    threads_ = threads;
    fixed_ = fixed;
  }

  // `calls` ran `tasks` tasks in `took`, one after another.
  void Ran(std::size_t tasks, Micros took, std::size_t calls = 1) {
    const double each =
        static_cast<double>(std::max<Micros::rep>(took.count(), 1)) / static_cast<double>(tasks);
    const double weight = 1 - std::pow(1 - kWeight, static_cast<double>(calls));
    micros_each_ = micros_each_ == 0 ? each : micros_each_ + (each - micros_each_) * weight;
  }

  // How long one takes, as far as is known; zero: it is not.
  Micros Each() const { return Micros(static_cast<Micros::rep>(micros_each_)); }

  // Tasks are known to be so short that handing them out one by one would cost as much as running them.
  bool AreShort() const { return micros_each_ > 0 && micros_each_ < kShort; }

  // How many tasks may be queued, those running not counted.
  std::size_t Capacity() const {
    if (fixed_ != 0) return fixed_;
    if (micros_each_ == 0) return 2 * threads_;
    const double ahead = static_cast<double>(kAhead.count()) / micros_each_ * static_cast<double>(threads_);
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::min(ahead, 1e9)), threads_, kMost);
  }

  // How long a task with so many before it waits for a thread, where all are busy.
  Micros WaitFor(std::size_t ahead) const {
    if (micros_each_ == 0) return std::chrono::hours(1);  // nothing is known
    const double wait = static_cast<double>(ahead + 1) * micros_each_ / static_cast<double>(threads_);
    return Micros(static_cast<Micros::rep>(std::min(wait, 3.6e9)));
  }

  static constexpr Micros kAhead = std::chrono::milliseconds(500);
  static constexpr std::size_t kMost = 4 * 999;

 private:
  static constexpr double kShort = 1000;  // microseconds
  static constexpr double kWeight = 0.1;  // of the newest call in the moving mean

  std::size_t threads_;
  std::size_t fixed_;
  double micros_each_ = 0;
};

// Not thread-safe.
class LaneQueue {
 public:
  using HostPtr = std::shared_ptr<AttemptHost>;

  void Push(AttemptPtr attempt);
  // To the head of its shard's queue: it was taken and not started.
  void PutBack(AttemptPtr attempt);
  std::size_t Size() const;

  // How many more of the shard's tasks may be claimed: its part of `capacity`, less what it has here. Zero
  // until half its part is free, so that claims stay large.
  std::size_t Room(const AttemptHost& host, std::size_t capacity) const;

  // The shard whose turn it is, for one of `threads` threads; null: nothing may be taken. A thread that then
  // takes works for that shard until Leave.
  HostPtr Next(std::size_t threads);
  std::size_t Waiting(const AttemptHost& host) const;
  std::vector<AttemptPtr> Take(const HostPtr& host, std::size_t most);
  void Leave(const AttemptHost& host);
  // True once after the shard's queue has sunk so far that Room is no longer zero.
  bool RoomAgain(const AttemptHost& host, std::size_t capacity);

  // Takes out the tasks for which `unwanted` is true; it is told how many stand before them, of all shards.
  std::vector<AttemptPtr> TakeIf(const std::function<bool(const Attempt&, std::size_t ahead)>& unwanted);

 private:
  struct Share {
    HostPtr host;
    std::deque<AttemptPtr> waiting;
    std::size_t threads = 0;    // that work for it now
    bool told_to_wait = false;  // since its last Push nobody said that there is room
  };
  using Shares = std::map<const AttemptHost*, Share>;

  Share& ShareOf(const HostPtr& host);
  std::size_t PartOf(const AttemptHost& host, std::size_t capacity) const;
  bool MayTake(const Share& share, std::size_t threads) const;
  void Forget(const AttemptHost& host);

  Shares shares_;  // of those that wait or run
  const AttemptHost* last_ = nullptr;
};

}  // namespace millrace::engine
