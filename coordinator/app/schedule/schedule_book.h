// The schedules that are in force, read with what stands of them in their shards.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/schedule/schedule_report.h"

namespace millrace::engine {

// Of one shard that was prepared; `ready` says whether that went well. What has ended is read where `config`
// has a fan-out.
ShardScheduleFacts ReadShardSchedules(Shard& shard, const Status& ready, const Config& config);

// One thread.
class ScheduleBook {
 public:
  // Of the cluster that flags and environment name; without one of the file of --config. Touches no shard.
  static Result<ScheduleBook> Open(const CommonFlags& flags);

  // What is in force.
  const Config& config() const { return *config_; }
  // Why the newest text of the part is not in force; empty: it is.
  const std::string& refusal() const { return refusal_; }
  const Settings& settings() const { return cluster_.settings; }
  // nullptr: there is no cluster.
  ClusterConnection* cluster() { return cluster_.client ? &cluster_ : nullptr; }
  // Of the workers that are there, or else of the plugins at hand.
  const KnownHandlers& handlers() const { return handlers_; }

  // All, by name. Reads the shards.
  std::vector<ScheduleFacts> Read();
  // The one of that name. NotFound, with the nearest name, where there is none.
  Result<ScheduleFacts> ReadOne(const std::string& name);
  // NotFound, with the nearest name.
  Status CheckThere(const std::string& name) const;
  // Where the tasks of a schedule go: its shard, open and prepared, and the table there. Invalid, with the
  // nearest name, where there is no such shard or table.
  Result<std::pair<Shard*, TableName>> PlaceOf(const ScheduleConfig& schedule);
  // Ends the fan-outs of a schedule that is configured, or was; returns how many they were.
  Result<std::uint64_t> StopFanOuts(const std::string& name);
  // The shards that did not tell, as of the last Read or stop, and why.
  const std::map<std::string, Error>& away() const { return away_; }

 private:
  ClusterConnection cluster_;
  std::shared_ptr<const Config> config_;
  std::string refusal_;
  KnownHandlers handlers_;
  Shards shards_;
  std::map<std::string, Error> away_;
};

}  // namespace millrace::engine
