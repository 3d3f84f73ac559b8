// A lane: a bounded queue of tasks and the threads that run their handlers. By default it has one task type;
// where types share one (`engine.queues`), none has more threads at once than its `concurrency`, and none has
// all of them.
//
// A thread whose handler ignores its time limit is given up: its attempt ends as failed, another thread takes
// its place, and it is left to itself until its handler returns. What such a thread still uses outlives the
// lane, so a process with lost threads must end without destroying it (see Worker). A thread that hangs in a
// shard whose beat is late has a stand-in until it is back, so that a dead database slows no other shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/worker/attempt_runner.h"
#include "framework/worker/lane_queue.h"
#include "framework/worker/lane_size.h"
#include "framework/worker/lane_thread.h"

namespace millrace::engine {

// What all lanes of a worker share.
struct LaneParts {
  const Clock& clock;
  FlightRecorder& recorder;
};

// How a lane treats all its types.
struct LaneRules {
  QueuesConfig queues;
  Micros aging{};
  // In all, where types share the lane; nullopt: as many as its types may have together.
  std::optional<std::size_t> threads;
  // Of so many threads that one type may have, where this is one of so many types: with fewer in all than the
  // types may have together none has the last quarter of them. What comes of another type finds a thread,
  // whatever the first one's tasks take.
  std::size_t MostOf(std::size_t of_type, std::size_t types) const {
    if (!threads || types < 2 || *threads < 2) return of_type;
    return std::min(of_type, *threads - std::max<std::size_t>(*threads / 4, 1));
  }
  bool operator==(const LaneRules&) const = default;
};

// Thread-safe.
class Lane {
 public:
  Lane(LaneParts parts, std::string name, LaneRules rules = {});
  ~Lane();

  const std::string& name() const { return name_; }

  // For every call of this type that begins from now on. Threads are started, or end once their present call
  // is over. A type that it did not have is its own from now on.
  void Follow(const std::string& type, LaneSetup setup);
  void Follow(const LaneRules& rules);
  // So many threads of lanes that types were moved from still have tasks of theirs: here there are so many
  // fewer.
  void FollowElsewhere(const std::map<std::string, std::size_t>& threads);
  // Unavailable where the system gave fewer threads than there should be: the lane goes on with those that it
  // has, and Watch tries again.
  Status Threads() const;

  // How much more of this type and shard may be claimed for it (Runner::Room).
  LaneRoom Room(const std::string& type, const AttemptHost& host, std::uint32_t urgency);
  // Takes claimed tasks of a type that it has, since its callers ask for room first; what there is no room
  // for may go back (WhenFull::GiveBack). False: it is closed, and the caller has them still.
  bool Push(const std::string& type, std::vector<AttemptPtr>& attempts);
  std::size_t Queued() const;
  std::size_t Running() const;
  struct Load {
    std::size_t threads = 0;                  // that are not lost
    std::map<std::string, std::size_t> busy;  // of those, that have tasks, by type
    std::vector<QueueStatus> queues;
    std::set<std::string> full;  // types of which due tasks have found no room
  };
  Load CurrentLoad() const;

  // The watchdog's round: gives up calls that are past their limit and its grace, takes back what waits for
  // a thread whose call takes longer than a moment, and sees to it that there are as many threads as there
  // should be.
  void Watch(BootTime now);
  // Takes what is queued and not to be started (see StartDecision); but a task whose slice has moved stays
  // where it starts within `patience`, since nobody else could start it sooner. The caller ends those
  // attempts.
  std::vector<AttemptPtr> TakeUnwanted(Micros patience);
  // The gate of this type may have starts again, other than by time.
  void StartsAgain(const std::string& type);
  // Takes all that is queued and not started. The caller ends those attempts.
  std::vector<AttemptPtr> TakeQueued();
  // Gives back every attempt that still runs, whatever its handler does: its threads count as lost.
  std::size_t AbandonRunning(const std::string& why);
  std::size_t Lost() const;
  // How long what runs is expected to take yet; zero: nothing runs.
  Micros BusyFor(BootTime now) const;
  // Threads end once their present call is over. Join waits for those that are not lost.
  void Close();
  // It is closed, nothing is queued, and the last of its threads is home.
  bool Over() const;
  void Join();

 private:
  // What the lane knows of a type.
  struct Type : LaneType {
    LaneSetupPtr setup;
    std::size_t hanging = 0;    // threads, as of the last Watch
    std::size_t elsewhere = 0;  // threads of former lanes that still have its tasks
  };

  Type& TypeOf(const Attempt& attempt) MILLRACE_REQUIRES(mutex_) { return types_.at(attempt.task.handler); }
  LaneSize::Bounds SizeBounds() const MILLRACE_REQUIRES(mutex_);
  std::size_t MostOf(const Type& type) const MILLRACE_REQUIRES(mutex_);
  std::size_t Busy() const MILLRACE_REQUIRES(mutex_);
  void AdjustThreads(BootTime now) MILLRACE_REQUIRES(mutex_);
  // For what has just been queued.
  void Grow() MILLRACE_REQUIRES(mutex_);
  void StartThreads() MILLRACE_REQUIRES(mutex_);
  void TellThreads();
  void Run(LaneThread& thread);
  // By the clock of the shard's due times, as far as it is known.
  Aging AgingOf(const AttemptHost& host) const MILLRACE_REQUIRES(mutex_);
  static std::size_t MostAtOnce(const Type& type, std::size_t waiting);
  // What the thread is to run next, with starts where they need any: the one place where that is chosen.
  // Empty: nothing now.
  std::vector<AttemptPtr> TakeNext(LaneThread& thread) MILLRACE_REQUIRES(mutex_);
  // Until there may be something that nobody tells of.
  Micros UntilStarts(BootTime now) const MILLRACE_REQUIRES(mutex_);
  // Waits a while for tasks, and gives them to the thread with what they go by; null: there are none.
  LaneSetupPtr Take(LaneThread& thread);
  void Release(LaneThread& thread) MILLRACE_REQUIRES(mutex_);
  void TakeBackKept(LaneThread& thread, BootTime now) MILLRACE_REQUIRES(mutex_);
  void PutBack(std::vector<AttemptPtr> attempts) MILLRACE_REQUIRES(mutex_);
  bool Ends(LaneThread& thread);
  void RunTaken(LaneThread& thread, const LaneSetupPtr& setup);
  void RunPart(LaneThread& thread, const LaneSetupPtr& setup, CallPart part);
  void NoteRan(LaneThread& thread) MILLRACE_REQUIRES(mutex_);
  void RunCall(LaneThread& thread, const LaneSetupPtr& setup, const CallPart& part, BootTime began);
  void EndOverdue(LaneThread::Abandoned overdue);

  const LaneParts parts_;
  const std::string name_;

  mutable Mutex mutex_;
  CondVar filled_;
  LaneRules rules_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, Type> types_ MILLRACE_GUARDED_BY(mutex_);  // none is taken out: others point to it
  LaneQueue queue_ MILLRACE_GUARDED_BY(mutex_);
  LaneSize size_ MILLRACE_GUARDED_BY(mutex_);
  std::list<LaneThread> threads_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t started_ MILLRACE_GUARDED_BY(mutex_) = 0;  // threads so far
  std::size_t active_ MILLRACE_GUARDED_BY(mutex_) = 0;   // threads that are neither lost nor home
  std::size_t wanted_ MILLRACE_GUARDED_BY(mutex_) = 0;   // how many should be
  std::size_t running_ MILLRACE_GUARDED_BY(mutex_) = 0;  // tasks
  std::size_t lost_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  Status last_start_ MILLRACE_GUARDED_BY(mutex_);  // what came of the last thread that was to be started
  bool told_ MILLRACE_GUARDED_BY(mutex_) = false;  // that one could not be
};

}  // namespace millrace::engine
