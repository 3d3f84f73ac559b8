// A modelled run stage: two threads, and handlers that take their time and end in one way or another. What is
// asked before each start is the mill's own question. A task may be held up between any two steps.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/testing/modelled_process.h"
#include "coordinator/testing/run_checks.h"
#include "framework/config/config.h"
#include "framework/mill/attempt.h"
#include "framework/task/transaction_policy.h"

namespace millrace::engine {

struct HandlerModel {
  std::size_t room = 6;  // tasks queued
  Micros longest_run = std::chrono::milliseconds(1'500);
  unsigned retries = 12;  // percent of the runs
  unsigned snoozes = 5;
  unsigned with_sql = 40;            // percent of the runs that send SQL in their task's transaction
  unsigned deaf = 10;                // percent of the runs that do not heed a request to stop
  bool snooze_commits = false;       // a planted bug: so does a snooze's SQL
  bool charges_failures = false;     // another: a failure is charged whatever the breaker says
  bool frees_before_settle = false;  // another: a permit is free once the handler has returned
  bool forgets_in_flight = false;    // another: what starts is in flight no more
  bool gives_up_early = false;       // another: the first failure of a task is its last
};

// Not thread-safe.
class ModelledRunner final : public Runner {
 public:
  struct Parts {
    Timeline& timeline;
    std::deque<ModelledDatabase>& databases;
    ModelledProcess& process;
    Journal& journal;
    const HandlerModel& model;
    const std::vector<std::string>& shards;
    std::function<bool(const std::string& type)> runs;
    std::function<bool(const std::string& type)> broken;  // whom it calls fails
    RunChecks& checks;
    Admission& admission;
  };

  explicit ModelledRunner(Parts parts) : parts_(std::move(parts)) {}

  bool Runs(const std::string& type) override { return parts_.runs(type); }
  LaneRoom Room(const std::string& type, const AttemptHost& shard, std::uint32_t urgency) override;
  Micros BusyFor() override;
  bool Take(const std::string& type, std::vector<AttemptPtr>& attempts) override;
  // Something was moved or paused: what is queued of it goes back.
  void SendBackUnwanted();
  // Again and again: a handler whose permit is gone ends, or is given up; one whose life is over ends.
  void Watch();
  // What is queued may have starts that it had not.
  void StartsAgain() {
    if (!queue_.empty()) WakeOne();
  }
  // All that is queued goes back.
  void GiveBackQueued();
  void Follow(std::shared_ptr<const Config> config) { config_ = std::move(config); }

 private:
  struct Place {
    ThreadName thread;
    bool resting = true;
    BootTime busy_until{};
    AttemptPtr running = nullptr;  // in its handler
    std::uint64_t run = 0;         // for the checks
    bool heeds = true;             // a request to stop; once
  };
  struct Queued {
    AttemptPtr attempt;
    BootTime since{};
  };

  void WakeOne();
  void Next(Place& place);
  // The first that has a start; none: all wait for theirs.
  std::optional<Queued> TakeNext();
  bool Starts(const AttemptPtr& attempt);
  void Run(Place& place, const Queued& queued);
  void Return(Place& place, std::uint64_t run);
  void End(const AttemptPtr& attempt, const Outcome& outcome);
  // The end of a run that has sent SQL, by the rule that the lanes go by.
  void EndWithSql(Place& place, const AttemptPtr& attempt, const Outcome& outcome);
  void Committed(const AttemptPtr& attempt, CallEnd end, const Settlement& sent,
                 const Result<CommitVerdict>& verdict);
  // What its handler says.
  Outcome Ran(const Attempt& attempt);
  Outcome Draw(const std::string& type);
  std::size_t ShardOf(const Attempt& attempt) const;
  RetryPolicy RetryOf(const Attempt& attempt) const;
  bool Percent(unsigned percent) { return parts_.timeline.random().Below(100) < percent; }

  const Parts parts_;
  std::shared_ptr<const Config> config_;
  std::deque<Queued> queue_;
  std::array<Place, 2> places_{Place{ThreadName::FirstLane}, Place{ThreadName::SecondLane}};
};

}  // namespace millrace::engine
