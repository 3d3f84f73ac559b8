// The run stage in this process: the lanes of a worker, one for each task type, or one that all types share
// (`engine.queues`). A type's handler is opened when it is first needed, and follows the configuration from
// then on.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/mill/attempt.h"
#include "framework/plugin/plugin_set.h"
#include "framework/threads/signal.h"
#include "framework/worker/lane.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// When a handler that refused to open is asked again: a second later, then after twice as long each time, a
// minute at most. What it lacked, a file or a server, may come without a word. Pure.
class OpenRetry {
 public:
  static constexpr Micros kFirst = std::chrono::seconds(1);
  static constexpr Micros kLongest = std::chrono::seconds(60);

  bool Due(BootTime now) const { return at_ && now >= *at_; }
  bool Waits() const { return at_.has_value(); }
  void Refused(BootTime now) {
    pause_ = at_ ? std::min(2 * pause_, kLongest) : kFirst;
    at_ = now + pause_;
  }

 private:
  Micros pause_ = kFirst;
  std::optional<BootTime> at_;  // none: it did not refuse, or will always do
};

// How long whoever watches the lanes may wait until it looks again. Pure.
class WatchPace {
 public:
  static constexpr Micros kTick = std::chrono::milliseconds(50);
  // Once there was nothing to watch for a second.
  static constexpr Micros kAtRest = std::chrono::milliseconds(500);
  static constexpr int kTicksToRest = 20;

  // `any`: there is something to watch, or somebody has ended the last wait.
  Micros Next(bool any) {
    quiet_ticks_ = any ? 0 : quiet_ticks_ + 1;
    return quiet_ticks_ > kTicksToRest ? kAtRest : kTick;
  }

 private:
  int quiet_ticks_ = 0;
};

// Thread-safe.
class LaneSet final : public Runner {
 public:
  struct Rules {
    std::optional<std::uint32_t> concurrency = {};  // threads of every lane, instead of the configuration's
    bool partial = false;  // a configured type that no plugin here has is no error and no refusal
  };
  LaneSet(LaneParts parts, const PluginSet& plugins, std::shared_ptr<const Config> config, Rules rules);

  // Opens the lanes of all types that the configuration names. Invalid with what is wrong; Unavailable where
  // the system does not give them their threads.
  Status OpenConfigured();
  // Takes a new configuration: numbers hold for every call that begins from now on; where options, secrets or
  // `uses` changed the handler is opened anew. One that refuses keeps the former ones, and the refusal is
  // told until a configuration that it takes, or a retry. May wait for handlers to open; one caller at a
  // time.
  void Follow(std::shared_ptr<const Config> config);
  // Asks those that refused again, where their time has come (see OpenRetry): a secret's file may have come
  // since. Once a minute it reads all secrets anew, and opens a handler anew whose secret has changed. True:
  // it has asked some. May wait likewise; the caller of Follow.
  bool LookAgain();
  // The configuration with the threads that each type may have here as its concurrency: what the command
  // line, the handler's code and a lane that types share say, too.
  std::shared_ptr<const Config> WithThreads(const Config& config) const;
  // What of the configuration in force was refused, and why, by task type.
  HandlerRefusals Refusals() const;
  // Of these the types that can't be run here, since their handler does not open.
  HandlerRefusals Unopened() const;

  // The lane of a type; null if no plugin has its handler, or as long as the handler refuses to open (logged
  // once).
  std::shared_ptr<Lane> For(const std::string& type);
  // With those that are left: their queues have moved, and what they run ends there.
  std::vector<std::shared_ptr<Lane>> All() const;
  // The gate of this type may have starts again, other than by time. Opens nothing.
  void StartsAgain(const std::string& type) const;
  // The watchdog's round over all lanes (Lane::Watch). One caller at a time.
  void Watch(BootTime now);
  // The next attempts that are taken notify it, once: for a watchdog that rests while nothing is in hand.
  // Null: nobody rests.
  void WakeOnTake(Signal* wake) { rests_.store(wake); }
  struct Loads {
    std::map<std::string, std::size_t> threads;  // that are not lost, by lane
    std::map<std::string, std::size_t> busy;     // by task type
    std::vector<QueueStatus> queues;             // where types share a lane
    std::set<std::string> full;                  // types whose lane has no room for what is due
  };
  Loads CurrentLoads() const;

  bool Runs(const std::string& type) override { return For(type) != nullptr; }
  LaneRoom Room(const std::string& type, const AttemptHost& shard, std::uint32_t urgency) override;
  Micros BusyFor() override;
  bool Take(const std::string& type, std::vector<AttemptPtr>& attempts) override;

 private:
  // What a handler was opened with.
  struct Opening {
    std::string uses;
    std::string options;
    Secrets secrets;
    bool operator==(const Opening&) const = default;
  };
  // A type as it is served now. No lane: its handler could not be opened.
  struct Entry {
    std::shared_ptr<Lane> lane;
    Opening opening;
    std::shared_ptr<HandlerInstance> handler;
    std::string refusal = {};  // of the configuration in force; empty: none
    OpenRetry retry = {};
  };

  Result<Opening> Wanted(const std::string& type, const HandlerConfig& config) const;
  Result<std::shared_ptr<HandlerInstance>> Open(const std::string& type, const Opening& opening) const;
  Result<Entry> NewEntry(const std::string& type, const Config& config) const;
  LaneRules RulesOf(const Config& config) const;
  // The lane that a type is to have.
  std::shared_ptr<Lane> NewLane(const std::string& type, const Config& config) const
      MILLRACE_REQUIRES(mutex_);
  // Types share a lane now and did not, or the other way round: each gets its new one, with what is queued.
  void Regroup(const Config& config);
  void MoveQueued(Lane& from);
  void TellElsewhere() MILLRACE_REQUIRES(mutex_);
  // All but those that were left for others.
  std::vector<std::shared_ptr<Lane>> InUse() const MILLRACE_REQUIRES(mutex_);
  // Why a type can't be served; empty where that is nobody's fault.
  std::string RefusalOf(const Error& error, bool configured) const;
  // When it is asked again after this error. A handler that no plugin has will not come: they are loaded
  // once.
  OpenRetry RetryAfter(const Error& error, OpenRetry retry) const;
  LaneSetup SetupOf(const HandlerConfig& config, std::shared_ptr<HandlerInstance> handler) const;
  std::shared_ptr<const Config> Current() const;
  std::optional<Entry> Known(const std::string& type) const;
  void Refresh(const std::string& type, const Config& config, bool again = false);
  // Opens the handler anew where what it is opened with has changed; what it refuses it notes.
  void Reopen(const std::string& type, const HandlerConfig& config, Entry& entry) const;

  const LaneParts parts_;
  const PluginSet& plugins_;
  const Rules rules_;
  mutable Mutex mutex_;
  std::shared_ptr<const Config> config_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::string, Entry> entries_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<Lane> shared_ MILLRACE_GUARDED_BY(mutex_);  // null: each type has its own
  std::vector<std::shared_ptr<Lane>> left_ MILLRACE_GUARDED_BY(mutex_);
  BootTime secrets_read_;  // of the caller of Follow alone
  std::atomic<Signal*> rests_{nullptr};
};

}  // namespace millrace::engine
