// What a worker says at its end.
#pragma once

#include "coordinator/app/commands.h"
#include "coordinator/app/mill_summary.h"
#include "coordinator/app/shards.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

// Good order is 0; the others, which it explains, are for a supervisor to start the command again.
ExitCode ExitCodeOf(WorkerEnd end);

// What the shards hold now. What is left is counted for two seconds at most. Fails for a shard that the
// worker could not reach last: nobody waits for it beyond the stop deadline.
Result<MillSummary> ReadSummary(const Shards& shards, const WorkerStatus& status);

// `all`: what became of every task of the shards; an error where they can't be read.
void PrintSummary(const MillFlags& flags, const Result<MillSummary>& all, const WorkerTotals& now,
                  Micros took, WorkerEnd end);

}  // namespace millrace::engine
