// A modelled run stage: two threads, and handlers that take their time and end in one way or another. What is
// asked before each start is the mill's own question. A task may be held up between any two steps.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/testing/modelled_process.h"
#include "framework/config/config.h"
#include "framework/mill/attempt.h"
#include "framework/task/transaction_policy.h"

namespace millrace::engine {

struct HandlerModel {
  std::size_t room = 6;  // tasks queued
  Micros longest_run = std::chrono::milliseconds(1'500);
  unsigned retries = 12;  // percent of the runs
  unsigned snoozes = 5;
  unsigned with_sql = 40;       // percent of the runs that send SQL in their task's transaction
  bool snooze_commits = false;  // a planted bug: so does a snooze's SQL
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
  };

  explicit ModelledRunner(Parts parts) : parts_(std::move(parts)) {}

  bool Runs(const std::string& type) override { return parts_.runs(type); }
  LaneRoom Room(const std::string& type, const AttemptHost& shard, std::uint32_t urgency) override;
  Micros BusyFor() override;
  bool Take(const std::string& type, std::vector<AttemptPtr>& attempts) override;
  // Something was moved or paused: what is queued of it goes back.
  void SendBackUnwanted();
  // All that is queued goes back.
  void GiveBackQueued();
  void Follow(std::shared_ptr<const Config> config) { config_ = std::move(config); }

 private:
  struct Place {
    ThreadName thread;
    bool resting = true;
    BootTime busy_until{};
  };

  void WakeOne();
  void Next(Place& place);
  bool ReadyToStart(const AttemptPtr& attempt);
  void Run(Place& place, const AttemptPtr& attempt);
  void End(const AttemptPtr& attempt, const Outcome& outcome);
  // The end of a run that has sent SQL, by the rule that the lanes go by.
  void EndWithSql(Place& place, const AttemptPtr& attempt, const Outcome& outcome);
  void Committed(const AttemptPtr& attempt, CallEnd end, const Settlement& sent,
                 const Result<CommitVerdict>& verdict);
  Outcome Ran();
  std::size_t ShardOf(const Attempt& attempt) const;
  const RetryPolicy& RetryOf(const Attempt& attempt) const {
    return config_->HandlerFor(attempt.task.handler).retry;
  }
  bool Percent(unsigned percent) { return parts_.timeline.random().Below(100) < percent; }

  const Parts parts_;
  std::shared_ptr<const Config> config_;
  std::deque<AttemptPtr> queue_;
  std::array<Place, 2> places_{Place{ThreadName::FirstLane}, Place{ThreadName::SecondLane}};
};

}  // namespace millrace::engine
