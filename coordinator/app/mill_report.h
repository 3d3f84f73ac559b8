// What a worker says at its end.
#pragma once

#include "coordinator/app/commands.h"
#include "coordinator/app/mill_progress.h"
#include "framework/worker/worker.h"

namespace millrace {

// Good order is 0; the others, which it explains, are for a supervisor to start the command again.
ExitCode ExitCodeOf(WorkerEnd end);

// `all`: what became of every task of the shards; an error where they can't be read.
void PrintSummary(const MillFlags& flags, const Result<MillSummary>& all, const WorkerTotals& now,
                  Micros took, WorkerEnd end);

}  // namespace millrace
