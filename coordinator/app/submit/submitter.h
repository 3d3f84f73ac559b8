// Adds the rows of an input, and counts what became of them.
#pragma once

#include <poll.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/input/input_rows.h"
#include "framework/store/store.h"
#include "framework/task/slice_choice.h"

namespace millrace::engine {

// A row whose key another task has, with other params: it was not added, and is not there already either.
struct OtherParams {
  std::size_t line = 0;
  std::string key;
  std::string holder;  // table/id
};

struct SubmitTotals {
  std::uint64_t added = 0;
  std::uint64_t added_to_batch = 0;  // of these, those of SubmitTarget::batch
  std::uint64_t duplicates = 0;      // those with other params included
  std::uint64_t differing = 0;       // those alone
  std::uint64_t bad = 0;
  bool without_key = false;          // of a good row at least
  bool stopped = false;              // by SubmitCalls::stop: the rows behind last_line were not sent
  std::size_t last_line = 0;         // of the rows that were dealt with
  std::vector<std::uint64_t> ids;    // of the first tasks added, at most kNamesKept
  std::set<std::uint32_t> slices;    // of all tasks added
  std::vector<std::string> holders;  // table/id of the first duplicates' keys, at most kNamesKept
  std::vector<std::pair<std::size_t, std::string>> problems;  // line and reason, at most kProblemsKept
  std::vector<OtherParams> others;                            // at most kProblemsKept
  std::string batch;                                          // that was made or joined; empty: none
  std::string batch_state;                                    // open, closed, none
  bool keep_tasks = false;                                    // whether the next is filled
  std::vector<TaskKey> tasks;  // all that were added, and the holders of the duplicates' keys
};
inline constexpr std::size_t kNamesKept = 10;
inline constexpr std::size_t kProblemsKept = 1000;

struct SubmitCalls {
  std::function<void(const SubmitTotals&)> progress;  // after each batch
  std::function<bool()> stop = [] { return false; };  // asked before each: true ends the submission in order
  // Before so many rows of SubmitTarget::batch are sent; a negative number afterwards, for those that were
  // not added. An error ends the submission, and nothing that was to be sent with them is.
  std::function<Status(std::int64_t rows)> announce = [](std::int64_t) { return Status(); };
  // The same for all its rows of one transaction, before the end; and once more with a negative number where
  // that came to nothing for certain.
  std::function<Status(TaskTransaction& transaction, std::int64_t rows)> announce_within =
      [](TaskTransaction&, std::int64_t) { return Status(); };
};

// Where the rows go.
struct SubmitTarget {
  TableName table;
  SliceRuns slices;
  std::string batch = {};  // whose rows are announced; a row may name another
};

// A lock wait or deadlock had no effect, so the same may be sent again after a moment.
template <class Send>
auto SendPatiently(const Send& send) {
  constexpr int kTries = 5;
  for (int attempt = 1;; ++attempt) {
    auto sent = send();
    if (sent || sent.error().code != ErrorCode::Conflict || attempt == kTries) return sent;
    poll(nullptr, 0, 20 * attempt);
  }
}

// In batches of kRowsOfTransaction, each in a transaction of its own. A row that the database refuses is
// found by halving its batch, and counted as bad. Lock waits and deadlocks are tried again. On Unavailable
// and Unknown the batches before are in, and the message says how many; `totals` too. Where it is stopped the
// batches before are in as well.
Status SubmitBatches(TaskOperations& operations, SubmitTarget& target, InputRows& rows, SubmitTotals& totals,
                     const SubmitCalls& calls);
inline constexpr std::size_t kRowsOfTransaction = 4 * kMaxBatchRows;

// All rows in one transaction: where one is bad, has a key that stands with other params, or it is stopped,
// nothing is added, and `totals.added` is 0.
Status SubmitAtOnce(TaskTransaction& transaction, SubmitTarget& target, InputRows& rows, SubmitTotals& totals,
                    const SubmitCalls& calls);

}  // namespace millrace::engine
