// A worker's mills, one for each shard that the configuration names, with what they share; and the worker's
// watch, which tells them what is their own, what is paused, what is configured, and when to end. It does
// what framework/worker/worker.cc and mill_set.cc do with threads.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/testing/modelled_runner.h"
#include "coordinator/testing/simulated_permits.h"
#include "framework/mill/mill.h"
#include "framework/worker/breaker_follower.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Planted bugs that show at the border of the mill.
struct MillBugs {
  bool marks_without_watching = false;   // one look in which a beat stands still is enough
  bool watches_through_outages = false;  // what was read last is told while the database is down
  bool rescues_from_the_living = false;
  bool ends_with_tasks_in_hand = false;  // a stop in good order waits for nothing
  bool never_ages = false;               // what waits gains nothing, whatever is configured
  bool limits_undivided = false;         // a rate is each worker's own as a whole
  bool hours_unheeded = false;           // no type has any
  bool exceeds_rates = false;            // a third more than a share lets
};

struct MillSettings {
  HandlerModel handlers = {};
  MillBugs bugs = {};
  std::optional<std::size_t> batch = {};  // how many tasks one claim takes; nullopt: as it is configured
};

// That of one shard: the product's mill, whose strands ask the modelled database and go on when its answers
// arrive. Not thread-safe.
class SimulatedMill {
 public:
  struct Parts {
    Timeline& timeline;
    ModelledDatabase& database;
    ModelledProcess& process;
    const MillBugs& bugs;
    std::size_t number;  // of the shard
    std::string shard;
    Mill::Shared shared;
    std::function<void()> claims;  // told of each claim that is sent
    Journal& journal;
    std::function<Micros()> aging;                       // as it is configured now
    std::function<bool(const std::string& type)> gated;  // its starts are bounded by a policy
    std::function<void()> registered;                    // told of each life that has begun
  };

  // `dead`: lives of processes on this host whose flight recorders have lost their owner.
  SimulatedMill(const Parts& parts, std::vector<std::string> dead);
  ~SimulatedMill();

  // Once.
  void Start();
  // A second scan strand, where one is asked for and it was started.
  void AddScans();
  Mill& mill();
  // Its present life in the shard; empty: none.
  std::string Incarnation() const;
  // Its strands have come to their end.
  bool Ended() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// Not thread-safe.
class SimulatedMills {
 public:
  struct Parts {
    Timeline& timeline;
    std::deque<ModelledDatabase>& databases;
    ModelledProcess& process;
    Journal& journal;
    const MillSettings& settings;
    const std::vector<std::string>& shards;
    ControlPlane& control;
    std::function<bool(const std::string& type)> runs;
    std::function<void()> claims;  // told of each claim that is sent
    RunChecks& checks;
    std::function<bool(const std::string& type)> broken;  // whom it calls fails
  };
  using Lives = std::vector<std::pair<std::size_t, std::string>>;  // by the shard's number

  SimulatedMills(Parts parts, const Lives& dead);

  // Its present lives.
  Lives Incarnations() const;
  // What it makes of the limits, by task type.
  std::map<std::string, LimitView> Limits() const { return admission_.Limits(); }
  // Claims nothing more, and gives back what has not started. Then `ended` is told: with true once all has
  // ended, with false where the stop timeout was over before.
  void Stop(std::function<void(bool)> ended);

 private:
  struct Place {
    std::unique_ptr<SimulatedMill> mill;  // null: the shard is not served
    bool retiring = false;
    bool ending = false;  // nothing of it is in hand, and its strands were asked to end
  };

  EngineConfig EngineOf(const Config& config) const;
  std::shared_ptr<const Config> Admitted() const;
  std::shared_ptr<const LimitShares> Taken(std::shared_ptr<const LimitShares> shares) const;
  void Watch();
  void FollowAll();
  bool Follow(std::size_t shard);
  void Begin(std::size_t shard);
  void EndRetired(std::size_t shard);
  void WatchDraining();
  Mill* MillOf(std::size_t shard);
  void CheckEnd(std::size_t shard);

  const Parts parts_;
  const TimelineClock clock_;
  std::shared_ptr<const Config> config_;
  LiveEngine engine_;
  Registry metrics_;
  MillCounters counters_{metrics_};
  Admission admission_{clock_};
  SoloGate gate_{clock_};
  MemoryBudget memory_;
  ModelledRunner runner_;
  SimulatedPermits permits_;
  BreakerFollower breakers_;
  std::vector<Place> places_;  // by the shard's number
  Lives dead_;                 // of shards that have not been served yet
  std::function<void(bool)> ended_;
  bool ending_ = false;
  BootTime deadline_{};
};

}  // namespace millrace::engine
