// The places where pauses and the hand of a breaker are written: what a command asks and tells of them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/cluster/cluster_pause.h"
#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/command.h"

namespace millrace::engine {

// Every place where a pause may stand: the cluster's tree, and each shard for workers that ZooKeeper does not
// reach. Whoever is away is named at once, and remembered.
class PausePlaces {
 public:
  // The cluster says which shards there are; where it can't be reached, the store that is named.
  static Result<PausePlaces> Find(const CommonFlags& flags);

  // What there is, as far as the check of these names needs it.
  PauseTargets Known(const CommonFlags& flags, const std::vector<std::string>& names);
  // For each name, whether it was changed anywhere.
  Result<std::set<std::string>> Set(const std::vector<std::string>& names, bool on,
                                    const std::string& reason = {});
  // What is paused anywhere now.
  std::set<std::string> Paused();
  // All could be told.
  bool complete() const { return complete_; }

 private:
  void FindShards();
  bool Reach(Micros limit);
  std::optional<std::set<std::string>> TypesOfCluster();
  std::optional<std::set<std::string>> KnownWorkers();
  std::optional<std::set<std::string>> TypesAtHand(const CommonFlags& flags);
  std::optional<std::set<std::string>> KnownTypes(const CommonFlags& flags);
  void SetInShards(const std::vector<std::string>& names, bool on, const std::string& reason,
                   std::set<std::string>& changed);
  Status SetInTree(const std::vector<std::string>& names, bool on, const std::string& reason,
                   std::set<std::string>& changed);
  void Complain(const std::string& what);

  ClusterConnection cluster_;  // without a client until it is reached
  Error unreached_{};          // why it could not be, when it was tried last
  Shards shards_;
  bool shards_known_ = false;  // not where the named store stands in for the cluster
  bool complete_ = true;
};

}  // namespace millrace::engine
