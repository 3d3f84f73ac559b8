// Adds the rows of an input, and counts what became of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coordinator/app/input/input_rows.h"
#include "framework/store/store.h"
#include "framework/task/slice_choice.h"

namespace millrace::engine {

struct SubmitTotals {
  std::uint64_t added = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t bad = 0;
  std::vector<std::uint64_t> ids;    // of the first tasks added, at most kNamesKept
  std::vector<std::string> holders;  // table/id of the first duplicates' keys, at most kNamesKept
  std::vector<std::pair<std::size_t, std::string>> problems;  // line and reason, at most kProblemsKept
  bool keep_tasks = false;                                    // whether the next is filled
  std::vector<TaskKey> tasks;  // all that were added, and the holders of the duplicates' keys
};
inline constexpr std::size_t kNamesKept = 10;
inline constexpr std::size_t kProblemsKept = 1000;

using SubmitProgress = std::function<void(const SubmitTotals&)>;

// Where the rows go.
struct SubmitTarget {
  TableName table;
  SliceRuns slices;
};

// In batches of kRowsOfTransaction, each in a transaction of its own. A row that the database refuses is
// found by halving its batch, and counted as bad. Lock waits and deadlocks are tried again. On Unavailable
// and Unknown the batches before are in, and the message says how many; `totals` too.
Status SubmitBatches(TaskOperations& operations, SubmitTarget& target, InputRows& rows, SubmitTotals& totals,
                     const SubmitProgress& progress);
inline constexpr std::size_t kRowsOfTransaction = 4 * kMaxBatchRows;

// All rows in one transaction: where one is bad nothing is added, and `totals.added` is 0.
Status SubmitAtOnce(TaskTransaction& transaction, SubmitTarget& target, InputRows& rows, SubmitTotals& totals,
                    const SubmitProgress& progress);

}  // namespace millrace::engine
