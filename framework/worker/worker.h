// A worker: the mill over one or more shards, with its lanes and plugins.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/metrics/registry.h"
#include "framework/mill/admission.h"
#include "framework/mill/idle_span.h"
#include "framework/plugin/plugin_set.h"
#include "framework/worker/control_plane.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

struct WorkerOptions {
  std::string id;                            // stable name; the incarnation's id begins with it
  std::string state_dir;                     // flight recorders; exists
  std::optional<std::uint32_t> concurrency;  // threads of every lane, instead of the configuration's
  // End once nothing of ours runs and nothing is due that can run here. What a limit, a breaker or the brake
  // holds back is waited for, with a warning after five seconds in which nothing has ended; what is paused or
  // outside its hours is not, and is named at the end.
  bool until_idle = false;
  std::string load_balance;      // what it owns without a coordinator, for its peers to see; empty: all
  std::string doorbell_address;  // where it hears datagrams of producers; empty: nowhere
  // Configured types that no plugin here has are other workers' business; otherwise they are an error at the
  // start, and a refusal later.
  bool partial = false;
  // Asked with `until_idle`, again and again while nothing is left to do: false where something may come of
  // what it did. Never waits. Null: nothing does.
  std::function<bool(const IdleSpan&)> may_end = nullptr;
  // Called once it has ended, perhaps twice, on a thread of its own: it must not wait.
  std::function<void()> ended = [] {};
};

struct WorkerTotals {
  std::uint64_t claimed = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t cancelled = 0;  // cancelled or skipped
  std::uint64_t failed = 0;     // went to the failed pool
  std::uint64_t retried = 0;    // failed attempts that will be tried again
  std::uint64_t held = 0;       // failed attempts whose tasks wait for somebody
  std::uint64_t returned = 0;   // attempts that were snoozed or given back
  std::uint64_t refused = 0;    // settles that came too late: the attempt was no longer ours
  std::uint64_t adopted = 0;    // claims whose reply was lost, found again in the table
  std::uint64_t rescued = 0;    // tasks that dead workers left running, set waiting by this one
  std::uint64_t running = 0;    // in handlers now
  std::uint64_t queued = 0;     // claimed and not started
};

enum class WorkerEnd {
  Idle,     // until_idle came true
  Stopped,  // as asked, all in good order
  GaveUp,   // the stop deadline passed with handlers still running; their tasks were given back or abandoned
  Replace,  // too many threads were lost to handlers that ignore their limit: start a new process
};

// Thread-safe after construction. Start and Stop may be called twice, and Stop without Start.
class Worker {
 public:
  struct Parts {
    const Clock& clock;
    ControlPlane& control;
    const PluginSet& plugins;
    Registry& metrics;
  };

  Worker(Parts parts, WorkerOptions options);
  ~Worker();  // stops at once

  // Opens the handlers (Invalid with what is wrong), takes the flight recorder (Conflict: the id is in use on
  // this host), charges what a dead predecessor left, registers in every shard. A shard that is away is
  // registered as soon as it returns; Start does not wait for it. From then on the worker follows its shards,
  // slices, pauses and configuration: what changes there holds here within half a second, and at once where
  // that is told.
  engine::Status Start();
  // Claims nothing more, finishes or gives back within the stop timeout. Returns at once.
  void Stop();
  // Gives back now what has not finished. Returns at once.
  void StopNow();
  // It has begun to end, as it was asked to or by itself, and claims nothing more.
  bool Ending() const;
  // Blocks until it has ended, at most `limit`; nullopt: it still runs.
  std::optional<WorkerEnd> WaitFor(Micros limit);
  WorkerTotals Totals() const;
  WorkerStatus Status() const;
  // Of this configuration; nullopt: it is not the one that the worker follows, or not yet.
  std::optional<HandlerRefusals> Refused(const std::shared_ptr<const Config>& config) const;
  // The limits of task types, and what this worker makes of them; by type.
  std::map<std::string, LimitView> Limits() const;
  // Which of its threads should have gone on for longer than `patience`, and has not: `scan of shard main`,
  // `watch`; empty: none. A thread that waits for a database, or runs a handler, is not meant.
  std::string StandsStill(Micros patience) const;
  // Once it has ended: some of its threads still run, in handlers that ignore their limit or in a database
  // that does not answer. They use what the worker was made of, so the process must end by std::_Exit.
  bool LeftThreads() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace millrace::engine
