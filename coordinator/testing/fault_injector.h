// Does to a simulated cluster what the world does to a real one, drawn from the timeline's seed; each fault
// ends by itself.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "coordinator/testing/fault_times.h"
#include "coordinator/testing/simulated_operator.h"
#include "coordinator/testing/simulated_worker.h"

namespace millrace::engine {

// A watch that was lost is made good when everything is read again.
inline constexpr Micros kReadAgain = std::chrono::seconds(10);

class FaultInjector {
 public:
  struct Producer {
    std::function<void(std::size_t shard)> some;  // adds some tasks at once
    // Adds one with a key, which is cancelled after a while unless that is zero.
    std::function<void(std::size_t shard, const std::string& handler, const std::string& key,
                       Micros patience)>
        keyed;
  };

  FaultInjector(SimulatedCluster cluster, std::deque<SimulatedWorker>& workers, FaultTimes& times,
                SimulatedOperator& people, Producer produce)
      : cluster_(cluster),
        workers_(workers),
        times_(times),
        operator_(people),
        produce_(std::move(produce)) {}

  // `count` faults at random times from now on, within `span`.
  void Schedule(std::size_t count, Micros span);
  // Everything works from now on.
  void Heal();

  std::size_t Faults() const { return faults_; }
  // Whether the ensemble works, and keeps up.
  bool EnsembleHealthy() const { return cluster_.ensemble.HasQuorum() && lagging_ == 0; }
  // Until when somebody was not told what changed.
  BootTime NewsLostUntil() const { return news_lost_; }

 private:
  void Strike();
  void StrikeProcess(SimulatedWorker& worker);
  void StrikeDatabaseLink(SimulatedWorker& worker);
  void StrikeTreeLink(SimulatedWorker& worker);
  void Mend(TreeLinks& links);
  void Flap(Micros rest, const std::function<void(bool)>& open);
  void StrikeDatabase();
  void FailOver(SimulatedWorker& worker);
  void StrikeEnsemble();
  // Aimed at what is decided in a moment: a life that wakes up just when it is marked dead, a claim or a
  // change of permits that is under way just then, a key that is entered when its task has ended, and a
  // leader whose write is on its way when another takes its place.
  void StrikeLease(SimulatedWorker& worker);
  void StrikeWrite(SimulatedWorker& worker);
  void StopAfterWrite(SimulatedWorker& worker, Micros& next, int looks);
  void StrikeKeys();
  void StrikeLeader();
  void StrikeMany();
  static void SetDatabases(SimulatedWorker& worker, const DatabaseLink& link);

  const SimulatedCluster cluster_;
  std::deque<SimulatedWorker>& workers_;
  FaultTimes& times_;
  SimulatedOperator& operator_;
  const Producer produce_;
  std::size_t faults_ = 0;
  int lagging_ = 0;
  BootTime news_lost_{};
};

}  // namespace millrace::engine
