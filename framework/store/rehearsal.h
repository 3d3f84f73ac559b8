// Sends every statement of a store at least once, by a walk through the methods of its sessions: so that all
// of them can be looked at without a second copy of any text. A test compares what it sends with what the
// contract suite does: a statement that is new needs a call here.
#pragma once

#include <functional>
#include <string>

#include "framework/store/store.h"

namespace millrace::engine {

// The sessions lead into one transaction that is rolled back afterwards.
struct RehearsalStage {
  TaskStore& tasks;
  IncarnationStore& incarnations;
  TaskOperations& operations;
  PruneStore& pruning;
  SchemaStore& schema;
  OverviewStore& overview;
  AlertStore& alerts;
  ScheduleStore& schedules;
  FanOutStore& fan_outs;
  BatchStore& batches;
  PermitStore& permits;
  TableName table;   // has due tasks of the ids 1 … 400 and more, with the handlers `a` (even ids) and `b`
  std::string name;  // of incarnations and keys: nobody else's
  std::function<Status(const std::string& sql)> run;  // what only a producer or time would do
  std::function<void(int write)> refuse;              // the so-manieth write from now on finds a lock
};

// An error: the stage is not as it should be, or a statement is refused.
Status Rehearse(RehearsalStage& stage);

}  // namespace millrace::engine
