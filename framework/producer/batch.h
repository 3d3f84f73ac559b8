// A caller's tasks as the store takes them, and what became of them as the caller reads it. Pure, but for the
// slices that are drawn.
#pragma once

#include <millrace/producer.h>

#include <span>
#include <vector>

#include "framework/base/random.h"
#include "framework/base/result.h"
#include "framework/store/task_operations.h"

namespace millrace::producer {

// The table by name; `otherwise` where none is named.
engine::Result<engine::TableName> ParseTable(const std::string& name, engine::TableName otherwise);

// Invalid for more than kMostTasks, a priority or delay out of range.
engine::Result<std::vector<engine::NewTask>> ToStore(std::span<const NewTask> tasks);

// Whether slices are to be chosen, for which their number has to be known; elsewhere the table draws them.
bool ChoosesSlices(std::span<const NewTask> tasks, Slices slices);
// Chooses those of `placed`, which are ToStore(tasks). `count` is the table's number of slices.
void ChooseSlices(std::span<const NewTask> tasks, Slices slices, std::uint32_t count, engine::Random random,
                  std::span<engine::NewTask> placed);

Error FromStore(const engine::Error& error);
Report FromStore(engine::SubmitReport report);
// The only task of a report.
Result<SubmittedTask> Single(Result<Report> report);

}  // namespace millrace::producer
