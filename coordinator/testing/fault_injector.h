// Does to a simulated cluster what the world does to a real one, drawn from the timeline's seed; each fault
// ends by itself.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "coordinator/testing/simulated_worker.h"

namespace millrace::engine {

class FaultInjector {
 public:
  FaultInjector(SimulatedCluster cluster, std::deque<SimulatedWorker>& workers)
      : cluster_(cluster), workers_(workers) {}

  // `count` faults at random times from now on, within `span`.
  void Schedule(std::size_t count, Micros span);
  // Everything works from now on.
  void Heal();

  std::size_t Faults() const { return faults_; }
  // Whether the ensemble works, and keeps up.
  bool EnsembleHealthy() const { return cluster_.ensemble.HasQuorum() && lagging_ == 0; }

 private:
  void Strike();
  void StrikeProcess(SimulatedWorker& worker);
  void StrikeDatabaseLink(SimulatedWorker& worker);
  void StrikeTreeLink(SimulatedWorker& worker);
  void StrikeDatabase();
  void StrikeEnsemble();
  void Operate(SimulatedWorker& worker);
  void Drain(SimulatedWorker& worker);
  void Undrain(const std::string& node);
  // Aimed at what is decided in a moment: a life that wakes up just when it is marked dead, and a leader
  // whose write is on its way when another takes its place.
  void StrikeLease(SimulatedWorker& worker);
  void StrikeLeader();
  void StrikeNodes();
  void StrikeMany();
  void Pause();
  void Delete(const std::string& top);
  // Ends the fault after a while, unless everything was healed meanwhile.
  void EndAfter(Micros least, Micros most, std::function<void()> end);
  Micros Between(Micros least, Micros most);
  bool OneIn(std::uint64_t n) { return cluster_.timeline.random().Below(n) == 0; }
  void Note(const std::string& line) { cluster_.journal.Trace("FAULT " + line); }

  const SimulatedCluster cluster_;
  std::deque<SimulatedWorker>& workers_;
  std::size_t faults_ = 0;
  int lagging_ = 0;
  bool healed_ = false;
};

}  // namespace millrace::engine
