// submit --wait: the ends of tasks by their ids. Bounded looks, each at tasks that have not ended yet, in
// turn.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/task/task_lookup.h"
#include "framework/base/clock.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

struct WatchedEnd {
  TaskKey key;
  std::string state;  // failed, cancelled; `gone`: it is in no pool any more, and nobody knows how it ended
  std::string why;
};

struct WatchTotals {
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t gone = 0;
  std::vector<WatchedEnd> others;  // those that did not succeed, at most kEndsKept
};
inline constexpr std::size_t kEndsKept = 1000;

// Whoever looks again and again waits for a store that is away, for a minute at most.
class StorePatience {
 public:
  // Whether to ask again; the first time it says so.
  bool Bears(const Error& error, BootTime now);
  void Answered() { away_since_.reset(); }
  bool away() const { return away_since_.has_value(); }

 private:
  std::optional<BootTime> away_since_;
};

// Decides when to look and what came of it; whoever has it sleeps. Not thread-safe.
class OutcomeWatch {
 public:
  OutcomeWatch(const std::vector<TaskKey>& tasks, BootTime now);

  // Asks once, of at most kMaxBatchRows tasks of one table. An error changes nothing: look again.
  Status Look(TaskOperations& operations, BootTime now);
  // How long to wait before the next look: nothing where all that were asked about have ended, else a tenth
  // of the time since one last did, 50 ms to 2 s.
  Micros Pause(BootTime now) const;

  bool Done() const { return open_.empty(); }
  std::size_t open() const { return open_.size(); }
  const TaskKey& next() const { return open_.front().key; }  // of those that have not ended
  BootTime last_end() const { return last_end_; }            // or the beginning
  const WatchTotals& totals() const { return totals_; }

 private:
  struct Open {
    TaskKey key;
    bool missed = false;  // the last look found it nowhere
  };
  bool MissedAgain(const Open& one);
  bool Ended(const TaskKey& key, const TaskOutcome& outcome);
  void Keep(const TaskKey& key, const char* state, std::string why);

  std::deque<Open> open_;
  WatchTotals totals_;
  BootTime last_end_;
  bool all_ended_ = false;  // in the last look
};

struct WaitReport {
  WatchTotals totals;
  std::size_t open = 0;        // not ended yet
  std::optional<Error> error;  // the store was away for too long
  std::string result;          // of the only task, where it succeeded

  bool AllSucceeded() const { return open == 0 && totals.others.empty(); }
};

// Waits until the tasks have ended, or a signal asks it to stop, which leaves them as they are: see
// submit_wait.cc. Shows on standard error how it stands, and where nothing happens, why. The shard's
// operations are open.
WaitReport WaitForOutcomes(TaskShards& open, const CommonFlags& common, const std::string& shard,
                           const std::vector<TaskKey>& tasks);

// {"outcomes":{"succeeded":1,…},"not_succeeded":[{"name","state","why"}, …]}
nlohmann::ordered_json ToJson(const std::string& shard, const WaitReport& report);
// For people: those that did not succeed, and the counts.
void PrintOutcomes(const std::string& shard, const WaitReport& report);

}  // namespace millrace::engine
