// Looks at one shard, in two steps: what has to be seen twice (beats, rows of the dead) is seen at both.
// Through the store's seam, so that it is the same for every database; it changes nothing but what
// DiagnosisOptions says.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "coordinator/doctor/facts.h"
#include "framework/store/store.h"

namespace millrace::engine::doctor {

// One thread. Blocks for as long as the store's own time-outs let it.
class ShardLook {
 public:
  // All are borrowed. `facts` says already which shard it is; one that is away is not looked at.
  ShardLook(Store& store, const Clock& clock, ShardFacts facts);

  void Begin(const DiagnosisOptions& options);
  // For how long things should go their way until Finish: zero where there is nothing to be seen twice.
  Micros Wait() const;
  ShardFacts Finish();

 private:
  using Claimers = std::map<std::pair<TableName, std::string>, std::size_t>;  // rows that run

  // That could not be looked at; said once.
  void Doubt(const std::string& what, const Error& why);
  void LookAtClock(StoreDiagnosis& diagnosis);
  // The running rows at the heads of the due groups, where those of the dead stand.
  Claimers LookAtGroups();
  bool IsLive(const std::vector<PeerBeat>& peers, const std::string& claimer) const;

  Store& store_;
  const Clock& clock_;
  ShardFacts facts_;
  std::unique_ptr<TaskStore> tasks_;
  std::unique_ptr<IncarnationStore> incarnations_;
  std::vector<PeerBeat> peers_;
  Claimers running_;
};

}  // namespace millrace::engine::doctor
