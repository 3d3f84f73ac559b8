// The claimed tasks that wait for a lane's threads, apart for each shard.
//
// Shards take turns. Each may queue its share, which does not shrink by what others have queued, so that one
// whose database is slow or dead fills its own share and nobody else's; and while others wait it leaves them
// a quarter of the threads.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "framework/mill/attempt.h"

namespace millrace::engine {

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
