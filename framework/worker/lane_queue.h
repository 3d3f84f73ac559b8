// The claimed tasks that wait for a lane's threads, in one queue or in several, and which of them is next.
//
// A lane of one type has one queue. Where types share a lane (`engine.queues`) its tasks queue by table,
// shard or priority, or all in one, and its threads draw from the queues in turns, each as often as weighs
// what stands at its head, or at random. Within a queue shards take turns, and of a shard the most urgent is
// first.
//
// Whatever it queues by, a bound is a type's: a shard may queue its part of that, which does not shrink by
// what others have queued, so that one whose database is slow or dead fills its own part and nobody else's;
// and while others wait it leaves them a quarter of the type's threads.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "framework/config/policy_config.h"
#include "framework/mill/attempt.h"
#include "framework/worker/lane_pace.h"
#include "framework/worker/urgency_queue.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// What a queue goes by of a task type; the lane's own.
struct LaneType {
  std::string name;
  LanePace pace;
  std::size_t bytes = 0;     // that it may queue, by MemoryBudget::Of; 0: any number
  std::uint32_t weight = 1;  // at the head of a queue
  bool gives_back = false;   // what there is no room for is claimed all the same, now and then
  std::size_t most = 1;      // threads that may have its tasks at once
  std::size_t threads = 0;   // that have some
  BootTime starts_from{};    // before then its gate has no start
};

// What a thread may take, or has taken: tasks of one type and one shard, out of one queue.
struct Taken {
  LaneType* type = nullptr;
  std::shared_ptr<AttemptHost> host;  // null: nothing
  std::string queue;
  std::size_t count = 0;  // that it has; before it takes: that it may
};

// Not thread-safe.
class LaneQueue {
 public:
  using HostPtr = std::shared_ptr<AttemptHost>;

  explicit LaneQueue(std::uint64_t seed = 1) : random_(seed) {}

  // By what tasks queue from now on, those that wait already too.
  void Follow(const QueuesConfig& rules);

  // Takes these; returns those that are to go back (LaneType::gives_back).
  std::vector<AttemptPtr> Push(LaneType& type, std::vector<AttemptPtr> attempts, BootTime now,
                               const Aging& aging);
  // They were taken and not started.
  void PutBack(LaneType& type, std::vector<AttemptPtr> attempts);
  std::size_t Size() const { return size_; }

  // How much more of the shard's tasks, of this urgency, may be claimed: its part of the type's bound, less
  // what it has here that is as urgent. Zero until half its part is free, so that claims stay large. What is
  // less urgent may fill the part; beyond it, up to twice the part, is room for the more urgent alone, the
  // more the more urgent.
  LaneRoom Room(const LaneType& type, const AttemptHost& host, std::uint32_t urgency, BootTime now,
                const Aging& aging);
  // Some shard of the type was told that there is none, and has had none since.
  bool IsFull(const LaneType& type) const;

  // What a thread is to take now: one draw. Nothing of types that `may_start` refuses.
  using MayStart = std::function<bool(const LaneType&)>;
  // Due times are by the clock of the shard.
  using AgingOf = std::function<Aging(const AttemptHost&)>;
  std::optional<Taken> Next(const AgingOf& aging_of, const MayStart& may_start);
  // Takes so many of it at most. The thread then works for that type, shard and queue until Leave.
  std::vector<AttemptPtr> Take(Taken& drawn, std::size_t most, const Aging& aging);
  void Leave(const Taken& taken);
  // True once after the shard's part has sunk so far that Room is no longer zero: for what is most urgent of
  // it, and once more for all.
  bool RoomAgain(const LaneType& type, const AttemptHost& host, const Aging& aging);

  // Takes out the tasks for which `unwanted` is true; it is told their type, and how many of that stand
  // before them, of all shards.
  using Unwanted = std::function<bool(const Attempt&, const LaneType& type, std::size_t ahead)>;
  std::vector<AttemptPtr> TakeIf(const Unwanted& unwanted);

  std::vector<QueueStatus> Loads() const;

 private:
  // One type's of one shard, in whatever queues: what bounds go by. One is kept while it waits or runs.
  struct Part {
    HostPtr host;
    std::size_t waiting = 0;
    std::size_t bytes = 0;
    std::size_t threads = 0;
    bool told_of_urgent = true;  // that there is room, since something was pushed
    bool told_of_all = true;
    bool full = false;
    BootTime gives_back_from{};
  };
  using PartKey = std::pair<const LaneType*, const AttemptHost*>;
  using Parts = std::map<PartKey, Part>;
  struct Queue {
    std::size_t waiting = 0;
    std::size_t threads = 0;
    double turn = 0;         // whoever has had the fewest turns for its weight is next
    std::size_t streak = 0;  // turns since it was drawn from anew
    const AttemptHost* last = nullptr;
  };
  struct Key {
    std::string queue;
    const AttemptHost* host = nullptr;
    const LaneType* type = nullptr;
    auto operator<=>(const Key&) const = default;
  };
  struct Cell {
    LaneType* type = nullptr;
    HostPtr host;
    UrgencyQueue tasks;
  };
  using Cells = std::map<Key, Cell>;  // none is empty
  struct Place {
    Part& part;
    Queue& queue;
    Cell& cell;
  };
  struct Bounds {
    std::size_t tasks = 0;
    std::size_t bytes = 0;
  };

  std::string NameOf(const Attempt& attempt) const;
  bool IsSame(const Attempt& a, const Attempt& b) const;
  Place PlaceOf(LaneType& type, const Attempt& attempt);
  void Add(const Place& place, AttemptPtr attempt, bool back);
  std::size_t OtherShards(const PartKey& key) const;
  Bounds PartOf(const PartKey& key) const;
  std::size_t AtLeast(const PartKey& key, std::uint32_t urgency, const Aging& aging) const;
  std::uint32_t MostUrgent(const PartKey& key, const Aging& aging) const;
  LaneRoom RoomOf(const PartKey& key, const Part& part, std::uint32_t urgency, const Aging& aging) const;
  bool MayTake(const PartKey& key) const;
  bool MayDraw(const Queue& queue) const;
  const std::string& QueueInTurn(const std::vector<const Cells::value_type*>& cells);
  void Uncount(const Cells::value_type& cell, const std::vector<AttemptPtr>& attempts);
  void Forget(const PartKey& key, const std::string& queue);

  QueuesConfig rules_;
  Random random_;
  std::size_t size_ = 0;
  Parts parts_;
  std::map<std::string, Queue> queues_;  // of those that hold tasks, or are worked for
  Cells cells_;
  double turn_ = 0;          // of the queue that was drawn from last
  std::uint64_t draws_ = 0;  // among types
};

}  // namespace millrace::engine
