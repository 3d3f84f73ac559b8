// millrace task why: why a task is not running, in sentences; each with a code that programs read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/task/task_lookup.h"
#include "framework/config/config.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

// What the cluster of the task's store says of it.
struct ClusterFacts {
  std::string slice = {};                   // in which the task stands, by its name
  std::string unreached = {};               // why it could not be asked; empty: it was
  std::string owner = {};                   // the worker that has it by the plan; empty: nobody
  bool owner_there = false;                 // and is there
  std::string cut_off = {};                 // why it can't work in the shard; empty: it can, as far as known
  std::string table_rests = {};             // why it claims nothing of the table; empty: it does
  bool draining = false;                    // and gives up what it has
  std::vector<std::string> drained = {};    // workers that are there and may have nothing
  bool all_drained = false;                 // there is no other
  std::optional<WallTime> planned_at = {};  // when the leader wrote its plan last
  std::string breaker = {};                 // why that of its type is open; empty: it is not
  std::optional<WallTime> band_next = {};   // when its band may be scanned again, as its owner says
  double scan_speed = 1;                    // of its shard by its owner; below 1: the brake holds
  bool limit_holds = false;                 // some worker has claimed more of its type than may start
  bool limit_unshared = false;              // no worker has a share of its type's limit
  bool queue_full = false;                  // its owner has no room for more of its type
  bool type_runs = true;                    // some worker that is there runs the task's type
};

// An incarnation in the shard that is not marked dead.
struct WhyWorker {
  std::string incarnation;
  std::string worker = {};
  std::string slices = {};  // load-balance numbers that it was given: 0-31,40; empty: all, or a plan's
};

// Who holds one of the permits that its type needs.
struct WhyPermit {
  std::string task;  // shard/table/id; empty: about to be claimed
  std::string worker = {};
  std::optional<WallTime> since = {};
};

struct WhyFacts {
  std::string shard;
  TaskRecord record;
  WallTime now;
  std::string key_holder;  // of a waiting one: the task that has its key, where it is another
  std::vector<WhyWorker> workers;
  std::vector<PauseRecord> pauses;  // by whatever route
  AheadCount ahead;                 // of a task that is due
  std::optional<bool> beats;        // of a task that runs: its worker's beat moves; nullopt: not looked at
  std::optional<ActRecord> act;     // who held or cancelled it, as far as the audit tells
  // The handlers of the plugins at hand; nullopt: no plugin folder is at hand.
  std::optional<std::vector<std::string>> plugin_handlers;
  // Why its handler does not open: by the word of its slice's owner, or without a cluster where it is tried
  // here; empty: it opens, or nobody knows.
  std::string cannot_open;
  bool has_config = false;              // a configuration was read, which may be its workers'
  std::vector<WhyPermit> permits;       // of its type that the living hold
  std::string permits_held_up;          // why none can be had, where it needs one; empty: they can
  bool permits_locked = false;          // its owner finds rows of its type locked by another session
  HandlerConfig config;                 // over what its handler brings
  std::optional<ClusterFacts> cluster;  // nullopt: none is named
};

// One thing that is to be said of a task. Its code is one of:
//   waiting   expired · not_due · retry_tier · paused · breaker · outside_hours · duplicate · no_worker ·
//             no_handler · cannot_open · slice_unowned · owner_gone · owner_cut_off ·
//             table_rests · draining (all workers) · permits_held_up · permits · limit · behind · next_round
//             · next_band · queue_full · due · braked
//   running   running · limit · claimer_silent · claimer_dead · stop_asked
//   ended     succeeded · cancelled · skipped · duplicate · expired · failed
//   else      held, and the facts behind: owner · draining · workers · expires · no_plugin · cluster_away ·
//             attempts · attempt · how_to_retry
struct Reason {
  std::string code;
  std::string text;
  bool operator==(const Reason&) const = default;
};

// Among the workers, those that are not marked dead.
bool IsAlive(const WhyFacts& facts, const std::string& incarnation);

// What of this is asked by more than one file.
bool ClusterAsked(const WhyFacts& facts);
std::string At(const WhyFacts& facts, WallTime time);
// That it waits for the limit of its type, where that holds tasks back; empty: it does not.
std::string WaitsForLimit(const WhyFacts& facts);

// Of a task that is due, what lies between it and its start: its type's limits and permits, its place in the
// order, the brake. Nothing where `out` says already that nothing of its type starts. task_why_order.cc.
void ExplainOrder(const WhyFacts& facts, std::vector<Reason>& out);
// The one that decides first, then the facts behind it. Never empty. Pure.
std::vector<Reason> ExplainTask(const WhyFacts& facts);
// The same of a task by its name, as the store, the cluster and the plugins at hand have it now.
Result<std::vector<Reason>> ExplainTask(TaskShards& open, const CommonFlags& common, const TaskName& name);

}  // namespace millrace::engine
