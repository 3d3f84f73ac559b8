#include "coordinator/app/submit/submitter.h"

#include <algorithm>

#include "coordinator/app/input/json_row.h"

namespace millrace::engine {
namespace {

struct Batch {
  std::vector<NewTask> tasks;
  std::vector<std::size_t> lines;
};

void NoteBad(SubmitTotals& totals, std::size_t line, const std::string& why) {
  ++totals.bad;
  if (totals.problems.size() < kProblemsKept) totals.problems.emplace_back(line, why);
}

void NoteOther(SubmitTotals& totals, std::size_t line, const std::string& key, const std::string& holder) {
  ++totals.differing;
  if (totals.others.size() < kProblemsKept) totals.others.push_back({line, key, holder});
}

void NoteReport(SubmitTotals& totals, const SubmitTarget& target, std::span<const NewTask> tasks,
                std::span<const std::size_t> lines, const SubmitReport& report) {
  totals.added += report.added;
  totals.duplicates += report.ids.size() - report.added;
  for (std::size_t i = 0; i < report.ids.size(); ++i) {
    const std::string& standing = report.standing[i];
    if (!standing.empty() && !SaysTheSame(standing, tasks[i].params))
      NoteOther(totals, lines[i], tasks[i].biz_key, report.duplicates[i]);
    const bool added = report.ids[i] != 0;
    if (added && tasks[i].batch == target.batch) ++totals.added_to_batch;
    if (added) totals.slices.insert(*tasks[i].slice);
    if (added && totals.ids.size() < kNamesKept) totals.ids.push_back(report.ids[i]);
    if (!added && totals.holders.size() < kNamesKept) totals.holders.push_back(report.duplicates[i]);
    if (!totals.keep_tasks) continue;
    if (added) {
      totals.tasks.push_back({target.table, report.ids[i]});
    } else if (const auto holder = ParseTaskName(report.duplicates[i], {.shard = "here", .key = {}})) {
      totals.tasks.push_back(holder->key);
    }
  }
}

// Nothing was added after all.
void ForgetAdded(SubmitTotals& totals) {
  totals.added = totals.added_to_batch = totals.duplicates = totals.last_line = 0;
  totals.ids.clear();
  totals.slices.clear();
  totals.holders.clear();
  totals.tasks.clear();
}

// The next rows that are good, at most kRowsOfTransaction; empty at the end. `bad` is called with the first
// that is not.
Batch Collect(InputRows& rows, SliceRuns& slices, SubmitTotals& totals,
              const std::function<void()>& bad = nullptr) {
  Batch batch;
  while (batch.tasks.size() < kRowsOfTransaction) {
    auto row = rows.Next();
    if (!row) break;
    if (!row->task) {
      NoteBad(totals, row->line, row->task.error().message);
      if (bad && totals.bad == 1) bad();
      continue;
    }
    totals.without_key = totals.without_key || row->task->biz_key.empty();
    row->task->slice = slices.Next();
    batch.tasks.push_back(std::move(*row->task));
    batch.lines.push_back(row->line);
  }
  return batch;
}

Status SubmitSpan(TaskOperations& operations, const SubmitTarget& target, std::span<const NewTask> tasks,
                  std::span<const std::size_t> lines, SubmitTotals& totals) {
  auto report = SendPatiently([&] { return operations.Submit(target.table, tasks); });
  if (report) {
    NoteReport(totals, target, tasks, lines, *report);
    return {};
  }
  if (report.error().code != ErrorCode::Invalid) return Fail(report.error());
  if (tasks.size() == 1) {
    NoteBad(totals, lines[0], report.error().message);
    return {};
  }
  const std::size_t half = tasks.size() / 2;
  BOOST_OUTCOME_TRYV(SubmitSpan(operations, target, tasks.first(half), lines.first(half), totals));
  return SubmitSpan(operations, target, tasks.subspan(half), lines.subspan(half), totals);
}

// Those that the batch of the target will count.
std::int64_t RowsToAnnounce(const SubmitTarget& target, const Batch& batch) {
  return std::count_if(batch.tasks.begin(), batch.tasks.end(),
                       [&](const NewTask& task) { return task.batch == target.batch; });
}

// What can't be taken back now makes the announced number too high, which holds up nothing for long.
void TakeBack(const SubmitCalls& calls, std::int64_t rows) {
  if (rows > 0) (void)calls.announce(-rows);
}

Error Interrupted(Error error, const SubmitTotals& totals, const Batch& batch) {
  error.message += "; " + std::to_string(totals.added) + " tasks were added before";
  if (totals.last_line > 0) error.message += ", to line " + std::to_string(totals.last_line);
  if (error.code == ErrorCode::Unknown) {
    error.message += ", and those of lines " + std::to_string(batch.lines.front()) + " to " +
                     std::to_string(batch.lines.back()) + " may be in or not";
  }
  error.message += ": with keys it is safe to submit the same again";
  return error;
}

}  // namespace

Status SubmitBatches(TaskOperations& operations, SubmitTarget& target, InputRows& rows, SubmitTotals& totals,
                     const SubmitCalls& calls) {
  while (true) {
    const Batch batch = Collect(rows, target.slices, totals);
    if (calls.stop()) {  // what was read until then may be the half of a batch
      totals.stopped = true;
      return {};
    }
    if (batch.tasks.empty()) return {};
    const std::int64_t rows = RowsToAnnounce(target, batch);
    const std::uint64_t before = totals.added_to_batch;
    if (auto announced = rows > 0 ? calls.announce(rows) : Status(); !announced) {
      Error error = announced.error();
      if (totals.added > 0) error.message += "; " + std::to_string(totals.added) + " tasks were added before";
      return Fail(std::move(error));
    }
    if (auto sent = SubmitSpan(operations, target, batch.tasks, batch.lines, totals); !sent) {
      return Fail(Interrupted(sent.error(), totals, batch));
    }
    TakeBack(calls, rows - static_cast<std::int64_t>(totals.added_to_batch - before));
    totals.last_line = batch.lines.back();
    calls.progress(totals);
  }
}

Status SubmitAtOnce(TaskTransaction& transaction, SubmitTarget& target, InputRows& rows, SubmitTotals& totals,
                    const SubmitCalls& calls) {
  const auto give_up = [&] {
    transaction.Rollback();
    ForgetAdded(totals);
  };
  while (true) {
    // With a bad row nothing will be added: the rest is read for its problems alone, without locks.
    const Batch batch = Collect(rows, target.slices, totals, [&] { transaction.Rollback(); });
    totals.stopped = calls.stop();
    if (batch.tasks.empty() || totals.stopped) break;
    if (totals.bad > 0) continue;
    auto added = transaction.Submit(target.table, batch.tasks);
    if (!added) {
      give_up();
      return Fail(added.error().code, "lines " + std::to_string(batch.lines.front()) + " to " +
                                          std::to_string(batch.lines.back()) + ": " + added.error().message +
                                          "; nothing was added");
    }
    NoteReport(totals, target, batch.tasks, batch.lines, *added);
    calls.progress(totals);
  }
  if (totals.bad > 0 || totals.differing > 0 || totals.stopped) {
    give_up();
    return {};
  }
  const auto rows_added = static_cast<std::int64_t>(totals.added_to_batch);
  if (auto told = calls.announce_within(transaction, rows_added); !told) {
    give_up();
    return told;
  }
  const CommitReport commit = transaction.Commit("", {});
  if (commit.verdict == CommitVerdict::Committed) return {};
  ForgetAdded(totals);
  if (commit.verdict != CommitVerdict::Unknown) (void)calls.announce_within(transaction, -rows_added);
  if (commit.verdict == CommitVerdict::Unknown) {
    return Fail(ErrorCode::Unknown, commit.message +
                                        "; either all rows are in or none: with keys it is safe to "
                                        "submit the same again");
  }
  const bool again =
      commit.verdict == CommitVerdict::Transient || commit.verdict == CommitVerdict::Unavailable;
  return Fail(again ? ErrorCode::Unavailable : ErrorCode::Internal,
              commit.message + "; nothing was added" + (again ? ": submit the same again" : ""));
}

}  // namespace millrace::engine
