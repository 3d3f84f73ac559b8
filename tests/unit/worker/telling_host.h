// A shard that tells what has ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "framework/base/mutex.h"
#include "framework/testing/scratch_store.h"
#include "no_host.h"
#include "tests/support/hand_over.h"

namespace millrace::engine {

// Tells the ids of the tasks that have ended.
class TellingHost final : public NoHost {
 public:
  explicit TellingHost(const Clock& clock) : store_(clock) {}
  StartDecision StartDecisionOf(const Attempt&) const override { return decision; }
  std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) override {
    return open ? open() : store_.OpenTransaction(limit);
  }
  std::optional<WallTime> StoreTime(BootTime) const override { return store_time; }
  void Ended(AttemptResult result) override {
    {
      MutexLock lock(mutex_);
      last_ = result.settlement;
    }
    landed.Push(std::uint64_t{result.settlement.key.id});
  }
  Settlement last() const {
    MutexLock lock(mutex_);
    return last_;
  }

  std::uint64_t NextLanded() {
    const auto taken = landed.Take(1, std::chrono::seconds(20));
    return taken.empty() ? 0 : taken[0];
  }

  std::function<std::unique_ptr<TaskTransaction>()> open;  // set before the first task; empty: of a store
  std::atomic<StartDecision> decision{StartDecision::Start};
  std::optional<WallTime> store_time;  // set before the first task
  HandOver<std::uint64_t> landed;      // the ids alone: an attempt keeps its host

 private:
  ScratchStore store_;
  mutable Mutex mutex_;
  Settlement last_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
