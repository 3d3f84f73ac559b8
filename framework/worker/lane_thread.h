// One thread's place in a lane: the call that it makes, what it took and has not started, and its sessions.
//
// The watchdog and the thread agree under its own mutex on who ends the call.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/threads/thread.h"
#include "framework/worker/attempt_runner.h"
#include "framework/worker/flight_recorder.h"
#include "framework/worker/lane_queue.h"

namespace millrace::engine {

// Calls that are over and that the lane's pace does not know of yet.
struct Ran {
  std::size_t calls = 0;
  std::size_t tasks = 0;
  Micros took{0};
};

// Where the present call of a thread is.
enum class CallState : std::uint8_t {
  Idle,        // there is none, or it has not begun
  Running,     // in its handler: a watchdog may give it up
  Concluding,  // the handler has returned: what it said is weighed, and on its way to be settled
  Ending,      // its own transaction's COMMIT or ROLLBACK is under way
};

// Thread-safe where it says so; the rest is for the thread itself.
class LaneThread final : public CallWatch {
 public:
  LaneThread(const Clock& clock, FlightRecorder& recorder)
      : clock_(clock), recorder_(recorder), runner_(clock, *this) {}

  Status Start(const std::string& name, std::function<void()> body) {
    return thread_.Start(name, std::move(body));
  }

  // Runs one call on tasks of one shard. What failed as a whole is kept, to be run in parts.
  void Call(const LaneSetupPtr& setup, const CallPart& part);
  // After its calls: whoever has `setup` lets the last one go, with nothing locked, since the end of a
  // handler that was replaced is foreign code.
  void ForgetSetup();
  // Sessions of shards that are served no more.
  void CloseEndedSessions();

  // What it took and has not started; a watchdog that gives the thread up hands it to others.
  void Keep(std::vector<AttemptPtr> attempts);
  void KeepFirst(AttemptPtr attempt);
  AttemptPtr Next();
  // A part of a call that failed as a whole; before what else is kept.
  std::optional<CallPart> NextPart();

  struct Abandoned {
    LaneSetupPtr setup;  // null: nothing was given up
    std::vector<AttemptPtr> running;
    std::vector<AttemptPtr> waiting;
  };
  // Thread-safe. Ends the call in the thread's place if it is past its limit and grace, or in any case where
  // `whatever`: from now on the thread is lost.
  Abandoned GiveUp(BootTime now, bool whatever);
  // Thread-safe. Its call is in a shard whose beat is late, or its COMMIT takes its time: it may hang there
  // for as long as the database.
  bool HangsAt(BootTime now) const;
  // Thread-safe. Of a handler that runs for longer than a moment, what the thread took beside it: others may
  // be free to run that.
  std::vector<AttemptPtr> TakeKept(BootTime now);
  // Thread-safe. How long its call is expected to take yet, where one task takes `each`; zero: it makes none.
  Micros BusyFor(BootTime now, Micros each) const;

  Taken taken;  // guarded by the lane's mutex
  Ran ran;

  bool lost() const { return lost_.load(); }
  // Its thread has ended, or is about to without touching anything: the place may go.
  bool home() const { return home_.load(); }
  void SetHome();
  Thread& handle() { return thread_; }

  void Begin(const std::vector<AttemptPtr>& attempts, BootTime now, BootTime deadline) override;
  bool Finish(BootTime ended) override;
  void EndsTransaction() override;
  void Save(Attempt& attempt, std::string progress) override;

 private:
  struct Session {
    std::shared_ptr<AttemptHost> host;
    Micros limit;
    std::unique_ptr<TaskTransaction> transaction;  // last: ends before the store that its host keeps
  };
  TaskTransaction& SessionFor(const Attempt& attempt, Micros limit);
  void KeepParts(std::vector<CallPart> parts);

  void NoteRan(BootTime now) MILLRACE_REQUIRES(mutex_);

  const Clock& clock_;
  FlightRecorder& recorder_;
  AttemptRunner runner_;
  std::map<const AttemptHost*, Session> sessions_;
  std::vector<std::size_t> slots_;       // in the recorder; the first is kept from call to call
  const LaneSetupPtr* calls_ = nullptr;  // by what the present call goes
  std::vector<AttemptPtr> ended_;        // room to let them go outside the lock
  bool has_parts_ = false;               // or had
  std::atomic<bool> lost_{false};
  std::atomic<bool> home_{false};

  mutable Mutex mutex_;
  LaneSetupPtr setup_ MILLRACE_GUARDED_BY(mutex_);                 // of the present calls
  std::vector<AttemptPtr> attempts_ MILLRACE_GUARDED_BY(mutex_);   // of the present call, until its end
  CallState state_ MILLRACE_GUARDED_BY(mutex_) = CallState::Idle;  // of those
  BootTime since_ MILLRACE_GUARDED_BY(mutex_){};                   // it runs, or its COMMIT
  std::deque<CallPart> parts_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<AttemptPtr> waiting_ MILLRACE_GUARDED_BY(mutex_);
  BootTime deadline_ MILLRACE_GUARDED_BY(mutex_){};
  Thread thread_;  // last: ends before what it uses
};

}  // namespace millrace::engine
