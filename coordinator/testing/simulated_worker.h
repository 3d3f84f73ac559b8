// A worker of a simulated cluster: a modelled process that runs the real member and leader machines, and the
// steps of the mill. It can die and be started again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/leader/leader.h"
#include "coordinator/member/cluster_control_plane.h"
#include "coordinator/member/member.h"
#include "coordinator/testing/planted_bugs.h"
#include "coordinator/testing/simulated_mill.h"
#include "coordinator/testing/simulated_work.h"
#include "coordinator/testing/tree_driver.h"

namespace millrace::engine {

struct SimulatedCluster {
  Timeline& timeline;
  ModelledEnsemble& ensemble;
  ModelledDatabase& database;
  Journal& journal;
  const MillSettings& mill;
  const CalmOptions& calm;
  const SimulatedWork& work;
  std::shared_ptr<const TableCatalog> catalog;
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

  ModelledProcess& process() { return process_; }
  const std::string& name() const { return process_.name; }
  // It runs, nothing holds it up, and it can reach the ensemble.
  bool Healthy() const;
  // It leads, as far as it knows.
  bool Leads() const { return life_ && life_->leader.Leading(); }
  // And has nothing left to do.
  bool LeadsSettled() const;
  // Of its process; empty: it is down.
  std::string Incarnation() const { return life_ ? life_->incarnation : ""; }
  std::int64_t Session() const { return life_ ? life_->driver.client().Session() : 0; }

 private:
  struct Life {
    Life(const SimulatedCluster& cluster, ModelledProcess& process, std::string unique,
         std::vector<std::string> buried);

    const std::string incarnation;
    ClusterControlPlane control;
    Member member;
    Leader leader;
    SpoiledMachine spoiled;
    SpoiledMachine spoiled_member;
    TreeDriver driver;
    SimulatedMill mill;
  };

  void End();

  const SimulatedCluster cluster_;
  ModelledProcess process_;
  std::vector<std::string> buried_;  // lives in the shard whose recorders have lost their owner
  std::unique_ptr<Life> life_;
};

}  // namespace millrace::engine
