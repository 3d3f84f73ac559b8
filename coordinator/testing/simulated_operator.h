// What people do to a cluster: they drain workers and announce restarts, press the red button, change the
// configuration (and with it shards and slices), and delete nodes by mistake. And what has to come of a
// change of configuration, whoever made it.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "coordinator/coordination/config_layers.h"
#include "coordinator/testing/fault_times.h"
#include "coordinator/testing/simulated_worker.h"

namespace millrace::engine {

// Not thread-safe.
class SimulatedOperator {
 public:
  SimulatedOperator(SimulatedCluster cluster, std::deque<SimulatedWorker>& workers, FaultTimes& times);

  // The configuration of the beginning.
  void SetUp();
  // Drains it, or restarts it as announced.
  void TakeOut(SimulatedWorker& worker);
  void Drain(SimulatedWorker& worker);
  void Pause();
  void ChangeConfiguration();
  // One or two of the nodes that always exist, with all below them; or everything.
  void DeleteNodes();
  // Takes back all that is not for ever.
  void TidyUp();

  // Looks at the nodes: what they say is the truth from now on, unless it is nonsense.
  void LookAtConfiguration();
  bool Serves(std::size_t shard) const;
  // Each worker goes by the configuration that the nodes have, at most `bound` after it could know of it. One
  // that is refused leaves the last good one in force.
  void CheckFollowed(bool possible, Micros bound);
  // The first worker that does not. Empty: none.
  std::string FirstBehind() const;

  std::size_t Changes() const { return changes_; }
  // The configuration that the nodes have, or had last.
  std::shared_ptr<const Config> Truth() const { return truth_.Effective(); }

 private:
  // Restarts it, as announced.
  void Restart(SimulatedWorker& worker);
  void Put(const std::string& part, const std::string& text);
  void Believe(const std::string& part, const std::string& text);
  std::string EngineText();
  // How a handler is treated beside others; behind its other keys.
  std::string OrderText();
  // Its rate is so often halved.
  std::string PolicyText(const std::string& handler, unsigned halved);
  std::string HandlersText() const;
  std::string ShardsText(std::size_t count, std::uint32_t slices) const;
  void Delete(const std::string& top);
  void ServeAll();
  bool Follows(const SimulatedWorker& worker) const;

  const SimulatedCluster cluster_;
  std::deque<SimulatedWorker>& workers_;
  FaultTimes& times_;
  ConfigLayers truth_;
  std::vector<std::shared_ptr<const Config>> good_;  // all that have been the truth
  std::map<std::string, std::string> texts_;         // by part: what was last set
  struct TypeText {
    std::string fixed;
    std::string policy;  // drawn anew now and then
  };
  std::map<std::string, TypeText> types_;
  std::map<std::string, BootTime> emptied_;  // parts that say nothing any more: since when
  std::size_t changes_ = 0;
  std::set<std::string> followed_;  // lives of processes that have gone by the good text before a bad one
  std::map<std::string, BootTime> behind_;  // by life: since when
};

}  // namespace millrace::engine
