// A lane: the bounded queue of one task type and the threads that run its handler.
//
// A thread whose handler ignores its time limit is given up: its attempt ends as failed, another thread takes
// its place, and it is left to itself until its handler returns. What such a thread still uses outlives the
// lane, so a process with lost threads must end without destroying it (see Worker). A thread that hangs in a
// shard whose beat is late has a stand-in until it is back, so that a dead database slows no other shard.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/worker/attempt_runner.h"
#include "framework/worker/lane_queue.h"
#include "framework/worker/lane_thread.h"

namespace millrace::engine {

// What all lanes of a worker share.
struct LaneParts {
  const Clock& clock;
  FlightRecorder& recorder;
};

// Thread-safe.
class Lane {
 public:
  Lane(LaneParts parts, std::string type, LaneSetup setup);
  ~Lane();

  const std::string& type() const { return type_; }

  // For every call that begins from now on. Threads are started, or end once their present call is over.
  void Follow(LaneSetup setup);
  // Unavailable where the system gave fewer threads than there should be: the lane goes on with those that it
  // has, and Watch tries again.
  Status Threads() const;

  // How many more tasks of this shard may be claimed for it. Zero until half of the shard's part of the queue
  // is free, so that claims stay large.
  std::size_t Room(const AttemptHost& host) const;
  // Takes claimed tasks; never refuses, since its callers ask for room first.
  void Push(std::vector<AttemptPtr> attempts);
  std::size_t Queued() const;
  std::size_t Running() const;
  struct Load {
    std::size_t threads = 0;  // that are not lost
    std::size_t busy = 0;     // of those, that have tasks
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
  // Its type's gate may have starts again, other than by time.
  void StartsAgain();
  // Takes all that is queued and not started. The caller ends those attempts.
  std::vector<AttemptPtr> TakeQueued();
  // Gives back every attempt that still runs, whatever its handler does: its threads count as lost.
  std::size_t AbandonRunning(const std::string& why);
  std::size_t Lost() const;
  // How long what runs is expected to take yet; zero: nothing runs.
  Micros BusyFor(BootTime now) const;
  // Threads end once their present call is over. Join waits for those that are not lost.
  void Close();
  void Join();

 private:
  void AdjustThreads(BootTime now) MILLRACE_REQUIRES(mutex_);
  void TellThreads();
  void Run(LaneThread& thread);
  // What the thread is to run next, with starts where they need any; empty: nothing now.
  std::vector<AttemptPtr> TakeNext(LaneThread& thread) MILLRACE_REQUIRES(mutex_);
  // Waits a while for tasks, and gives them to the thread with what they go by; null: there are none.
  LaneSetupPtr Take(LaneThread& thread);
  void Release(LaneThread& thread) MILLRACE_REQUIRES(mutex_);
  void TakeBackKept(LaneThread& thread, BootTime now) MILLRACE_REQUIRES(mutex_);
  bool Ends(LaneThread& thread);
  void RunTaken(LaneThread& thread, const LaneSetupPtr& setup);
  void RunPart(LaneThread& thread, const LaneSetupPtr& setup, CallPart part);
  void NoteRan(LaneThread& thread) MILLRACE_REQUIRES(mutex_);
  void RunCall(LaneThread& thread, const LaneSetupPtr& setup, const CallPart& part);
  bool ReadyToStart(const AttemptPtr& attempt, const LaneSetup& setup);
  void EndOverdue(LaneThread::Abandoned overdue);

  const LaneParts parts_;
  const std::string type_;

  mutable Mutex mutex_;
  CondVar filled_;
  LaneSetupPtr setup_ MILLRACE_GUARDED_BY(mutex_);
  LaneQueue queue_ MILLRACE_GUARDED_BY(mutex_);
  LanePace pace_ MILLRACE_GUARDED_BY(mutex_);
  BootTime starts_from_ MILLRACE_GUARDED_BY(mutex_){};  // before then what is queued gets none
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
