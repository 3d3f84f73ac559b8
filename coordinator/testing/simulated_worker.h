// A worker of a simulated cluster: a modelled process that runs the real member and leader machines, and the
// product's mills. It can die, or end in good order, and be started again.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/leader/leader.h"
#include "coordinator/member/breaker_keeper.h"
#include "coordinator/member/cluster_control_plane.h"
#include "coordinator/member/limit_teller.h"
#include "coordinator/member/member.h"
#include "coordinator/testing/planted_bugs.h"
#include "coordinator/testing/simulated_mills.h"
#include "coordinator/testing/simulated_upkeep.h"
#include "coordinator/testing/simulated_work.h"
#include "coordinator/testing/tree_driver.h"

namespace millrace::engine {

struct SimulatedCluster {
  Timeline& timeline;
  ModelledEnsemble& ensemble;
  std::deque<ModelledDatabase>& databases;  // one for each shard
  Journal& journal;
  const MillSettings& mill;
  const CalmOptions& calm;
  const SimulatedWork& work;
  RunChecks& runs;
  PlantedBug bug = PlantedBug::None;
};

class SimulatedWorker {
 public:
  SimulatedWorker(const SimulatedCluster& cluster, const std::string& name);
  SimulatedWorker(const SimulatedWorker&) = delete;

  void Start();
  void Crash();
  // It says farewell to the ensemble, and ends before it could give back what runs.
  void Leave();
  // In good order: it leaves the cluster, finishes what runs, gives back what does not, and ends. It may take
  // a while.
  void Stop();
  // In the way that a number says which was drawn: 0 Leave, 1 Stop, else Crash.
  void EndBy(std::uint64_t way);

  ModelledProcess& process() { return process_; }
  const std::string& name() const { return process_.name; }
  // It runs, nothing holds it up, and it can reach the ensemble.
  bool Healthy() const;
  // It leads, as far as it knows.
  bool Leads() const { return life_ && !life_->stopping && life_->leader.Leading(); }
  // And has nothing left to do.
  bool LeadsSettled() const;
  // Of its process; empty: it is down.
  std::string Incarnation() const { return life_ ? life_->incarnation : ""; }
  // The configuration that it goes by; null: it is down, or has not heard of the cluster yet.
  std::shared_ptr<const Config> Configuration() const;
  std::int64_t Session() const { return life_ ? life_->driver.client().Session() : 0; }

 private:
  struct Life {
    Life(const SimulatedCluster& cluster, ModelledProcess& process, std::string unique,
         const SimulatedMills::Lives& buried);
    // The session may be over by now.
    bool Lost() const;
    void CheckClaim() const;
    std::string Status();
    void Publish(const MemberView& view);

    const SimulatedCluster& cluster;
    ModelledProcess& process;

    const std::string incarnation;
    ClusterControlPlane control;
    Member member;
    Leader leader;
    SpoiledMachine spoiled;
    SpoiledMachine spoiled_member;
    BreakerKeeper breakers;
    LimitTeller limits;
    TreeDriver driver;
    SimulatedUpkeep upkeep;
    SimulatedMills mills;
    bool stopping = false;
    bool stands_for_election = false;
    BootTime stops_since{};  // where ZooKeeper is lost: the configuration says so
  };

  void End();

  const SimulatedCluster cluster_;
  ModelledProcess process_;
  SimulatedMills::Lives buried_;  // whose recorders have lost their owner
  std::unique_ptr<Life> life_;
  bool start_again_ = false;  // once it has stopped
};

}  // namespace millrace::engine
