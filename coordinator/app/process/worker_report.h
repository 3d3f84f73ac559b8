// What a worker shows of its shards' tasks: how far they are, while it runs; at its end what became of them,
// and what is left.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/process/worker_flags.h"
#include "framework/store/schema_store.h"
#include "framework/store/store.h"
#include "framework/threads/thread.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

struct TaskSummary {
  // Of all tasks that have ended, in this run or before.
  std::uint64_t succeeded = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t attempts_failed = 0;
  // Of those that have not, each a bound from below where `or_more`.
  Backlog backlog;
  std::uint64_t held = 0;
  bool held_or_more = false;
  // Task types with due tasks that no handler at hand can run, and why it does not open; empty: no plugin has
  // it.
  std::map<std::string, std::string> unrunnable;
};

// Adds what a shard holds. What is left is counted no longer than until `deadline`.
Status AddShard(Store& store, const std::vector<TableInfo>& tables, BootTime deadline, TaskSummary& summary);

// `16049 succeeded, 0 failed`, and how many were cancelled if any: bare numbers, for scripts too. Where
// others have ended before this run, or beside it: `this run: 5 succeeded, 0 failed; in all: …`.
std::string SummaryText(const TaskSummary& all, const WorkerTotals& run);

// What is left, a line for each kind, with the command to look at it. `where`: how the store is named on its
// command line, such as ` --store sqlite:points.db`; empty: it need not be.
std::vector<std::string> LeftTexts(const TaskSummary& summary, const std::string& where, WallTime now);

// Both as members of one object.
nlohmann::ordered_json ToJson(const TaskSummary& summary);

// Good order is 0; the others, which it explains, are for a supervisor to start the command again.
ExitCode ExitCodeOf(WorkerEnd end);

// What the shards hold now. What is left is counted for two seconds at most. Fails for a shard that the
// worker could not reach last: nobody waits for it beyond the stop deadline.
Result<TaskSummary> ReadSummary(const Shards& shards, const WorkerStatus& status);

// `all`: what became of every task of the shards; an error where they can't be read.
void PrintSummary(const WorkerFlags& flags, const Result<TaskSummary>& all, const WorkerTotals& now,
                  Micros took, WorkerEnd end);

// Draws the line, and reads the backlog for it in a thread of its own, twice a second at most: whoever calls
// it waits for no server. One thread. Costs nothing where it is disabled.
class WorkerProgress {
 public:
  WorkerProgress(Shards& shards, bool enabled);
  void Update(const WorkerTotals& totals);
  // Clears the line. False: a read is held up by a server that does not answer, for longer than a second. It
  // uses what this was made of, so the process must end by std::_Exit.
  [[nodiscard]] bool Stop();

 private:
  void ReadBacklog(BootTime begun);

  Shards& shards_;
  ProgressLine line_;
  RateMeter rate_;
  std::optional<Backlog> shown_;
  std::atomic<bool> reading_{false};
  // The reader's own while it reads.
  std::map<std::string, std::unique_ptr<OverviewStore>> overviews_;
  std::optional<BootTime> last_read_;
  Micros read_cost_{0};
  Backlog backlog_;
  Thread reader_;
};

}  // namespace millrace::engine
