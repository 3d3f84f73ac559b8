// A lane: the bounded queue of one task type and the threads that run its handler.
//
// A thread whose handler ignores its time limit is given up: its attempt ends as failed, another thread takes
// its place, and it is left to itself until its handler returns. What such a thread still uses outlives the
// lane, so a process with lost threads must end without destroying it (see Worker).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/exec/thread.h"
#include "framework/plugin/handler_instance.h"
#include "framework/worker/attempt.h"
#include "framework/worker/flight.h"
#include "framework/worker/flight_recorder.h"
#include "framework/worker/lane_pace.h"

namespace millrace {

// What all lanes of a worker share.
struct LaneParts {
  const Clock& clock;
  FlightRecorder& recorder;
  std::function<void()> room;  // called when a lane has room again; must not block
};

// Thread-safe.
class Lane {
 public:
  Lane(LaneParts parts, std::string type, HandlerConfig config, std::unique_ptr<HandlerInstance> handler,
       std::uint32_t threads);
  ~Lane();

  const std::string& type() const { return type_; }

  // How many more tasks may be claimed for it. Zero until half its queue is free, so that claims stay large.
  std::size_t Room() const;
  // Takes claimed tasks; never refuses, since its callers ask for room first.
  void Push(std::vector<FlightPtr> flights);
  std::size_t Queued() const;
  std::size_t Running() const;

  // Gives up calls that are past their limit and its grace; returns how many threads were lost by it.
  std::size_t GiveUpOverdue(BootTime now);
  // Takes what is queued and not started. The caller ends those attempts.
  std::vector<FlightPtr> TakeQueued();
  // Gives back every attempt that still runs, whatever its handler does: its threads count as lost.
  std::size_t AbandonRunning(const std::string& why);
  std::size_t Lost() const;
  // Threads end once their present call is over. Join waits for those that are not lost.
  void Close();
  void Join();

 private:
  class Station;  // one thread's place

  void AddStation();
  std::vector<FlightPtr> Take();
  void Run(Station& station);
  void RunTaken(Station& station);
  void RunCall(Station& station, std::vector<FlightPtr> flights);
  bool ReadyToStart(const FlightPtr& flight);

  const LaneParts parts_;
  const std::string type_;
  const HandlerConfig config_;
  const std::unique_ptr<HandlerInstance> handler_;
  const std::size_t threads_;

  mutable Mutex mutex_;
  CondVar filled_;
  std::deque<FlightPtr> queue_ MILLRACE_GUARDED_BY(mutex_);
  LanePace pace_ MILLRACE_GUARDED_BY(mutex_);
  std::list<Station> stations_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t running_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::size_t lost_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool room_wanted_ MILLRACE_GUARDED_BY(mutex_) = false;  // somebody was told that there is none
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
};

// A handler that ignores its stop token keeps its thread for so long before it is given up.
Micros GraceAfter(Micros timeout);

}  // namespace millrace
