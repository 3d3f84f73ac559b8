// How a shard's tasks stand, for people, metrics and alerts: per table and handler, in a handful of bounded
// statements whatever the pools hold. Nothing counts a pool. What it costs: README.md, "How tasks stand".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/incarnation_store.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

struct Counted {
  std::uint64_t count = 0;
  bool more = false;  // `count` is a bound from below
  Counted& operator+=(const Counted& other) {
    count += other.count;
    more = more || other.more;
    return *this;
  }
  bool operator==(const Counted&) const = default;
};

// The tasks of one type in one table that have not ended.
struct HandlerOverview {
  TableName table;
  std::string handler;
  // Over the tables of a shard exact below kExactBacklog for each handler; beyond it the counting ends, and
  // the tables that were not counted have a bound from below.
  Counted waiting;
  // As many as stand at the heads of the due order, which is where running tasks stand; `more` where the look
  // ended among running ones, or left groups out.
  Counted running;
  Counted held;
  std::optional<WallTime> oldest_due;  // of those that wait, the first that is due
  std::optional<WallTime> next_due;    // where nothing is due: when the first will be
};

struct WaitingOverview {
  WallTime now;                           // the database's clock
  std::vector<HandlerOverview> handlers;  // by table and handler; those that have tasks
};

// The same over all tables, by handler; `table` is that of the oldest.
std::map<std::string, HandlerOverview> ByHandler(const WaitingOverview& waiting);

// Failed tasks of one table, handler and class among the newest of the pool.
struct FailedClass {
  TableName table;
  std::string handler;
  std::string error_class;
  std::uint64_t count = 0;
  std::uint64_t newest = 0;  // its id
  WallTime at;               // when that failed
  std::string error;         // and why, the first 200 characters
};

struct FailedOverview {
  std::vector<FailedClass> classes;  // the most frequent first
  std::uint64_t looked_at = 0;       // the newest of the failed tasks, by id
  bool all = false;                  // these are all there are
};

class OverviewStore {
 public:
  virtual ~OverviewStore() = default;

  virtual Result<WaitingOverview> Waiting(std::span<const TableName> tables) = 0;
  // Of what failed. How many there are is what TaskOperations::Totals says, since whatever moves a row into
  // or out of the failed pool keeps that number in the same transaction. `totals` are those: of the tables,
  // those without failed tasks are not looked into.
  virtual Result<FailedOverview> Failed(std::span<const TableName> tables,
                                        std::span<const TaskTotals> totals) = 0;
};

// How long each live incarnation's beat has stood still, as far as this process has watched: a beat is a
// counter without a time, since no clock is trusted. Pure. One owner.
class BeatWatch {
 public:
  struct Sign {
    std::optional<std::uint64_t> beat;
    BootTime since;      // the look at which it was first seen at this number
    bool moved = false;  // it was seen to move: its worker is alive
  };

  void Look(BootTime now, std::span<const PeerBeat> peers);
  const std::map<std::string, Sign>& signs() const { return signs_; }  // by incarnation
  // Every beat was seen to move: nothing more is to be learnt by waiting.
  bool AllMoved() const;

 private:
  std::map<std::string, Sign> signs_;
};

}  // namespace millrace::engine
