// The settle strands: end attempts of one shard in batches. Whatever has gathered while the last batch was
// written goes into the next, so that batches grow with the load and a lone task waits for nobody.
//
// What has just ended, what somebody else has locked, and what nobody knows the outcome of stand in queues of
// their own, and each has its statement in every round: a thousand locked rows hold up nothing fresh.
//
// There are two strands, so that the log's sync of one batch is no pause for the next. The first does all of
// it. The second takes a batch of what is fresh, and nothing else, where half a batch has gathered beside a
// round of the first, or where that takes its time: a lock wait, a look at what is unknown. Once a statement
// of either has failed the shard is left to the first alone until it answers. No task is ever in both: its id
// leaves the in-flight set, and so may be claimed again, once the outcome of its settle is known.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/mill/attempt.h"
#include "framework/mill/live_engine.h"
#include "framework/mill/resting_tables.h"
#include "framework/mill/step.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// What it asks of the shard; see TaskStore.
class SettlePort : public StrandPort {
 public:
  virtual Reply<Result<SettleReport>> Settle(const std::string& incarnation,
                                             std::span<const Settlement> batch) = 0;
  virtual Reply<Result<std::vector<bool>>> StillRunning(const std::string& incarnation,
                                                        std::span<const Settlement> batch) = 0;
};

// What has ended in one shard and is not settled yet, and which of the two strands takes what of it, when.
// Time comes from outside.
//
// Thread-safe; what is said to be the first or the second strand's is that strand's alone.
class SettleQueues {
 public:
  enum class From {
    Fresh,
    Unknown,  // their statement, or their own COMMIT, was lost
    Aside,    // locked by others, or refused by the database; by their times
  };
  struct Wakes {
    bool first = false;
    bool second = false;
  };
  using Results = std::vector<AttemptResult>;

  // So many tasks are on their way through the run stage; each lands, or is gone.
  void Coming(std::int64_t tasks) { coming_.fetch_add(tasks, std::memory_order_relaxed); }
  void Gone(std::int64_t tasks) { coming_.fetch_sub(tasks, std::memory_order_relaxed); }
  // Nothing: the queues are closed, and the caller has it still.
  [[nodiscard]] std::optional<Wakes> Land(AttemptResult& result);

  // From the head: as many of one life as are due, `most` of them.
  Results Take(From from, BootTime now, std::size_t most);
  // To the head.
  void PutBack(From from, Results results);
  // To the end of those that are aside; without a time: to their head.
  void SetAside(AttemptResult result, std::optional<BootTime> due);

  // The first strand's. It is in the shard from BeginRound to EndRound; `answered`: no statement failed.
  void BeginRound(BootTime now);
  void EndRound(bool answered);
  // Whether it lets more gather before a round: tasks are on their way, less than `most` are here, and some
  // have landed since it asked with this `seen`, which is zero at first.
  bool WaitsForMore(std::size_t& seen, std::size_t most);
  // How long it rests; nullopt: there is something to settle.
  std::optional<Micros> RestOfFirst(BootTime now);

  // The second strand's: what it is to settle now; nothing: it rests for `rest`.
  Results TakeBeside(BootTime now, std::size_t most, Micros& rest);
  // Its statement failed: the shard is the first strand's until that has an answer.
  void SecondFailed();

  // Which strands have something to do that they wait for. True once for each.
  [[nodiscard]] Wakes TakeWakes();

  // Takes what is queued; nothing lands from now on. May be repeated: a strand puts back what it had.
  [[nodiscard]] Results Close();

 private:
  struct Waiting {
    AttemptResult result;
    BootTime due{};
  };

  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  // Fresh or Unknown.
  Results& Of(From from) MILLRACE_REQUIRES(mutex_) { return from == From::Fresh ? fresh_ : unknown_; }
  Results TakeAside(BootTime now, std::size_t most) MILLRACE_REQUIRES(mutex_);
  Wakes Wanted() MILLRACE_REQUIRES(mutex_);

  std::atomic<std::int64_t> coming_{0};
  Mutex mutex_;
  Results fresh_ MILLRACE_GUARDED_BY(mutex_);
  Results unknown_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Waiting> aside_ MILLRACE_GUARDED_BY(mutex_);
  // From how many results on a strand is to be woken.
  std::size_t first_wants_ MILLRACE_GUARDED_BY(mutex_) = 1;
  std::size_t second_wants_ MILLRACE_GUARDED_BY(mutex_) = 1;
  bool gathering_ MILLRACE_GUARDED_BY(mutex_) = false;
  BootTime rests_until_ MILLRACE_GUARDED_BY(mutex_){};         // the first strand, from its rest on
  std::optional<BootTime> round_ MILLRACE_GUARDED_BY(mutex_);  // since when the first strand is in the shard
  bool away_ MILLRACE_GUARDED_BY(mutex_) = false;  // a statement failed, and the first has no answer since
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
};

// What was written of an attempt. `verdict` Refused: it was no longer ours; otherwise Settled.
struct SettledAttempt {
  Attempt* attempt;
  const Settlement* settlement;
  SettleVerdict verdict;
};

// Run and RunSecond are the strands; the rest is thread-safe.
class Settler {
 public:
  // Told by a strand that what was written of these attempts is known: their ids may leave the in-flight set.
  using Known = std::function<void(std::span<const SettledAttempt>)>;
  // Told by any thread that this one will not be settled: the strands have ended before it could be.
  using Dropped = std::function<void(Attempt&)>;
  struct Ports {
    SettlePort& first;
    SettlePort& second;
  };

  Settler(const Clock& clock, Ports ports, const LiveEngine& engine, Known known, Dropped dropped)
      : clock_(clock),
        ports_(ports),
        engine_(engine),
        known_(std::move(known)),
        dropped_(std::move(dropped)) {}

  // Until Stop. What is still queued then, or ends from then on, is dropped.
  Step<> Run();
  // Likewise, beside Run; settling goes on without it.
  Step<> RunSecond();
  void Stop();

  // So many tasks are on their way through the run stage; each ends with Ended, or is Gone. While there are
  // some, what has ended may wait a few milliseconds for more of them (see Gather).
  void Coming(std::int64_t tasks) { queues_.Coming(tasks); }
  void Gone(std::int64_t tasks) { queues_.Gone(tasks); }
  // Never waits: how much can be under way is bounded where tasks are claimed.
  void Ended(AttemptResult&& result);
  // The database refuses what is to be written of this table's tasks. More of them would only fill memory,
  // and run once more each, should this process die.
  bool Refuses(const TableName& table) const { return resting_.Rests(table, clock_); }
  // Of those for some time by now, and why.
  std::map<TableName, std::string> LastingRefusals() const { return resting_.Lasting(clock_.Now()); }

 private:
  using From = SettleQueues::From;
  // Results of one life. Their settlements stand apart, as the store takes them.
  struct Batch {
    explicit Batch(SettleQueues::Results taken);
    // Whole again; the batch has it no more.
    AttemptResult Take(std::size_t index);
    SettleQueues::Results TakeAll();

    SettleQueues::Results results;
    std::vector<Settlement> settlements;  // parallel
  };

  // Lets results gather that come in quick succession, so that a burst's first are no commit of their own.
  Step<> Gather();
  // One statement for each queue; false: the shard does not answer.
  Step<bool> Round();
  Step<bool> Verify();
  Step<bool> SettleFrom(From from);
  // False: the statement failed, and the results are back in the queues.
  Step<bool> Settle(SettlePort& port, From from, SettleQueues::Results results);
  Step<> PauseFor(Micros pause);
  void MendBroken(AttemptResult result, const std::string& error);
  void NoteTrouble(std::size_t tasks, const Error& error);
  void NoteRefused(std::size_t tasks, const std::string& why);
  void Wake(SettleQueues::Wakes wakes);
  void Close();

  const Clock& clock_;
  const Ports ports_;
  const LiveEngine& engine_;
  const Known known_;
  const Dropped dropped_;
  SettleQueues queues_;
  RestingTables resting_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> reported_{false};  // the present trouble was logged
  std::atomic<BootTime> next_word_{};  // of what one table refuses
};

}  // namespace millrace::engine
