// A cluster's nodes, read once, as people ask about them; and what the leader would make of them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/command/cluster_client.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/tree.h"
#include "coordinator/leader/plan.h"
#include "coordinator/member/breaker_keeper.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

struct ClusterSnapshot {
  EpochDocument epoch;
  std::vector<std::string> candidates;             // who would lead next; ids, in no order
  std::map<std::string, WorkerDocument> workers;   // present, by id
  std::map<std::string, AssignDocument> assigned;  // by worker id
  // By worker id: an object, as the worker wrote it; what is in it may be of any type.
  std::map<std::string, nlohmann::ordered_json> statuses;
  std::map<std::string, WallTime> signs;  // by worker id: when it last wrote its status, by ZooKeeper's clock
  std::map<std::string, LimitsDocument> limits;  // by worker id: what operators limit it to
  std::set<std::string> draining;
  std::set<std::string> expected;
  std::set<std::string> left;  // stopped in good order; what they owned is not yet another's
  std::vector<std::string> pauses;
  // By the same names: who paused it, since when and why, as far as its node says so.
  std::map<std::string, PauseRecord> pause_stamps;
  std::map<std::string, BreakerDocument> breakers;  // that are open, by task type
  std::optional<WallTime> planned_at;  // when the leader wrote its plan last, by ZooKeeper's clock
  std::vector<std::string> missing;    // of the nodes that always exist
  std::vector<MadeAgain> made_again;   // since somebody had deleted them
  PlanDocument plan;
  nlohmann::ordered_json plan_json = nlohmann::ordered_json::object();  // as the leader wrote it
  std::vector<std::string> unreadable;                                  // `workers/x: …`

  // That are assigned to this worker.
  std::size_t SliceCount(const std::string& id) const;
};

// NotFound, with the nearest known one, for an id that neither a worker nor an assignment has.
Status CheckWorkers(const ClusterSnapshot& snapshot, const std::vector<std::string>& ids);

// What stands in a status, or in another text that anybody may have written: what is not there, or is
// something else, says nothing (null, an empty object, an empty text, 0). A number is brought into 0 … 1e9.
const nlohmann::ordered_json& PartOf(const nlohmann::ordered_json& json, const std::string& key);
const nlohmann::ordered_json& ObjectPart(const nlohmann::ordered_json& json, const std::string& key);
std::string TextPart(const nlohmann::ordered_json& json, const std::string& key);
double NumberPart(const nlohmann::ordered_json& json, const std::string& key);
// The texts in a list, and a number that means something by being there, in 0 … 1e15.
std::vector<std::string> TextsPart(const nlohmann::ordered_json& json, const std::string& key);
std::optional<double> NumberIfThere(const nlohmann::ordered_json& json, const std::string& key);

// Pure. Who paused it, when and why: whoever set the node by a plain client left what he liked.
PauseRecord ReadPauseStamp(const std::string& name, const TreeNode& node);

// Pure. Of the open breakers those of types that no worker has a breaker of: they hold nothing back, and the
// leader removes them.
void DropEndedBreakers(ClusterSnapshot& snapshot);

// What can't be read is named in `unreadable`; the rest is there.
Result<ClusterSnapshot> ReadSnapshot(ClusterClient& client);

// The tables as the shards tell them. One that does not answer is named to the user, and what is assigned of
// it is planned.
Result<TableCatalog> ReadCatalog(ClusterConnection& cluster);

// What the leader would decide on, were it quiet: draining workers and those of `without` give up their
// slices. Without the tables.
PlanState PlanStateOf(const ClusterSnapshot& snapshot, const std::set<std::string>& without,
                      const Config& config);

// The name of the slice in which a task of this type stands: with the group that the plan has for the type.
std::string SliceOf(const ClusterSnapshot& snapshot, const std::string& shard, const TableName& table,
                    std::uint32_t number, const std::string& handler);

// The worker whose assignment has the slice of this name; empty: nobody has it.
std::string OwnerOf(const ClusterSnapshot& snapshot, const std::string& slice);

// `main/tasks/0-31,40`, with `@group` behind where they have one: a text for each table and group, in the
// order of their first slices. What is no name of a slice stands by itself.
std::vector<std::string> SliceRanges(const std::vector<std::string>& slices);

}  // namespace millrace::engine
